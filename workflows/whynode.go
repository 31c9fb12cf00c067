package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// WhyNodeActivity runs an evaluation to answer one person's question, and changes nothing. It gives up as soon as
// WhyPodActivity.
var WhyNodeActivity = Activity[NodeQuestion, NodeAnswer]{"WhyNode", WhyPodActivity.Policy}

// listen registers the update UpdateWhyNode.
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

// evaluateInput returns what Disruption knows and the mirror may not.
func (d *disruption) evaluateInput() EvaluateInput {
	return EvaluateInput{Running: d.Running, Leaving: d.Leaving, Held: d.Held, Unavailable: d.Unavailable, Disrupted: d.Disrupted, SeenVersion: d.SeenVersion, ClusterUID: d.ClusterUID}
}
