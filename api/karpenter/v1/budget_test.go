package v1_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// monday is a Monday at noon, UTC.
var monday = time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)

func TestAllowedDisruptions(t *testing.T) {
	t.Parallel()
	scheduled := func(nodes, schedule string, duration time.Duration) v1.Budget {
		return v1.Budget{Nodes: nodes, Schedule: ptr.To(schedule), Duration: &metav1.Duration{Duration: duration}}
	}
	for _, tc := range []struct {
		reason  string
		budgets []v1.Budget
		nodes   int
		now     time.Time
		want    int
		wantErr string
	}{
		{reason: "no budget bounds nothing", nodes: 7, want: v1.Unbounded},
		{reason: "a number is taken as it is", budgets: []v1.Budget{{Nodes: "3"}}, nodes: 100, want: 3},
		{reason: "a number may be more than there is", budgets: []v1.Budget{{Nodes: "30"}}, nodes: 2, want: 30},
		{reason: "percentages are rounded up", budgets: []v1.Budget{{Nodes: "10%"}}, nodes: 1, want: 1},
		{reason: "percentages of whole numbers are exact", budgets: []v1.Budget{{Nodes: "10%"}}, nodes: 20, want: 2},
		{reason: "nothing of nothing", budgets: []v1.Budget{{Nodes: "50%"}}, nodes: 0, want: 0},
		{reason: "zero per cent forbids", budgets: []v1.Budget{{Nodes: "0%"}}, nodes: 50, want: 0},
		{reason: "the smallest decides", budgets: []v1.Budget{{Nodes: "50%"}, {Nodes: "4"}, {Nodes: "90%"}}, nodes: 10, want: 4},
		{
			reason:  "a budget for another reason does not apply",
			budgets: []v1.Budget{{Nodes: "0", Reasons: []v1.DisruptionReason{v1.DisruptionReasonDrifted}}, {Nodes: "5"}},
			nodes:   10, want: 5,
		},
		{
			reason:  "a budget for this reason applies",
			budgets: []v1.Budget{{Nodes: "1", Reasons: []v1.DisruptionReason{v1.DisruptionReasonEmpty}}, {Nodes: "5"}},
			nodes:   10, want: 1,
		},
		{reason: "within the schedule", budgets: []v1.Budget{scheduled("0", "0 9 * * mon-fri", 8*time.Hour)}, nodes: 10, want: 0},
		{reason: "after the schedule", budgets: []v1.Budget{scheduled("0", "0 9 * * mon-fri", time.Hour)}, nodes: 10, want: v1.Unbounded},
		{reason: "on another day", budgets: []v1.Budget{scheduled("0", "0 9 * * tue", 8*time.Hour)}, nodes: 10, want: v1.Unbounded},
		{reason: "at the first moment", budgets: []v1.Budget{scheduled("0", "0 12 * * *", time.Minute)}, nodes: 10, want: 0},
		{reason: "just before the first moment", budgets: []v1.Budget{scheduled("0", "0 12 * * *", time.Minute)}, nodes: 10, now: monday.Add(-time.Second), want: v1.Unbounded},
		{reason: "schedules are UTC wherever the worker is", budgets: []v1.Budget{scheduled("0", "0 12 * * *", time.Minute)}, nodes: 10, now: monday.In(time.FixedZone("east", 7*3600)), want: 0},
		{reason: "words are schedules", budgets: []v1.Budget{scheduled("0", "@daily", 13*time.Hour)}, nodes: 10, want: 0},
		{reason: "what cannot be read forbids", budgets: []v1.Budget{scheduled("5", "@never x", time.Hour), {Nodes: "5"}}, nodes: 10, want: 0, wantErr: "spec.disruption.budgets[0]"},
		{reason: "a bad number forbids", budgets: []v1.Budget{{Nodes: "ten"}}, nodes: 10, want: 0, wantErr: `nodes "ten"`},
		{reason: "half a schedule forbids", budgets: []v1.Budget{{Nodes: "9", Schedule: ptr.To("@daily")}}, nodes: 10, want: 0, wantErr: "together"},
	} {
		now := tc.now
		if now.IsZero() {
			now = monday
		}
		pool := &v1.NodePool{Spec: v1.NodePoolSpec{Disruption: v1.Disruption{Budgets: tc.budgets}}}
		got, err := pool.AllowedDisruptions(now, tc.nodes, v1.DisruptionReasonEmpty)
		if got != tc.want {
			t.Errorf("%s: allowed %d, want %d", tc.reason, got, tc.want)
		}
		if (err != nil) != (tc.wantErr != "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
			t.Errorf("%s: error %v, want one with %q", tc.reason, err, tc.wantErr)
		}
	}
}
