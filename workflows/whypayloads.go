package workflows

import "time"

// UpdateWhyPod asks Provisioning what the planner makes of one pending pod at this moment. It takes a PodQuestion and
// returns a PodAnswer. It plans, but changes nothing.
//
// It is an update because only a worker can answer it: the worker has the mirror of the cluster, the promises it has made,
// and the account's instance types and prices. Provisioning handles it, rather than a workflow of its own, because
// Provisioning knows which offerings were refused recently. Remembered answers would not do: the reasons of ten thousand
// pods are too much for a workflow's state, and old ones are worse than none.
const UpdateWhyPod = "why-pod"

// PodQuestion names a pod.
type PodQuestion struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Unavailable and Grown are filled in by Provisioning.
	Unavailable []Unavailable `json:"unavailable,omitempty"`
	Grown       []Grown       `json:"grown,omitempty"`
}

// PodVerdict is what the planner says of a pod.
type PodVerdict string

// The verdicts.
const (
	// PodUnknown says that the worker does not see the pod among the pending ones.
	PodUnknown PodVerdict = "Unknown"
	// PodPromised says that a plan has placed the pod on a node that is there or on its way.
	PodPromised PodVerdict = "Promised"
	// PodFits says that the pod fits on a node that is there or on its way.
	PodFits PodVerdict = "Fits"
	// PodLaunch says that a new node would be launched for the pod.
	PodLaunch PodVerdict = "Launch"
	// PodUnplaced says that no node can be provisioned for the pod.
	PodUnplaced PodVerdict = "Unplaced"
)

// PodAnswer is what is known of a pending pod.
type PodAnswer struct {
	Verdict PodVerdict `json:"verdict"`
	// Judged says that the kube-scheduler has looked at the pod and found no node for it. Until then Tenon leaves the pod
	// alone; the verdict is what it would do.
	Judged bool `json:"judged"`
	// Node is the NodeClaim that PodPromised and PodFits refer to, or the Node if there is no NodeClaim.
	Node string `json:"node,omitempty"`
	// NodePool, InstanceTypes, Zones, CapacityType and PricePerHour (in US dollars) describe the node of PodLaunch; there
	// may be more instance types than are listed.
	NodePool      string   `json:"nodePool,omitempty"`
	InstanceTypes []string `json:"instanceTypes,omitempty"`
	Zones         []string `json:"zones,omitempty"`
	CapacityType  string   `json:"capacityType,omitempty"`
	PricePerHour  float64  `json:"pricePerHour,omitempty"`
	// Reasons say for each NodePool why it cannot serve the pod. A reason without a NodePool is about the pod itself.
	Reasons []PodReason `json:"reasons,omitempty"`
	// Pending is how many pods were planned together.
	Pending int `json:"pending"`
}

// PodReason is why a NodePool cannot serve a pod.
type PodReason struct {
	NodePool string `json:"nodePool,omitempty"`
	Message  string `json:"message"`
}

// UpdateWhyNode asks Disruption what an evaluation makes of one node at this moment. It takes a NodeQuestion and returns a
// NodeAnswer. It decides and changes nothing.
//
// Like UpdateWhyPod, it is an update that a worker answers afresh: what kept a node at the last evaluation may no longer
// apply. Disruption handles it because only Disruption knows which replacements run and which nodes are left alone for a
// while.
const UpdateWhyNode = "why-node"

// NodeQuestion names a node.
type NodeQuestion struct {
	// Name is a Node's or a NodeClaim's.
	Name string `json:"name"`
	// Evaluate is filled in by Disruption.
	Evaluate EvaluateInput `json:"evaluate,omitzero"`
}

// NodeAnswer is what an evaluation makes of a node.
type NodeAnswer struct {
	// Known says that the worker has seen the node; if it has not, no other field is set.
	Known bool `json:"known"`
	// Node and Claim are the node's two names, of which one may be missing.
	Node     string `json:"node,omitempty"`
	Claim    string `json:"claim,omitempty"`
	NodePool string `json:"nodePool,omitempty"`
	// Managed says that the node comes from a NodeClaim of a NodePool. Only such nodes are disrupted.
	Managed bool `json:"managed"`
	// Leaving says that the node is being removed.
	Leaving bool `json:"leaving,omitempty"`
	// Replacement is the id of the replacement that removes the node, or for which it was launched.
	Replacement string `json:"replacement,omitempty"`
	// Verdicts say for each reason what keeps the node, if it is not to be removed.
	Verdicts []NodeVerdict `json:"verdicts,omitempty"`
	// Going is the decision that would remove the node, were an evaluation made now.
	Going *NodeDecision `json:"going,omitempty"`
}

// NodeVerdict is what keeps a node from being removed for one reason.
type NodeVerdict struct {
	Reason string `json:"reason"`
	// Cause is the kind of thing that keeps the node, such as Budget, PDB, Pod, Price, Quiet or Policy; None if the reason
	// does not apply to the node.
	Cause   string `json:"cause"`
	Message string `json:"message"`
	// Until is when the cause ends by itself; zero if something has to change first.
	Until time.Time `json:"until,omitzero"`
}

// NodeDecision is a decision to remove a node.
type NodeDecision struct {
	Reason string `json:"reason"`
	Why    string `json:"why,omitempty"`
	// Others are the NodeClaims that are removed together with it.
	Others []string `json:"others,omitempty"`
	// Replacements says what would be launched first, such as "spot m6i.large".
	Replacements []string `json:"replacements,omitempty"`
	// SavesPerHour is in US dollars.
	SavesPerHour float64 `json:"savesPerHour,omitempty"`
}
