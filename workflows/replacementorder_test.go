package workflows

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/workflow"
)

func TestReplacementOrder(t *testing.T) {
	t.Parallel()
	node := func(name string) []RemovedNode {
		return []RemovedNode{{Node: name, NodePool: "p", Claim: ClaimRef{Name: "claim-" + name}}}
	}
	bought := ReplacementCommand{Reason: ReasonManualReplacement, Nodes: node("a"), Moves: 2, Why: "alice has ordered it",
		Claims: []PlannedClaim{{NodePool: "p", CapacityType: "spot", InstanceTypes: []string{"m6i.large", "c6i.large"}}}}
	fits := ReplacementCommand{Reason: ReasonManualReplacement, Nodes: node("b")}
	kept := OrderObjection{Node: "c", Cause: "Leaving", Message: "it is already being removed"}
	for _, test := range []struct {
		reason  string
		dry     bool
		planned PlannedReplacements
		fails   error
		// started are the nodes whose replacement began, by replacement.
		started  []string
		launches [][]string
	}{
		{reason: "each decision is a Replacement of its own", planned: PlannedReplacements{Commands: []ReplacementCommand{bought, fits}, Kept: []OrderObjection{kept}, ClusterUID: "u"},
			started: []string{"a", "b"}, launches: [][]string{{"spot m6i.large"}, nil}},
		{reason: "a dry run begins nothing", dry: true, planned: PlannedReplacements{Commands: []ReplacementCommand{bought}}, launches: [][]string{{"spot m6i.large"}}},
		{reason: "without a decision there is nothing to begin", planned: PlannedReplacements{Kept: []OrderObjection{kept}}},
		{reason: "what cannot be decided is said to whoever asks", fails: errors.New("the mirror is stale")},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			f := &fakes{order: func(in ReplacementOrderInput) (PlannedReplacements, error) {
				if in.By != "alice" {
					t.Errorf("the order came from %q", in.By)
				}
				return test.planned, test.fails
			}}
			env := environment(t, f)
			var started, ids []string
			env.OnWorkflow(ReplacementType, anything, anything).Return(func(_ workflow.Context, in ReplacementInput) (ReplacementResult, error) {
				started, ids = append(started, in.Nodes[0].Node), append(ids, in.ID)
				if in.ClusterUID != test.planned.ClusterUID || in.Cluster != "c" {
					t.Errorf("the replacement is of cluster %s (%s)", in.Cluster, in.ClusterUID)
				}
				return ReplacementResult{}, nil
			}).Maybe()
			env.ExecuteWorkflow(ReplacementOrderType, ReplacementOrderInput{Cluster: "c", Nodes: []string{"a", "b", "c"}, By: "alice", DryRun: test.dry})
			var result ReplacementOrderResult
			if err := env.GetWorkflowResult(&result); (err != nil) != (test.fails != nil) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.started, started); diff != "" {
				t.Errorf("started (-want +got):\n%s", diff)
			}
			var launches [][]string
			for i, r := range result.Replacements {
				launches = append(launches, r.Launches)
				if !test.dry && r.ID != ids[i] || test.dry && r.ID != "" {
					t.Errorf("replacement %q is said to be %q", ids, r.ID)
				}
			}
			if diff := cmp.Diff(test.launches, launches); diff != "" {
				t.Errorf("launches (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.planned.Kept, result.Kept); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
		})
	}
}
