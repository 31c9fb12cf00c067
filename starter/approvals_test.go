package starter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zaptest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// asking is a mirror of nodes and NodePools.
type asking struct {
	Mirror
	snapshot *plan.Snapshot
	stale    error
}

func (a *asking) Snapshot() *plan.Snapshot         { return a.snapshot }
func (a *asking) Fresh(time.Duration) error        { return a.stale }
func (a *asking) NodePool(string) *karpv1.NodePool { return a.snapshot.NodePools[0] }

// TestApprovalsAreAskedFor lets a decision come, wait, become outdated and go, and checks what Temporal is told.
func TestApprovalsAreAskedFor(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: map[string]string{karpv1.ApprovalAnnotationKey: "empty"}}}
	node := &plan.Node{Name: "node-a", Claim: "a", Pool: "p"}
	mirror := &asking{snapshot: &plan.Snapshot{NodePools: []*karpv1.NodePool{pool}, Nodes: []*plan.Node{node}}}
	registry := prometheus.NewRegistry()
	metrics, err := NewApprovalMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	// shown returns the values of the metrics by their names, with the labels of the only series.
	shown := func() map[string]float64 {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]float64{}
		for _, family := range families {
			for _, series := range family.GetMetric() {
				values[fmt.Sprint(family.GetName(), " ", series.GetLabel()[0].GetValue(), " ", series.GetLabel()[1].GetValue())] = series.GetGauge().GetValue()
			}
		}
		return values
	}
	var found plan.Approvals
	temporal := &signals{}
	a := &approvals{mirror: mirror, workflows: &signaller{temporal: temporal, cluster: "c"}, metrics: metrics, log: zaptest.NewLogger(t), proposed: sightings{}, outdated: sightings{},
		find: func(context.Context, *plan.Snapshot) plan.Approvals { return found }}
	proposal := plan.Approvals{Proposals: []plan.Proposal{{ID: "a1", Command: plan.Command{Reason: karpv1.DisruptionReasonEmpty, Nodes: []string{"a"}}}}}
	waits := []karpv1.Approval{{ID: "a1", State: karpv1.ApprovalWaiting, Reason: karpv1.DisruptionReasonEmpty, Since: start, Claims: []string{"a"}}}
	told := func() string {
		var all []string
		for _, s := range temporal.all {
			all = append(all, strings.TrimSpace(fmt.Sprint(s.Workflow, " ", s.Name)))
		}
		temporal.all = nil
		return strings.Join(all, ", ")
	}
	const asks, withdraws = "c/approval/a1", "c/approval/a1 withdraw"
	for _, step := range []struct {
		reason    string
		after     time.Duration
		found     plan.Approvals
		approvals []karpv1.Approval
		gone      bool
		stale     error
		refuses   int
		want      string
		waiting   bool
	}{
		{reason: "a decision has to last", found: proposal},
		{reason: "it is gone, and comes back", after: time.Minute},
		{reason: "so it begins anew", after: time.Minute, found: proposal},
		{reason: "nothing is concluded from an old view", after: proposeAfter, found: proposal, stale: errors.New("old")},
		{reason: "Temporal does not answer", after: proposeAfter, found: proposal, refuses: 1},
		{reason: "people are asked", found: proposal, want: asks},
		{reason: "once", after: time.Second, found: proposal},
		{reason: "and again if no claim says so for long", after: askAgain, found: proposal, want: asks},
		{reason: "the claim says that they are asked", after: time.Second, approvals: waits, waiting: true},
		{reason: "the decision does not hold at the moment", after: time.Minute, approvals: waits, found: plan.Approvals{Outdated: map[string]string{"a1": "it runs"}}, waiting: true},
		{reason: "it does again", after: proposeAfter, approvals: waits, waiting: true},
		{reason: "it does not any more", after: time.Minute, approvals: waits, found: plan.Approvals{Outdated: map[string]string{"a1": "it runs"}}, waiting: true},
		{reason: "for long", after: proposeAfter, approvals: waits, found: plan.Approvals{Outdated: map[string]string{"a1": "it runs"}}, want: withdraws, waiting: true},
		{reason: "the node is gone", after: time.Minute, gone: true, want: withdraws},
		{reason: "which is told once", after: time.Minute, gone: true},
	} {
		start = start.Add(step.after)
		found, mirror.stale, temporal.refuses = step.found, step.stale, step.refuses
		seen := *node
		seen.Approvals = step.approvals
		mirror.snapshot = &plan.Snapshot{NodePools: mirror.snapshot.NodePools}
		if !step.gone {
			mirror.snapshot.Nodes = []*plan.Node{&seen}
		}
		if wait := a.look(t.Context(), start); wait <= 0 || wait > idleLookEvery {
			t.Errorf("%s: looks again in %s", step.reason, wait)
		}
		if got := told(); got != step.want {
			t.Errorf("%s: told %q, want %q", step.reason, got, step.want)
		}
		want := map[string]float64{}
		if step.waiting {
			want = map[string]float64{"tenon_approvals_waiting p Empty": 1, "tenon_approvals_oldest_timestamp_seconds p Empty": float64(waits[0].Since.Unix())}
		}
		if diff := cmp.Diff(want, shown()); diff != "" {
			t.Errorf("%s: metrics (-want +got):\n%s", step.reason, diff)
		}
	}
	mirror.snapshot.NodePools[0].Annotations = nil
	a.find = func(context.Context, *plan.Snapshot) plan.Approvals {
		t.Error("a cluster without approvals is planned for")
		return plan.Approvals{}
	}
	if a.look(t.Context(), start); !cmp.Equal(told(), "") {
		t.Error("something is told")
	}
}
