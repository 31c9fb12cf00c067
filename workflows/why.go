package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// listen registers the update UpdateWhyPod.
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
