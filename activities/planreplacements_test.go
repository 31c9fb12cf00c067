package activities

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/workflows"
)

// TestPlanReplacements asks about nodes that cannot be replaced: by the name of a Node, of a NodeClaim, and of neither. How
// others are replaced is for the planner to say, and for the laboratory.
func TestPlanReplacements(t *testing.T) {
	t.Parallel()
	claim, node := serving("a")
	other, otherNode := serving("b")
	otherNode.UID = "uid-other"
	r := newReplacing(t, nil, claim, node, other, otherNode)
	got, err := run(t, r.acts.PlanReplacements, workflows.ReplacementOrderInput{Nodes: []string{node.Name, other.Name, "nobody"}, By: "alice", Note: "bad disk"})
	if err != nil {
		t.Fatal(err)
	}
	want := []workflows.OrderObjection{{Node: "nobody", Cause: "None", Message: "the worker sees no such node"},
		{Node: "node-a", Cause: "Policy", Message: `its NodePool "p" does not exist`}, {Node: "node-b", Cause: "Policy", Message: `its NodePool "p" does not exist`}}
	if diff := cmp.Diff(want, got.Kept); diff != "" || len(got.Commands) != 0 {
		t.Errorf("commands %v, kept (-want +got):\n%s", got.Commands, diff)
	}
	if text := grounds(workflows.ReplacementOrderInput{By: "alice", Note: "bad disk"}); text != "alice has ordered it (bad disk)" {
		t.Errorf("the grounds are %q", text)
	}
}
