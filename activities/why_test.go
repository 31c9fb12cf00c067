package activities

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	pod := &plan.Pod{UID: "u", Namespace: "shop", Name: "web-0"}
	many := []string{"a", "b", "c", "d", "e", "f", "g"}
	for name, test := range map[string]struct {
		reason string
		packed plan.Plan
		want   workflows.PodAnswer
	}{
		"Nowhere": {reason: "a pod that is in no plan", packed: plan.Plan{}, want: workflows.PodAnswer{Verdict: workflows.PodUnknown}},
		"Fits": {reason: "a pod that needs no new node",
			packed: plan.Plan{Placements: []plan.Placement{{Pod: pod, Node: "default-abcde"}}},
			want:   workflows.PodAnswer{Verdict: workflows.PodFits, Node: "default-abcde"}},
		"Launch": {reason: "a pod with others on a new node; a few types are enough to read",
			packed: plan.Plan{Claims: []plan.Claim{{NodePool: "other"}, {NodePool: "default", CapacityType: "spot", Zones: []string{"z"}, InstanceTypes: many, PricePerHour: 0.5, Pods: []types.UID{"x", "u"}}}},
			want:   workflows.PodAnswer{Verdict: workflows.PodLaunch, NodePool: "default", CapacityType: "spot", Zones: []string{"z"}, InstanceTypes: many[:typesShown], PricePerHour: 0.5}},
		"Unplaced": {reason: "every pool has its reason",
			packed: plan.Plan{Unplaced: []plan.Unplaced{{Pod: pod, Reasons: []plan.Reason{{NodePool: "a", Message: "x"}, {NodePool: "b", Message: "y"}}}}},
			want:   workflows.PodAnswer{Verdict: workflows.PodUnplaced, Reasons: []workflows.PodReason{{NodePool: "a", Message: "x"}, {NodePool: "b", Message: "y"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got workflows.PodAnswer
			judge(&got, test.packed, pod)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}
