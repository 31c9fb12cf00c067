package plan_test

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Short options for the requirements of pods and pools in tests.

const (
	hostname     = corev1.LabelHostname
	zone         = corev1.LabelTopologyZone
	capacityType = karpv1.CapacityTypeLabelKey
)

func selects(key, value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		if pod.Spec.NodeSelector == nil {
			pod.Spec.NodeSelector = map[string]string{}
		}
		pod.Spec.NodeSelector[key] = value
	}
}

func needs(terms ...corev1.NodeSelectorTerm) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		nodeAffinityOf(pod).RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: terms}
	}
}

func prefers(weight int32, term corev1.NodeSelectorTerm) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		affinity := nodeAffinityOf(pod)
		affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: weight, Preference: term})
	}
}

func affinityOf(pod *corev1.Pod) *corev1.Affinity {
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	return pod.Spec.Affinity
}

func nodeAffinityOf(pod *corev1.Pod) *corev1.NodeAffinity {
	affinity := affinityOf(pod)
	if affinity.NodeAffinity == nil {
		affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	return affinity.NodeAffinity
}

func expr(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
}

func in(key string, values ...string) corev1.NodeSelectorTerm {
	return expr(key, corev1.NodeSelectorOpIn, values...)
}

func both(a, b corev1.NodeSelectorTerm) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: append(append([]corev1.NodeSelectorRequirement(nil), a.MatchExpressions...), b.MatchExpressions...)}
}

func asks(name corev1.ResourceName, amount string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.Containers[0].Resources.Requests[name] = resource.MustParse(amount) }
}

func tolerates(key string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
}

func takesPort(port int32) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Ports = append(pod.Spec.Containers[0].Ports,
			corev1.ContainerPort{HostPort: port, ContainerPort: port, Protocol: corev1.ProtocolTCP})
	}
}

func within(namespace string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Namespace = namespace }
}

func labeled(pairs ...string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		if pod.Labels == nil {
			pod.Labels = map[string]string{}
		}
		for i := 0; i < len(pairs); i += 2 {
			pod.Labels[pairs[i]] = pairs[i+1]
		}
	}
}

// app labels a pod.
func app(name string) func(*corev1.Pod) { return labeled("app", name) }

func apps(names ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: names}}}
}

// own selects pods of the same app.
func own(pod *corev1.Pod) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": pod.Labels["app"]}}
}

// spreads requires an even spread of the pod's own app over the domains of a key.
func spreads(key string, skew int32, options ...func(*corev1.TopologySpreadConstraint)) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		c := corev1.TopologySpreadConstraint{TopologyKey: key, MaxSkew: skew, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: own(pod)}
		for _, option := range options {
			option(&c)
		}
		pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, c)
	}
}

func anyway(c *corev1.TopologySpreadConstraint) { c.WhenUnsatisfiable = corev1.ScheduleAnyway }

func minDomains(n int32) func(*corev1.TopologySpreadConstraint) {
	return func(c *corev1.TopologySpreadConstraint) { c.MinDomains = &n }
}

func ignoresAffinity(c *corev1.TopologySpreadConstraint) {
	policy := corev1.NodeInclusionPolicyIgnore
	c.NodeAffinityPolicy = &policy
}

func honorsTaints(c *corev1.TopologySpreadConstraint) {
	policy := corev1.NodeInclusionPolicyHonor
	c.NodeTaintsPolicy = &policy
}

func perVersion(c *corev1.TopologySpreadConstraint) { c.MatchLabelKeys = []string{"version"} }

// of makes a constraint count other apps than the pod's own; without a name it counts every pod.
func of(names ...string) func(*corev1.TopologySpreadConstraint) {
	return func(c *corev1.TopologySpreadConstraint) {
		c.LabelSelector = &metav1.LabelSelector{}
		if len(names) > 0 {
			c.LabelSelector = apps(names...)
		}
	}
}

// joins requires pods of an app in the domain, avoids requires that there are none. An empty name means the pod's own
// app.
func joins(key, name string, options ...func(*corev1.PodAffinityTerm)) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		affinity := podAffinityOf(pod)
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = append(affinity.RequiredDuringSchedulingIgnoredDuringExecution, podTerm(pod, key, name, options))
	}
}

func avoids(key, name string, options ...func(*corev1.PodAffinityTerm)) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		affinity := podAntiAffinityOf(pod)
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = append(affinity.RequiredDuringSchedulingIgnoredDuringExecution, podTerm(pod, key, name, options))
	}
}

func wouldJoin(weight int32, key, name string, options ...func(*corev1.PodAffinityTerm)) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		affinity := podAffinityOf(pod)
		affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: podTerm(pod, key, name, options)})
	}
}

func wouldAvoid(weight int32, key, name string, options ...func(*corev1.PodAffinityTerm)) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		affinity := podAntiAffinityOf(pod)
		affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: podTerm(pod, key, name, options)})
	}
}

func podTerm(pod *corev1.Pod, key, name string, options []func(*corev1.PodAffinityTerm)) corev1.PodAffinityTerm {
	term := corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: own(pod)}
	if name != "" {
		term.LabelSelector = apps(name)
	}
	for _, option := range options {
		option(&term)
	}
	return term
}

func podAffinityOf(pod *corev1.Pod) *corev1.PodAffinity {
	affinity := affinityOf(pod)
	if affinity.PodAffinity == nil {
		affinity.PodAffinity = &corev1.PodAffinity{}
	}
	return affinity.PodAffinity
}

func podAntiAffinityOf(pod *corev1.Pod) *corev1.PodAntiAffinity {
	affinity := affinityOf(pod)
	if affinity.PodAntiAffinity == nil {
		affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	return affinity.PodAntiAffinity
}

func inNamespaces(names ...string) func(*corev1.PodAffinityTerm) {
	return func(term *corev1.PodAffinityTerm) { term.Namespaces = names }
}

// ofTeams selects namespaces by their label team; without a name it means all namespaces.
func ofTeams(names ...string) func(*corev1.PodAffinityTerm) {
	return func(term *corev1.PodAffinityTerm) {
		term.NamespaceSelector = &metav1.LabelSelector{}
		if len(names) > 0 {
			term.NamespaceSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpIn, Values: names}}
		}
	}
}

func ofVersion(term *corev1.PodAffinityTerm) { term.MatchLabelKeys = []string{"version"} }

func ofOtherVersions(term *corev1.PodAffinityTerm) { term.MismatchLabelKeys = []string{"version"} }

func limit(name corev1.ResourceName, amount string) func(*karpv1.NodePool) {
	return func(pool *karpv1.NodePool) { pool.Spec.Limits = karpv1.Limits{name: resource.MustParse(amount)} }
}

func weighs(weight int32) func(*karpv1.NodePool) {
	return func(pool *karpv1.NodePool) { pool.Spec.Weight = &weight }
}

func tainted(key string, effects ...corev1.TaintEffect) func(*karpv1.NodePool) {
	return func(pool *karpv1.NodePool) {
		taint := corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule}
		if len(effects) > 0 {
			taint.Effect = effects[0]
		}
		pool.Spec.Template.Spec.Taints = append(pool.Spec.Template.Spec.Taints, taint)
	}
}

func notReady(message string) func(*karpv1.NodePool) {
	return func(pool *karpv1.NodePool) {
		pool.Status.Conditions = []metav1.Condition{{Type: karpv1.ConditionTypeReady, Status: "False", Reason: "X", Message: message}}
	}
}
