package worker

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	sdk "go.temporal.io/sdk/worker"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/logs"
)

func TestLinesOfActivitiesNameTheirWork(t *testing.T) {
	t.Parallel()
	core, lines := observer.New(zapcore.InfoLevel)
	log := zap.New(core)
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetWorkerOptions(sdk.Options{Interceptors: []interceptor.WorkerInterceptor{&activityLog{cluster: "blue", claim: func(string) *karpv1.NodeClaim { return nil }}}})
	env.RegisterActivityWithOptions(func(ctx context.Context) error {
		logs.Of(ctx, log).Info("in the activity")
		return nil
	}, activity.RegisterOptions{Name: "Join"})
	if _, err := env.ExecuteActivity("Join"); err != nil {
		t.Fatal(err)
	}
	fields := lines.All()[0].ContextMap()
	for _, key := range []string{logs.WorkflowID, logs.RunID} {
		if fields[key] == "" || fields[key] == nil {
			t.Errorf("the line has no %s: %v", key, fields)
		}
	}
	if fields[logs.Activity] != "Join" || fields[logs.Attempt] != int32(1) {
		t.Errorf("the line has activity %v, attempt %v, want Join, 1", fields[logs.Activity], fields[logs.Attempt])
	}
}

func TestWorkflowIDsSayWhatLinesAreAbout(t *testing.T) {
	t.Parallel()
	known := &karpv1.NodeClaim{}
	known.Labels = map[string]string{karpv1.NodePoolLabelKey: "web"}
	known.Status.NodeName = "n-1"
	l := &activityLog{cluster: "blue", claim: func(name string) *karpv1.NodeClaim {
		if name == "web-1" {
			return known
		}
		return nil
	}}
	for _, row := range []struct {
		why, workflow string
		want          map[string]any
	}{
		{why: "the mirror knows the pool and the node of a claim", workflow: "blue/nodeclaim/web-1", want: map[string]any{"claim": "web-1", "pool": "web", "node": "n-1"}},
		{why: "a claim may be gone", workflow: "blue/nodeclaim/web-2", want: map[string]any{"claim": "web-2"}},
		{why: "drains are of nodes, also of those without a claim", workflow: "blue/drain/n-2", want: map[string]any{"node": "n-2"}},
		{why: "a plan is about many", workflow: "blue/provisioning", want: map[string]any{}},
		{why: "another cluster's name may begin alike", workflow: "blue2/drain/n-2", want: map[string]any{}},
	} {
		got := zapcore.NewMapObjectEncoder()
		for _, field := range l.about(row.workflow) {
			field.AddTo(got)
		}
		if diff := cmp.Diff(row.want, got.Fields); diff != "" {
			t.Errorf("%s: -want +got\n%s", row.why, diff)
		}
	}
}
