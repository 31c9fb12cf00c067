package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"

	"github.com/tenon-sh/tenon/plan"
)

// The priorities that every cluster has (k8s.io/kubernetes/pkg/apis/scheduling).
var systemPriorities = map[string]int32{
	"system-cluster-critical": 2000000000,
	"system-node-critical":    2000001000,
}

// admission does what the API server does to a pod when it is created, as far as that matters to planning.
type admission struct {
	priorities map[string]*schedulingv1.PriorityClass
	// usual is the class of pods that name none.
	usual    *schedulingv1.PriorityClass
	runtimes map[string]*nodev1.RuntimeClass
	// limits are the LimitRanges by namespace.
	limits map[string][]*corev1.LimitRange
	// missing are notes on the classes that pods name and the manifests lack.
	missing map[string]bool
}

func newAdmission(objects []object) *admission {
	a := &admission{
		priorities: map[string]*schedulingv1.PriorityClass{}, runtimes: map[string]*nodev1.RuntimeClass{},
		limits: map[string][]*corev1.LimitRange{}, missing: map[string]bool{},
	}
	for _, o := range only[*schedulingv1.PriorityClass](objects) {
		a.priorities[o.place.name] = o.value
		if o.value.GlobalDefault {
			a.usual = o.value
		}
	}
	for _, o := range only[*nodev1.RuntimeClass](objects) {
		a.runtimes[o.place.name] = o.value
	}
	for _, o := range only[*corev1.LimitRange](objects) {
		a.limits[o.place.namespace] = append(a.limits[o.place.namespace], o.value)
	}
	return a
}

// notes returns what pods refer to and the manifests lack.
func (a *admission) notes() []string { return slices.Sorted(maps.Keys(a.missing)) }

// admit completes a pod. It keeps what is set already, because a pod from a cluster has been admitted before.
func (a *admission) admit(pod *corev1.Pod) {
	spec := &pod.Spec
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for c := range containers {
			complete(&containers[c], spec.HostNetwork)
			plan.ApplyLimitRanges(&containers[c].Resources, a.limits[pod.Namespace])
		}
	}
	completePodLevel(pod)
	a.prioritize(spec)
	a.runtime(spec)
	completeAffinity(pod)
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
}

// complete fills in a container: requests default to limits, and with host networking every port is a host port.
func complete(container *corev1.Container, hostNetwork bool) {
	for name, limit := range container.Resources.Limits {
		request(&container.Resources, name, limit)
	}
	for p := range container.Ports {
		port := &container.Ports[p]
		if hostNetwork && port.HostPort == 0 {
			port.HostPort = port.ContainerPort
		}
	}
}

// request sets a request where there is none.
func request(resources *corev1.ResourceRequirements, name corev1.ResourceName, amount quantity.Quantity) {
	if _, set := resources.Requests[name]; set {
		return
	}
	if resources.Requests == nil {
		resources.Requests = corev1.ResourceList{}
	}
	resources.Requests[name] = amount
}

// completePodLevel fills in the requests of the pod as a whole, if it has pod-level resources: the sum of what its
// containers request, or else the limit (k8s.io/kubernetes/pkg/apis/core/v1, defaults of pod-level resources).
func completePodLevel(pod *corev1.Pod) {
	whole := pod.Spec.Resources
	if whole == nil {
		return
	}
	for name, amount := range resource.AggregateContainerRequests(pod, resource.PodResourcesOptions{}) {
		if resource.IsSupportedPodLevelResource(name) {
			request(whole, name, amount)
		}
	}
	for name, limit := range whole.Limits {
		request(whole, name, limit)
	}
}

// prioritize looks up the pod's PriorityClass.
func (a *admission) prioritize(spec *corev1.PodSpec) {
	if spec.Priority != nil {
		return
	}
	value, known := systemPriorities[spec.PriorityClassName]
	switch class := a.priorities[spec.PriorityClassName]; {
	case known:
	case class != nil:
		value = class.Value
	case spec.PriorityClassName != "":
		a.missing[fmt.Sprintf("PriorityClass %s is not among the manifests: priority 0 is assumed", spec.PriorityClassName)] = true
	case a.usual != nil:
		value, spec.PriorityClassName = a.usual.Value, a.usual.Name
	}
	spec.Priority = &value
}

// runtime adds the overhead and the scheduling constraints of the pod's RuntimeClass.
func (a *admission) runtime(spec *corev1.PodSpec) {
	if spec.RuntimeClassName == nil || *spec.RuntimeClassName == "" {
		return
	}
	class := a.runtimes[*spec.RuntimeClassName]
	if class == nil {
		if spec.Overhead == nil {
			a.missing[fmt.Sprintf("RuntimeClass %s is not among the manifests: no overhead is assumed", *spec.RuntimeClassName)] = true
		}
		return
	}
	if class.Overhead != nil && spec.Overhead == nil {
		spec.Overhead = maps.Clone(class.Overhead.PodFixed)
	}
	if class.Scheduling == nil {
		return
	}
	if len(class.Scheduling.NodeSelector) > 0 {
		merged := maps.Clone(class.Scheduling.NodeSelector)
		maps.Copy(merged, spec.NodeSelector)
		spec.NodeSelector = merged
	}
	for _, toleration := range class.Scheduling.Tolerations {
		if !slices.ContainsFunc(spec.Tolerations, func(t corev1.Toleration) bool { return t.MatchToleration(&toleration) }) {
			spec.Tolerations = append(spec.Tolerations, toleration)
		}
	}
}

// completeAffinity expands matchLabelKeys and mismatchLabelKeys into the selectors of pod affinity, as the API server does
// for every new pod.
func completeAffinity(pod *corev1.Pod) {
	affinity := pod.Spec.Affinity
	if affinity == nil {
		return
	}
	var terms []*corev1.PodAffinityTerm
	collect := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for t := range required {
			terms = append(terms, &required[t])
		}
		for t := range preferred {
			terms = append(terms, &preferred[t].PodAffinityTerm)
		}
	}
	if a := affinity.PodAffinity; a != nil {
		collect(a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := affinity.PodAntiAffinity; a != nil {
		collect(a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	for _, term := range terms {
		if term.LabelSelector == nil {
			continue
		}
		for operator, keys := range map[metav1.LabelSelectorOperator][]string{
			metav1.LabelSelectorOpIn: term.MatchLabelKeys, metav1.LabelSelectorOpNotIn: term.MismatchLabelKeys,
		} {
			for _, key := range keys {
				if value, labelled := pod.Labels[key]; labelled {
					term.LabelSelector.MatchExpressions = appendRequirement(term.LabelSelector.MatchExpressions,
						metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: []string{value}})
				}
			}
		}
	}
}

// appendRequirement adds a requirement that is not there yet.
func appendRequirement(to []metav1.LabelSelectorRequirement, r metav1.LabelSelectorRequirement) []metav1.LabelSelectorRequirement {
	if slices.ContainsFunc(to, func(o metav1.LabelSelectorRequirement) bool {
		return o.Key == r.Key && o.Operator == r.Operator && slices.Equal(o.Values, r.Values)
	}) {
		return to
	}
	return append(to, r)
}

// check finds what the API server would refuse in a pod, as far as planning would stumble over it. path is that of the pod's
// spec within the object.
func check(at place, path string, spec *corev1.PodSpec) mistakes {
	var wrong mistakes
	add := func(field, format string, args ...any) {
		wrong = append(wrong, &mistake{place: at, field: field, problem: fmt.Sprintf(format, args...)})
	}
	if len(spec.Containers) == 0 {
		add(path+".containers", "is empty: a pod needs a container")
	}
	for list, containers := range map[string][]corev1.Container{"containers": spec.Containers, "initContainers": spec.InitContainers} {
		for c := range containers {
			r := containers[c].Resources
			for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
				requested := r.Requests[name]
				field := fmt.Sprintf("%s.%s[%d].resources.requests.%s", path, list, c, name)
				if requested.Sign() < 0 {
					add(field, "%s is negative: write an amount, or leave it out", requested.String())
				}
				if limit, limited := r.Limits[name]; limited && requested.Cmp(limit) > 0 {
					add(field, "%s is more than the limit %s: raise the limit, or request less", requested.String(), limit.String())
				}
			}
		}
	}
	for t := range spec.TopologySpreadConstraints {
		constraint := &spec.TopologySpreadConstraints[t]
		field := fmt.Sprintf("%s.topologySpreadConstraints[%d]", path, t)
		if constraint.MaxSkew < 1 {
			add(field+".maxSkew", "must be at least 1")
		}
		if constraint.TopologyKey == "" {
			add(field+".topologyKey", "is missing: write for example %s", corev1.LabelTopologyZone)
		}
		if w := constraint.WhenUnsatisfiable; w != corev1.DoNotSchedule && w != corev1.ScheduleAnyway {
			add(field+".whenUnsatisfiable", "%q: must be %s or %s", w, corev1.DoNotSchedule, corev1.ScheduleAnyway)
		}
		wrong = append(wrong, checkSelector(at, field+".labelSelector", constraint.LabelSelector)...)
	}
	for t := range spec.Tolerations {
		toleration := &spec.Tolerations[t]
		if op := toleration.Operator; op != "" && op != corev1.TolerationOpExists && op != corev1.TolerationOpEqual && !strings.HasPrefix(string(op), "Lt") && !strings.HasPrefix(string(op), "Gt") {
			add(fmt.Sprintf("%s.tolerations[%d].operator", path, t), "%q: must be Exists or Equal", op)
		}
	}
	return wrong
}

func checkSelector(at place, field string, selector *metav1.LabelSelector) mistakes {
	if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
		return mistakes{{place: at, field: field, problem: err.Error()}}
	}
	return nil
}
