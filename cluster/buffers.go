package cluster

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	bufferv1 "github.com/tenon-sh/tenon/api/autoscaling/v1beta1"
	"github.com/tenon-sh/tenon/plan"
)

// Buffer is a CapacityBuffer with what became of it.
type Buffer struct {
	Object *bufferv1.CapacityBuffer
	// Pods are the virtual pods that stand for the room it asks for, in Snapshot.Pending as well.
	Pods []*plan.Pod
	// Generation is that of the template or workload the pods are made from; zero where there is none.
	Generation int64
	// Reason and Problem say why the buffer cannot be resolved: a reason of ReadyForProvisioning, and a sentence. Both are
	// empty where it can.
	Reason, Problem string
}

// origin is something pods are made from: a PodTemplate, or a workload with a template of its own.
type origin struct {
	namespace, name string
	generation      int64
	// replicas is what a workload is scaled to.
	replicas int32
	// model is a virtual pod of it.
	model *plan.Pod
}

func (s *origin) key() string { return s.namespace + "/" + s.name }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (s *origin) GetObjectMeta() metav1.Object { return named(s.namespace, s.name) }

// origins are one kind of what buffers refer to. It is watched once a buffer refers to one of the kind.
type origins struct {
	feed *feed[*origin]
	need func()
}

// podTemplateKind is what podTemplateRef refers to; the other kinds are those scalableRef may name.
const podTemplateKind = "PodTemplate"

// buffers are the resolved CapacityBuffers.
type buffers struct {
	resolved map[string]Buffer
	// virtual are the UIDs of all virtual pods.
	virtual map[types.UID]bool
}

// openBuffers prepares the watches of CapacityBuffers and of what they refer to.
func (m *Mirror) openBuffers(w *watches) {
	core, apps := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion
	m.buffers = buffers{resolved: map[string]Buffer{}, virtual: map[types.UID]bool{}}
	m.origins = map[string]origins{}
	kind := func(kind string, opened *feed[*origin]) {
		m.origins[kind] = origins{feed: opened, need: w.whenNeeded()}
	}
	key, changed := (*origin).key, m.originChanged
	kind(podTemplateKind, open(w, core, "podtemplates", &corev1.PodTemplate{}, nil, reducePodTemplate, key, changed))
	kind("Deployment", open(w, apps, "deployments", &appsv1.Deployment{}, nil, reduceDeployment, key, changed))
	kind("StatefulSet", open(w, apps, "statefulsets", &appsv1.StatefulSet{}, nil, reduceStatefulSet, key, changed))
	kind("ReplicaSet", open(w, apps, "replicasets", &appsv1.ReplicaSet{}, nil, reduceReplicaSet, key, changed))

	gv := bufferv1.SchemeGroupVersion
	m.capacityBuffers = open(w, gv, "capacitybuffers", &bufferv1.CapacityBuffer{}, nil, whole[*bufferv1.CapacityBuffer], nameOf[*bufferv1.CapacityBuffer], m.bufferChanged)
	w.whenServed(gv, m.capacityBuffers.emptied)
}

// Buffers returns all CapacityBuffers that are Tenon's to serve, ordered by namespace and name.
func (m *Mirror) Buffers() []Buffer {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return sorted(m.buffers.resolved)
}

// has says that a virtual pod is one of a buffer's.
func (b *buffers) has(pod types.UID) bool { return b.virtual[pod] }

// withPods adds the virtual pods to those that wait. The argument is not changed.
func (b *buffers) withPods(waiting []*plan.Pod) []*plan.Pod {
	if len(b.virtual) == 0 {
		return waiting
	}
	all := slices.Grow(slices.Clone(waiting), len(b.virtual))
	for _, buffer := range b.resolved {
		all = append(all, buffer.Pods...)
	}
	slices.SortFunc(all, byUID)
	return all
}

// bufferChanged resolves a buffer. The lock is held.
func (m *Mirror) bufferChanged(old, now *bufferv1.CapacityBuffer, _, exists bool) {
	if !exists {
		m.settleBuffer(nameOf(old), Buffer{}, false)
	} else {
		m.resolveBuffer(now)
	}
	m.events.publish(Event{Kind: BuffersChanged})
}

// originChanged resolves the buffers that refer to an origin. The lock is held.
func (m *Mirror) originChanged(old, now *origin, existed, exists bool) {
	if existed && exists && old.generation == now.generation && old.replicas == now.replicas && old.model.Class == now.model.Class && old.model.Labels == now.model.Labels {
		return // only its status has changed
	}
	changed := now
	if !exists {
		changed = old
	}
	told := false
	for _, buffer := range m.capacityBuffers.items {
		if _, name := referred(buffer); name == changed.name && buffer.Namespace == changed.namespace {
			m.resolveBuffer(buffer)
			told = true
		}
	}
	if told {
		m.events.publish(Event{Kind: BuffersChanged})
	}
}

// referred is the kind and the name of what a buffer's pods are made from; empty where it refers to nothing.
func referred(buffer *bufferv1.CapacityBuffer) (kind, name string) {
	switch spec := &buffer.Spec; {
	case spec.PodTemplateRef != nil:
		return podTemplateKind, spec.PodTemplateRef.Name
	case spec.ScalableRef != nil && spec.ScalableRef.APIGroup == appsv1.GroupName && spec.ScalableRef.Kind != podTemplateKind:
		return spec.ScalableRef.Kind, spec.ScalableRef.Name
	}
	return "", ""
}

// resolveBuffer makes a buffer's virtual pods anew. The lock is held.
func (m *Mirror) resolveBuffer(object *bufferv1.CapacityBuffer) {
	if !object.Active() || !object.DeletionTimestamp.IsZero() {
		m.settleBuffer(nameOf(object), Buffer{}, false)
		return
	}
	resolved := Buffer{Object: object}
	defer func() { m.settleBuffer(nameOf(object), resolved, true) }()
	kind, name := referred(object)
	known, ok := m.origins[kind]
	if !ok {
		resolved.Reason, resolved.Problem = bufferv1.ReasonResolutionFailed, "set one of podTemplateRef and scalableRef"
		if ref := object.Spec.ScalableRef; ref != nil {
			resolved.Problem = fmt.Sprintf("scalableRef: a Deployment, StatefulSet or ReplicaSet of the group %s is wanted, not a %s of %q", appsv1.GroupName, ref.Kind, ref.APIGroup)
		}
		return
	}
	known.need()
	made, ok := known.feed.items[object.Namespace+"/"+name]
	if !ok {
		resolved.Reason, resolved.Problem = bufferv1.ReasonScalableRefNotFound, fmt.Sprintf("there is no %s %q", kind, name)
		if kind == podTemplateKind {
			resolved.Reason = bufferv1.ReasonPodTemplateNotFound
		}
		return
	}
	resolved.Generation = made.generation
	wish := plan.Wish{Replicas: object.Spec.Replicas, Percentage: object.Spec.Percentage, Scale: made.replicas, Limits: object.Spec.Limits}
	count, err := wish.Count(made.model.Class.Requests)
	if err != nil {
		resolved.Reason, resolved.Problem = bufferv1.ReasonResolutionFailed, err.Error()
		return
	}
	resolved.Pods = made.model.VirtualPods(object.UID, object.Name, count)
}

// settleBuffer puts a resolved buffer in the place of what it was, or takes it away. The lock is held.
func (m *Mirror) settleBuffer(key string, resolved Buffer, exists bool) {
	before := m.buffers.resolved[key].Pods
	for _, pod := range before {
		delete(m.buffers.virtual, pod.UID)
	}
	for _, pod := range resolved.Pods {
		m.buffers.virtual[pod.UID] = true
	}
	if exists {
		m.buffers.resolved[key] = resolved
	} else {
		delete(m.buffers.resolved, key)
	}
	for _, pod := range before {
		if !m.buffers.has(pod.UID) {
			m.keepPromise(pod.UID)
		}
	}
	if len(before) > 0 || len(resolved.Pods) > 0 {
		m.changed()
	}
}

func reducePodTemplate(interner *plan.Interner, obj any) (*origin, error) {
	template, ok := obj.(*corev1.PodTemplate)
	if !ok {
		return nil, unexpected(template, obj)
	}
	return reduceOrigin(interner, template, &template.Template, new(int32(0))), nil
}

func reduceDeployment(interner *plan.Interner, obj any) (*origin, error) {
	deployment, ok := obj.(*appsv1.Deployment)
	if !ok {
		return nil, unexpected(deployment, obj)
	}
	return reduceOrigin(interner, deployment, &deployment.Spec.Template, deployment.Spec.Replicas), nil
}

func reduceStatefulSet(interner *plan.Interner, obj any) (*origin, error) {
	set, ok := obj.(*appsv1.StatefulSet)
	if !ok {
		return nil, unexpected(set, obj)
	}
	return reduceOrigin(interner, set, &set.Spec.Template, set.Spec.Replicas), nil
}

func reduceReplicaSet(interner *plan.Interner, obj any) (*origin, error) {
	set, ok := obj.(*appsv1.ReplicaSet)
	if !ok {
		return nil, unexpected(set, obj)
	}
	return reduceOrigin(interner, set, &set.Spec.Template, set.Spec.Replicas), nil
}

// origin reduces something with a template. Without a number of replicas the API server takes it for one.
func reduceOrigin(interner *plan.Interner, object metav1.Object, template *corev1.PodTemplateSpec, replicas *int32) *origin {
	reduced := &origin{
		namespace: interner.String(object.GetNamespace()), name: interner.String(object.GetName()),
		generation: object.GetGeneration(), replicas: 1, model: interner.VirtualPod(object.GetNamespace(), template),
	}
	if replicas != nil {
		reduced.replicas = *replicas
	}
	return reduced
}
