package model

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Pod reduces a pod to what planning needs. The result shares nothing with the argument.
func (i *Interner) Pod(pod *corev1.Pod) *Pod {
	p := &Pod{
		UID:       pod.UID,
		Namespace: i.String(pod.Namespace),
		Name:      pod.Name,
		Class:     i.class(pod),
		Labels: i.labels.get(AppendMap(AppendString(nil, pod.Namespace), pod.Labels), func(key string) *Labels {
			return &Labels{Namespace: i.String(pod.Namespace), Set: i.Labels(pod.Labels), Key: key}
		}),
		Mounts:        i.mounts(pod),
		Claims:        i.podClaims(pod),
		Node:          i.String(pod.Spec.NodeName),
		NominatedNode: i.String(pod.Status.NominatedNodeName),
		Created:       pod.CreationTimestamp.Time,
		Priority:      ptr.Deref(pod.Spec.Priority, 0),
		GracePeriod:   time.Duration(ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 30)) * time.Second,
		Gated:         len(pod.Spec.SchedulingGates) > 0,
		Terminal:      pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
		Started:       ptr.Deref(pod.Status.StartTime, metav1.Time{}).Time,
		Deletion:      ptr.Deref(pod.DeletionTimestamp, metav1.Time{}).Time,
		Critical:      pod.Spec.PriorityClassName == "system-cluster-critical" || pod.Spec.PriorityClassName == "system-node-critical",
		Unseen:        pod.Spec.SchedulerName == "" || pod.Spec.SchedulerName == corev1.DefaultSchedulerName,
	}
	for _, condition := range pod.Status.Conditions {
		switch condition.Type {
		case corev1.PodReady:
			p.Ready = condition.Status == corev1.ConditionTrue
		case corev1.PodScheduled:
			p.Unseen = false
			p.Unschedulable = condition.Status == corev1.ConditionFalse && condition.Reason == corev1.PodReasonUnschedulable
		}
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		p.OwnerKind, p.OwnerName = i.String(owner.Kind), i.String(owner.Name)
		p.Daemon = owner.Kind == "DaemonSet"
	}
	_, mirrors := pod.Annotations[corev1.MirrorPodAnnotationKey]
	p.Static = mirrors || slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "Node" })
	p.annotate(pod.Annotations)
	return p
}

// podClaims returns the claims of a pod; nil if it has none. It leaves out those that the pod does not need after all.
func (i *Interner) podClaims(pod *corev1.Pod) *PodClaims {
	var claims []PodClaim
	var key []byte
	for _, asked := range pod.Spec.ResourceClaims {
		claim := PodClaim{Entry: i.String(asked.Name)}
		switch {
		case asked.ResourceClaimName != nil:
			claim.Claim = i.String(*asked.ResourceClaimName)
		case asked.ResourceClaimTemplateName != nil:
			claim.Template = i.String(*asked.ResourceClaimTemplateName)
			made := slices.IndexFunc(pod.Status.ResourceClaimStatuses, func(s corev1.PodResourceClaimStatus) bool { return s.Name == asked.Name })
			switch {
			case made >= 0 && pod.Status.ResourceClaimStatuses[made].ResourceClaimName == nil:
				continue // no claim is necessary
			case made >= 0:
				claim.Claim = i.String(*pod.Status.ResourceClaimStatuses[made].ResourceClaimName)
			}
		}
		claims, key = append(claims, claim), AppendString(key, claim.Entry, claim.Claim, claim.Template)
	}
	if len(claims) == 0 {
		return nil
	}
	return i.claims.get(key, func(string) *PodClaims { return &PodClaims{list: claims} })
}

func (p *Pod) annotate(annotations map[string]string) {
	if cost, err := strconv.ParseInt(annotations[corev1.PodDeletionCost], 10, 32); err == nil {
		p.DeletionCost = int32(cost)
	}
	value := annotations[karpv1.DoNotDisruptAnnotationKey]
	if value == "" {
		p.DoNotDisrupt = annotations[karpv1.DoNotEvictAnnotationKey] == "true"
		return
	}
	var err error
	if p.DoNotDisrupt, p.DoNotDisruptFor, err = Protection(value); err != nil {
		p.Misprotected = strings.Clone(value)
	}
}

// DrainPod reduces a pod to what a drain needs.
func (i *Interner) DrainPod(pod *corev1.Pod) DrainPod {
	p := DrainPod{Pod: i.Pod(pod), Finalizers: slices.Clone(pod.Finalizers), Protection: karpv1.DoNotDisruptAnnotationKey}
	p.DeletionGrace = time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second
	if pod.Annotations[karpv1.DoNotDisruptAnnotationKey] == "" {
		p.Protection = karpv1.DoNotEvictAnnotationKey
	}
	return p
}

// DaemonSet reduces a DaemonSet to the pod it puts on nodes, with the tolerations its controller adds, and what the
// LimitRanges of its namespace give to containers.
func (i *Interner) DaemonSet(set *appsv1.DaemonSet, ranges ...*corev1.LimitRange) *DaemonSet {
	pod := &corev1.Pod{Spec: *set.Spec.Template.Spec.DeepCopy()}
	completeTemplate(pod)
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for c := range containers {
			ApplyLimitRanges(&containers[c].Resources, ranges)
		}
	}
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, daemonTolerations(pod.Spec.HostNetwork)...)
	return &DaemonSet{
		Namespace: i.String(set.Namespace),
		Name:      i.String(set.Name),
		Class:     i.class(pod),
		Claims:    i.podClaims(pod),
	}
}

// DaemonSetOf returns a DaemonSet with the requests and host ports of its running pods, of which pod is the class. The
// template still decides which nodes they run on: what the controller adds to bind one pod to its node does not apply to
// others.
func (i *Interner) DaemonSetOf(set *DaemonSet, pod *Class) *DaemonSet {
	if set.Class.Requests.Equal(pod.Requests) && slices.Equal(set.Class.HostPorts, pod.HostPorts) {
		return set
	}
	// No class reduced from a pod has such a key: it would encode an empty affinity that is not the end of the key.
	key := []byte(set.Class.ID + "\x00" + pod.ID)
	again := *set
	again.Class = i.classes.get(key, func(key string) *Class {
		class := *set.Class
		class.Requests, class.HostPorts, class.ID = pod.Requests, pod.HostPorts, key
		return &class
	})
	return &again
}

// daemonTolerations are what the DaemonSet controller adds to each of its pods.
func daemonTolerations(hostNetwork bool) (tolerations []corev1.Toleration) {
	add := func(effect corev1.TaintEffect, keys ...string) {
		for _, key := range keys {
			tolerations = append(tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect})
		}
	}
	add(corev1.TaintEffectNoExecute, corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable)
	add(corev1.TaintEffectNoSchedule,
		corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable)
	if hostNetwork {
		add(corev1.TaintEffectNoSchedule, corev1.TaintNodeNetworkUnavailable)
	}
	return tolerations
}

// class finds or makes the class of a pod.
func (i *Interner) class(pod *corev1.Pod) *Class {
	requests := PodRequests(pod)
	key := classKey(pod, requests)
	return i.classes.get(key, func(key string) *Class { return buildClass(pod, requests, key) })
}

// PodRequests returns the pod's requests as the kube-scheduler counts them, and one pod. During an in-place resize they are
// the largest of what the pod asks for, what the kubelet has granted and what it has applied. If the API server does not
// support in-place resize, the pod's status does not contain these.
func PodRequests(pod *corev1.Pod) Resources {
	requests := ResourcesOf(resource.PodRequests(pod, resource.PodResourcesOptions{
		UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true}))
	requests.Pods = 1
	return requests
}

// Limits returns the limits of a pod, counted as PodRequests counts requests, and one pod. Pods with the same limits share them.
func (i *Interner) Limits(pod *corev1.Pod) *Resources {
	limits := ResourcesOf(resource.PodLimits(pod, resource.PodResourcesOptions{
		UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true}))
	limits.Pods = 1
	return i.limits.get(appendResources(nil, limits), func(string) *Resources { return &limits })
}

func buildClass(pod *corev1.Pod, requests Resources, key string) *Class {
	spec := pod.Spec.DeepCopy()
	c := &Class{
		Requests:       requests,
		NodeSelector:   spec.NodeSelector,
		Tolerations:    spec.Tolerations,
		HostPorts:      hostPorts(spec),
		Spread:         spec.TopologySpreadConstraints,
		ResourceClaims: len(spec.ResourceClaims) > 0,
		ID:             key,
	}
	if affinity := spec.Affinity; affinity != nil {
		c.Affinity, c.AntiAffinity = affinity.PodAffinity, affinity.PodAntiAffinity
		if affinity.NodeAffinity != nil {
			c.NodeAffinity = affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
			c.PreferredNodes = affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		}
	}
	return c
}

// hostPorts returns the ports of the node that the pod's containers occupy. With hostNetwork the API server has filled in
// hostPort from containerPort. Init containers count only if they keep running beside the others.
func hostPorts(spec *corev1.PodSpec) []HostPort {
	var ports []HostPort
	collect := func(containers []corev1.Container, initial bool) {
		for c := range containers {
			if initial && ptr.Deref(containers[c].RestartPolicy, "") != corev1.ContainerRestartPolicyAlways {
				continue
			}
			for _, port := range containers[c].Ports {
				if port.HostPort > 0 {
					ports = append(ports, HostPort{
						IP: cmp.Or(port.HostIP, anyAddress), Port: port.HostPort, Protocol: cmp.Or(port.Protocol, corev1.ProtocolTCP)})
				}
			}
		}
	}
	collect(spec.InitContainers, true)
	collect(spec.Containers, false)
	slices.SortFunc(ports, func(a, b HostPort) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.IP, b.IP))
	})
	return slices.Compact(ports)
}

// classKey encodes everything a Class holds, so that two pods are of one class exactly when their keys are equal.
func classKey(pod *corev1.Pod, requests Resources) []byte {
	key := appendResources(make([]byte, 0, 256), requests)
	spec := &pod.Spec
	key = AppendMap(key, spec.NodeSelector)
	key = AppendTolerations(key, spec.Tolerations)
	ports := hostPorts(spec)
	key = binary.AppendUvarint(key, uint64(len(ports)))
	for _, port := range ports {
		key = binary.AppendVarint(AppendString(key, port.IP), int64(port.Port))
		key = AppendString(key, string(port.Protocol))
	}
	key = append(key, Flag(len(spec.ResourceClaims) > 0))
	key = binary.AppendUvarint(key, uint64(len(spec.TopologySpreadConstraints)))
	for i := range spec.TopologySpreadConstraints {
		key = AppendMessage(key, &spec.TopologySpreadConstraints[i])
	}
	if spec.Affinity != nil {
		key = AppendMessage(key, spec.Affinity)
	}
	return key
}

// AppendTolerations appends tolerations to a key.
func AppendTolerations(key []byte, tolerations []corev1.Toleration) []byte {
	key = binary.AppendUvarint(key, uint64(len(tolerations)))
	for i := range tolerations {
		t := &tolerations[i]
		key = AppendString(key, t.Key, string(t.Operator), t.Value, string(t.Effect))
		key = binary.AppendVarint(key, ptr.Deref(t.TolerationSeconds, -1))
	}
	return key
}

// message is implemented by generated API types. Their encoding is deterministic: maps are written in order.
type message interface {
	Size() int
	MarshalToSizedBuffer([]byte) (int, error)
}

// AppendMessage appends the wire form of an API value. API values are known to encode.
func AppendMessage(key []byte, m message) []byte {
	size := m.Size()
	key = binary.AppendUvarint(key, uint64(size))
	start := len(key)
	key = append(key, make([]byte, size)...)
	if _, err := m.MarshalToSizedBuffer(key[start:]); err != nil {
		return append(key[:start], err.Error()...)
	}
	return key
}

// appendResources appends amounts to a key.
func appendResources(key []byte, r Resources) []byte {
	for _, amount := range [...]int64{r.CPU, r.Memory, r.EphemeralStorage, r.Pods} {
		key = binary.AppendVarint(key, amount)
	}
	key = binary.AppendUvarint(key, uint64(len(r.Extended)))
	for _, amount := range r.Extended {
		key = binary.AppendVarint(AppendString(key, amount.Name), amount.Value)
	}
	return key
}

// AppendMap appends a map to a key, ordered by its keys.
func AppendMap(key []byte, m map[string]string) []byte {
	key = binary.AppendUvarint(key, uint64(len(m)))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		key = AppendString(key, name, m[name])
	}
	return key
}

// AppendString appends strings to a key, so that no two lists of strings have the same key.
func AppendString(key []byte, list ...string) []byte {
	for _, s := range list {
		key = append(binary.AppendUvarint(key, uint64(len(s))), s...)
	}
	return key
}

// Flag returns one for true and zero for false, for keys and comparisons.
func Flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}
