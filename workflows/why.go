package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// UpdateWhyPod asks Provisioning what the planner makes of one pending pod at this moment. It takes a PodQuestion and
// answers with a PodAnswer. It plans and changes nothing.
//
// The question is an Update, because only a worker can answer it: it has the mirror of the cluster, the promises it has
// made and the account's instance types and prices. And it goes to Provisioning rather than to a workflow of its own,
// because Provisioning knows which offerings were refused lately. An answer from memory would do for neither: the reasons
// of ten thousand pods are too much to carry in a workflow's state, and old ones are worse than none.
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
	// PodUnknown says that the pod is not among those that wait, as far as the worker has seen.
	PodUnknown PodVerdict = "Unknown"
	// PodPromised says that a plan was made for the pod, and that the node is on its way or there.
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
	// Node is the NodeClaim, or the Node without one, that PodPromised and PodFits are about.
	Node string `json:"node,omitempty"`
	// NodePool, InstanceTypes, Zones, CapacityType and PricePerHour (in US dollars) are those of PodLaunch; there may be
	// more instance types than are listed.
	NodePool      string   `json:"nodePool,omitempty"`
	InstanceTypes []string `json:"instanceTypes,omitempty"`
	Zones         []string `json:"zones,omitempty"`
	CapacityType  string   `json:"capacityType,omitempty"`
	PricePerHour  float64  `json:"pricePerHour,omitempty"`
	// Reasons say for each NodePool why it cannot serve the pod. One without NodePool is about the pod itself.
	Reasons []PodReason `json:"reasons,omitempty"`
	// Pending is how many pods were planned together.
	Pending int `json:"pending"`
}

// PodReason is why a NodePool cannot serve a pod.
type PodReason struct {
	NodePool string `json:"nodePool,omitempty"`
	Message  string `json:"message"`
}

// listen has Provisioning answer questions.
func (p *provisioning) listen(ctx workflow.Context) error {
	answer := func(ctx workflow.Context, question PodQuestion) (PodAnswer, error) {
		question.Unavailable, question.Grown = p.Unavailable, p.Grown
		return WhyPodActivity.Run(ctx, question, "why pod "+question.Namespace+"/"+question.Name)
	}
	validate := func(question PodQuestion) error {
		if question.Namespace == "" || question.Name == "" {
			return temporal.NewApplicationError("name a pod: namespace and name", "Invalid")
		}
		return nil
	}
	if err := workflow.SetUpdateHandlerWithOptions(ctx, UpdateWhyPod, answer, workflow.UpdateHandlerOptions{Validator: validate}); err != nil {
		return fmt.Errorf("register update %s: %w", UpdateWhyPod, err)
	}
	return nil
}
