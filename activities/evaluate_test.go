package activities

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// onePool is a mirror with one pool, whose moved pods have to be Ready first.
type onePool struct{ Mirror }

func (onePool) NodePool(name string) *karpv1.NodePool {
	if name != "careful" {
		return nil
	}
	return &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{karpv1.WaitForReadyAnnotationKey: "true"}}}
}

// TestCommandsAreFrozen checks that the planner's decisions become removals and replacements, that an evaluation stays far
// below the limits of a payload however much is decided, and that Again is set for the rest.
func TestCommandsAreFrozen(t *testing.T) {
	t.Parallel()
	acts := New(Config{Mirror: onePool{}, Log: zap.NewNop()})
	snapshot := &plan.Snapshot{}
	node := func(name, pool string) string {
		snapshot.Nodes = append(snapshot.Nodes, &plan.Node{Name: "node-" + name, UID: types.UID("node-uid-" + name), Claim: name, ClaimUID: types.UID("uid-" + name), Pool: pool})
		return name
	}
	small := plan.Disruption{Commands: []plan.Command{
		{Reason: karpv1.DisruptionReasonEmpty, Nodes: []string{node("empty", "p")}},
		{Reason: karpv1.DisruptionReasonDrifted},
		{Reason: karpv1.DisruptionReasonDrifted, Nodes: []string{node("drifted", "careful")}, Replacements: []plan.Claim{{NodePool: "careful"}}, Moves: 2, Why: "so"},
		{Reason: karpv1.DisruptionReasonUnderutilized, Nodes: []string{node("idle", "p")}},
	}}
	got := acts.commands(t.Context(), small, snapshot)
	if len(got.Commands) != 1 || len(got.Replacements) != 2 || got.Again {
		t.Fatalf("%+v", got)
	}
	want := workflows.RemovedNode{Node: "node-drifted", NodeUID: "node-uid-drifted", NodePool: "careful", Claim: workflows.ClaimRef{Name: "drifted", UID: "uid-drifted"}}
	if drifted := got.Replacements[0]; drifted.Nodes[0] != want || !drifted.WaitForReady || drifted.Moves != 2 || len(drifted.Claims) != 1 || got.Replacements[1].WaitForReady {
		t.Errorf("%+v", got.Replacements)
	}

	large := plan.Claim{NodePool: "p"}
	for i := range plan.MaxInstanceTypes {
		large.InstanceTypes = append(large.InstanceTypes, fmt.Sprintf("m6idn.%dxlarge", i))
	}
	for i := range 200 {
		large.Pods = append(large.Pods, types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i)))
	}
	for _, claims := range []int{0, 1, 20} {
		var found plan.Disruption
		for i := range 3 * maxReplace {
			command := plan.Command{Reason: karpv1.DisruptionReasonDrifted, Nodes: []string{node(fmt.Sprintf("many-%d-%d", claims, i), "p")}}
			for range claims {
				command.Replacements = append(command.Replacements, large)
			}
			found.Commands = append(found.Commands, command)
		}
		got := acts.commands(t.Context(), found, snapshot)
		if claims == 0 {
			if len(got.Replacements) != 3 || len(got.Replacements[0].Nodes) != maxReplace || !got.Replacements[0].Independent || got.Again {
				t.Errorf("what needs no launch does not go together: %d replacements", len(got.Replacements))
			}
			continue
		}
		encoded, err := json.Marshal(got)
		if err != nil || len(encoded) > 1<<19 || !got.Again || len(got.Replacements) == 0 || len(got.Replacements) > maxReplace {
			t.Errorf("%d claims each: %d replacements in %d bytes, again %t, %v", claims, len(got.Replacements), len(encoded), got.Again, err)
		}
	}
}

// TestOverlay checks that nodes are shown as leaving before the mirror does so, without a change to shared objects.
func TestOverlay(t *testing.T) {
	t.Parallel()
	a, b, foreign := &plan.Node{Name: "a", Claim: "claim-a"}, &plan.Node{Name: "b", Claim: "claim-b"}, &plan.Node{Name: "c"}
	shared := []*plan.Node{a, b, foreign}
	snapshot := &plan.Snapshot{Nodes: shared}
	overlay(snapshot, going([]workflows.Running{{ID: "r1", Claims: []string{"claim-a", "gone"}}}, []workflows.Leaving{{Claim: "", Until: time.Now()}}))
	if !snapshot.Nodes[0].Disrupted || !snapshot.Nodes[0].Deleting || snapshot.Nodes[1].Disrupted || snapshot.Nodes[2].Disrupted {
		t.Errorf("%+v %+v %+v", snapshot.Nodes[0], snapshot.Nodes[1], snapshot.Nodes[2])
	}
	if a.Disrupted || shared[0] != a {
		t.Error("a node that others look at was changed")
	}
}
