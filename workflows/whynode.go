package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// UpdateWhyNode asks Disruption what an evaluation makes of one node at this moment. It takes a NodeQuestion and answers
// with a NodeAnswer. It decides and changes nothing.
//
// As UpdateWhyPod it is an Update that a worker answers afresh: what kept a node at the last evaluation may be long gone.
// Disruption is asked because it alone knows which replacements run and which nodes are left alone for a while.
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
	// Known says that the worker has seen the node; nothing else is filled in where it has not.
	Known bool `json:"known"`
	// Node and Claim are the two names of it, of which one may be missing.
	Node     string `json:"node,omitempty"`
	Claim    string `json:"claim,omitempty"`
	NodePool string `json:"nodePool,omitempty"`
	// Managed says that it comes from a NodeClaim of a NodePool. Only such nodes are taken away.
	Managed bool `json:"managed"`
	// Leaving says that the node is on its way out.
	Leaving bool `json:"leaving,omitempty"`
	// Replacement is the one that takes the node away, or for which it was launched.
	Replacement string `json:"replacement,omitempty"`
	// Verdicts say for each reason what keeps the node, where it is not to go.
	Verdicts []NodeVerdict `json:"verdicts,omitempty"`
	// Going is the decision by which the node goes, were an evaluation made now.
	Going *NodeDecision `json:"going,omitempty"`
}

// NodeVerdict is what keeps a node from going for one reason.
type NodeVerdict struct {
	Reason string `json:"reason"`
	// Cause is the kind of thing that keeps the node, such as Budget, PDB, Pod, Price, Quiet or Policy; None where the
	// reason does not apply to it.
	Cause   string `json:"cause"`
	Message string `json:"message"`
	// Until is when it ends by itself; zero where something has to change.
	Until time.Time `json:"until,omitzero"`
}

// NodeDecision is a decision to take a node away.
type NodeDecision struct {
	Reason string `json:"reason"`
	Why    string `json:"why,omitempty"`
	// Others are the NodeClaims that go together with it.
	Others []string `json:"others,omitempty"`
	// Replacements says what would be launched first, such as "spot m6i.large".
	Replacements []string `json:"replacements,omitempty"`
	// SavesPerHour is in US dollars.
	SavesPerHour float64 `json:"savesPerHour,omitempty"`
}

// WhyNodeActivity evaluates for one person who asks, and changes nothing. It is given up as soon as WhyPodActivity.
var WhyNodeActivity = Activity[NodeQuestion, NodeAnswer]{"WhyNode", WhyPodActivity.Policy}

// listen has Disruption answer questions.
func (d *disruption) listen(ctx workflow.Context) error {
	answer := func(ctx workflow.Context, question NodeQuestion) (NodeAnswer, error) {
		question.Evaluate = d.evaluateInput()
		return WhyNodeActivity.Run(ctx, question, "why node "+question.Name)
	}
	validate := func(question NodeQuestion) error {
		if question.Name == "" {
			return temporal.NewApplicationError("name a node or a NodeClaim", "Invalid")
		}
		return nil
	}
	if err := workflow.SetUpdateHandlerWithOptions(ctx, UpdateWhyNode, answer, workflow.UpdateHandlerOptions{Validator: validate}); err != nil {
		return fmt.Errorf("register update %s: %w", UpdateWhyNode, err)
	}
	return nil
}

// evaluateInput is what Disruption knows and the mirror may not.
func (d *disruption) evaluateInput() EvaluateInput {
	return EvaluateInput{Running: d.Running, Leaving: d.Leaving, Held: d.Held, Unavailable: d.Unavailable, Disrupted: d.Disrupted, SeenVersion: d.SeenVersion, ClusterUID: d.ClusterUID}
}
