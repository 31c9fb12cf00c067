package failpoint

import (
	"context"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/tenon-sh/tenon/workflows"
)

// TestBoundsShortenWaits checks that a worker under test waits for as long as its environment says, and never longer than
// without it.
func TestBoundsShortenWaits(t *testing.T) {
	for name, test := range map[string]struct {
		stable, serve         string
		wantStable, wantServe time.Duration
	}{
		"both":            {stable: "5s", serve: "75s", wantStable: 5 * time.Second, wantServe: 75 * time.Second},
		"one":             {serve: "75s", wantStable: workflows.StableFor, wantServe: 75 * time.Second},
		"they only bound": {stable: "1h", serve: "24h", wantStable: workflows.StableFor, wantServe: workflows.ReplacementPatience},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(StableVariable, test.stable)
			t.Setenv(ServeVariable, test.serve)
			points, err := FromEnvironment()
			if err != nil || points == nil {
				t.Fatalf("%v, %v", points, err)
			}
			env := new(testsuite.WorkflowTestSuite).NewTestWorkflowEnvironment()
			env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{points.Interceptor()}})
			env.RegisterActivityWithOptions(func(_ context.Context, in workflows.AwaitReplacementsInput) (time.Time, error) { return in.Until, nil },
				activity.RegisterOptions{Name: workflows.AwaitReplacementsActivity.Name})
			var stable, serve time.Duration
			env.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
				began := workflow.Now(ctx)
				if err := workflow.NewTimerWithOptions(ctx, workflows.StableFor, workflow.TimerOptions{}).Get(ctx, nil); err != nil {
					return err
				}
				stable = workflow.Now(ctx).Sub(began)
				began = workflow.Now(ctx)
				var until time.Time
				ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
				err := workflow.ExecuteActivity(ctx, workflows.AwaitReplacementsActivity.Name,
					workflows.AwaitReplacementsInput{Until: began.Add(workflows.ReplacementPatience)}).Get(ctx, &until)
				serve = until.Sub(began)
				return err
			}, workflow.RegisterOptions{Name: workflows.ReplacementType})
			env.ExecuteWorkflow(workflows.ReplacementType)
			if err := env.GetWorkflowError(); err != nil {
				t.Fatal(err)
			}
			if stable != test.wantStable || serve != test.wantServe {
				t.Errorf("nodes go after %s and replacements may take %s, want %s and %s", stable, serve, test.wantStable, test.wantServe)
			}
		})
	}
}

// TestNothingIsInstalledUnasked checks that a worker in production has none of this.
func TestNothingIsInstalledUnasked(t *testing.T) {
	for _, variable := range []string{PointsVariable, DirVariable, HeartbeatVariable, StableVariable, ServeVariable} {
		t.Setenv(variable, "")
	}
	if points, err := FromEnvironment(); points != nil || err != nil {
		t.Errorf("%v, %v", points, err)
	}
}
