package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"
)

// Sweep compares cloud, cluster and workflows once, and puts right what a bug or a person has left behind. A Schedule starts
// it every SweepNet. The leading worker starts it every SweepInterval while anything that it compares is changing.
func Sweep(ctx workflow.Context, in SweepInput) (SweepResult, error) {
	result, err := SweepActivity.Run(ctx, in, "compare cloud, cluster and workflows")
	if err != nil {
		return result, err
	}
	details := fmt.Sprintf("%d instances and %d claims compared: %d instances terminated, %d claims adopted, %d claims lost, %d nodes let go, %d nodes unmarked, %d claims dropped, %d workflows ended, %d nodes left for the next sweep, %d failures.",
		result.Instances, result.Claims, len(result.Terminated), len(result.Adopted), len(result.Lost), len(result.Nodes), len(result.Unmarked), len(result.Dropped),
		len(result.Ended), result.Withheld, result.Failures)
	if result.Stopped != "" {
		details += "\n\n**Stopped**: " + result.Stopped + "."
	}
	for _, failed := range result.Failed {
		details += "\n\n- " + failed
	}
	for _, stuck := range result.Stuck {
		details += "\n\n- does not go on: " + stuck
	}
	workflow.SetCurrentDetails(ctx, details)
	return result, nil
}
