package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"
)

// Sweep compares cloud, cluster and workflows once, and puts right what a bug or a person has left behind. A Schedule starts
// it every SweepNet. The leading worker triggers the Schedule every SweepInterval while anything that it compares is changing.
//
// Leftovers are removed once they have been that for a while. Since when they are must survive workers, so the result says
// it, and Temporal gives the result of the Schedule's last sweep that succeeded to the next one.
func Sweep(ctx workflow.Context, in SweepInput) (SweepResult, error) {
	if workflow.HasLastCompletionResult(ctx) {
		var last SweepResult
		if err := workflow.GetLastCompletionResult(ctx, &last); err != nil {
			workflow.GetLogger(ctx).Warn("what is known of leftovers cannot be read: their time begins again", "error", err)
		}
		in.Leftovers = last.Leftovers
	}
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
