package outside_test

import (
	"fmt"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/test/world"
	"github.com/tenon-sh/tenon/workflows"
)

// sweepsRemember kills the worker. The sweeps of the next worker know since when leftovers are that:
// Temporal's Schedule hands on the result of the last sweep that succeeded.
func sweepsRemember(w *world.World) {
	schedule := w.Temporal.ScheduleClient().GetHandle(w.Context(), workflows.Cluster(w.Lab.Cluster()).SweepID())
	// sweptAfter returns what the first sweep that began after a time knew of leftovers at its end.
	sweptAfter := func(began time.Time) *workflows.Leftovers {
		var result workflows.SweepResult
		w.Await("a sweep that began after "+began.Format(time.TimeOnly), time.Minute, func() (bool, string) {
			_ = schedule.Trigger(w.Context(), client.ScheduleTriggerOptions{})
			for _, run := range w.Runs("WorkflowType = 'Sweep' AND ExecutionStatus = 'Completed'") {
				if run.Events[0].GetEventTime().AsTime().Before(began) {
					continue
				}
				end := run.Events[len(run.Events)-1].GetWorkflowExecutionCompletedEventAttributes()
				if err := converter.GetDefaultDataConverter().FromPayloads(end.GetResult(), &result); err != nil {
					w.T.Fatalf("result of %s: %v", run.ID, err)
				}
				return true, ""
			}
			return false, "there is none"
		})
		return result.Leftovers
	}
	first := sweptAfter(time.Time{})
	if first == nil || first.Asked.IsZero() {
		w.T.Fatalf("a sweep says nothing of leftovers: %+v", first)
	}
	if err := w.Lab.Kill(lab.Worker, syscall.SIGKILL); err != nil {
		w.T.Fatal(err)
	}
	killed := time.Now()
	if again := sweptAfter(killed); again == nil || !again.Asked.Equal(first.Asked) {
		w.T.Errorf("a new worker's sweep knows %s, want what the last one knew: %s", describe(again), describe(first))
	}
}

// describe says what is known of leftovers.
func describe(known *workflows.Leftovers) string {
	if known == nil {
		return "nothing"
	}
	return fmt.Sprintf("%v, asked for at %s", known.Known, known.Asked)
}
