package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ConsolidationPolicy says which nodes consolidation may consider.
// +kubebuilder:validation:Enum=WhenEmpty;WhenEmptyOrUnderutilized;Balanced
type ConsolidationPolicy string

// The consolidation policies.
const (
	// ConsolidationPolicyWhenEmpty considers nodes without pods that would have to move.
	ConsolidationPolicyWhenEmpty ConsolidationPolicy = "WhenEmpty"
	// ConsolidationPolicyWhenEmptyOrUnderutilized considers every node.
	ConsolidationPolicyWhenEmptyOrUnderutilized ConsolidationPolicy = "WhenEmptyOrUnderutilized"
	// ConsolidationPolicyBalanced considers every node and weighs what is saved against the pods that have to move.
	ConsolidationPolicyBalanced ConsolidationPolicy = "Balanced"
)

// DisruptionReason is why a node is taken away by choice.
// +kubebuilder:validation:Enum=Underutilized;Empty;Drifted
type DisruptionReason string

// The reasons that budgets can tell apart.
const (
	// DisruptionReasonUnderutilized says that the node's pods fit elsewhere, or on something cheaper.
	DisruptionReasonUnderutilized DisruptionReason = "Underutilized"
	// DisruptionReasonEmpty says that no pod needs the node.
	DisruptionReasonEmpty DisruptionReason = "Empty"
	// DisruptionReasonDrifted says that the node no longer matches its NodePool and node class.
	DisruptionReasonDrifted DisruptionReason = "Drifted"
)

// Disruption says when nodes of a pool may be taken away, and how many at once.
type Disruption struct {
	// consolidateAfter is how long a node has to be quiet (no pod bound, ended or left) before consolidation considers
	// it, or Never.
	// +kubebuilder:default="0s"
	// +kubebuilder:validation:Pattern=`^(([0-9]+(s|m|h))+|Never)$`
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Schemaless
	// +optional
	ConsolidateAfter NillableDuration `json:"consolidateAfter,omitempty"`

	// consolidationPolicy says which nodes consolidation may consider.
	// +kubebuilder:default=WhenEmptyOrUnderutilized
	// +optional
	ConsolidationPolicy ConsolidationPolicy `json:"consolidationPolicy,omitempty"`

	// budgets bound how many nodes may be taken away at once. All of them hold: the smallest active one decides.
	// +listType=atomic
	// +kubebuilder:default:={{nodes: "10%"}}
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:message="'schedule' must be set with 'duration'",rule="self.all(x, has(x.schedule) == has(x.duration))"
	// +optional
	Budgets []Budget `json:"budgets,omitempty" hash:"ignore"`
}

// Budget is one bound on the nodes of a pool that may be disrupted at the same time.
type Budget struct {
	// reasons are what the budget applies to; without any it applies to all.
	// +listType=set
	// +kubebuilder:validation:MaxItems=50
	// +optional
	Reasons []DisruptionReason `json:"reasons,omitempty"`

	// nodes is the bound: a number, or a percentage of the pool's nodes, rounded up.
	// +kubebuilder:default="10%"
	// +kubebuilder:validation:Pattern=`^((100|[0-9]{1,2})%|[0-9]+)$`
	// +required
	Nodes string `json:"nodes" hash:"ignore"`

	// schedule is when the budget begins to apply, as a cron expression in UTC. Without one it always applies.
	// +kubebuilder:validation:Pattern=`^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$`
	// +optional
	Schedule *string `json:"schedule,omitempty" hash:"ignore"`

	// duration is how long the budget applies from each moment of the schedule, in hours and minutes.
	// +kubebuilder:validation:Pattern=`^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$`
	// +kubebuilder:validation:Type=string
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty" hash:"ignore"`
}
