package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Activity names one side effect and fixes its input, its output, and how long and how often it is tried. The worker
// registers an implementation under Name; a workflow runs it with Run. All but WhyNodeActivity are in policies.go.
type Activity[In, Out any] struct {
	// Name is the name under which the activity is registered and which the Temporal UI shows.
	Name   string
	Policy Policy
}

// Policy is how an activity is tried.
type Policy struct {
	// Attempt bounds one try (start to close).
	Attempt time.Duration
	// Total bounds all tries together (schedule to close); zero means for ever.
	Total time.Duration
	// Heartbeat is how soon a dead worker is noticed; zero for activities too short to need it.
	Heartbeat time.Duration
	// First and Most are the first and the longest pause between tries; each pause is twice the one before.
	First, Most time.Duration
	// Tries bounds the number of tries; zero means no bound.
	Tries int32
}

// Run executes the activity and waits for its result. The summary, at most 200 bytes, is shown beside the activity in
// the Temporal UI. When ctx is cancelled, Run waits until the activity has stopped.
func (a Activity[In, Out]) Run(ctx workflow.Context, in In, summary string) (Out, error) {
	var out Out
	err := a.Start(ctx, in, summary).Get(ctx, &out)
	return out, err
}

// Start schedules the activity and returns its future. It has the priority of its workflow, unless ctx says otherwise.
func (a Activity[In, Out]) Start(ctx workflow.Context, in In, summary string) workflow.Future {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout:    a.Policy.Attempt,
		ScheduleToCloseTimeout: a.Policy.Total,
		HeartbeatTimeout:       a.Policy.Heartbeat,
		WaitForCancellation:    true,
		Summary:                summary,
		Priority:               workflow.GetActivityOptions(ctx).Priority,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    a.Policy.First,
			BackoffCoefficient: 2,
			MaximumInterval:    a.Policy.Most,
			MaximumAttempts:    a.Policy.Tries,
		},
	})
	return workflow.ExecuteActivity(ctx, a.Name, in)
}
