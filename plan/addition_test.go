package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// Of eight nodes with a large pod and nine with a small one, eight are not needed. One small pod is over, for which a
// machine is bought that is cheaper than the ninth, if there is such a machine.
func TestNodesGoForWhatIsBoughtForSmallPods(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		small  int
		sold   []string
		nodes  int
		bought []string
	}{
		"cheaper": {reason: "a small machine costs a fourth of what it saves", small: 9, sold: []string{"m5zn.xlarge", "c5a.large"}, nodes: 9, bought: []string{"c5a.large"}},
		"none":    {reason: "nothing cheaper is sold", small: 9, sold: []string{"m5zn.xlarge"}, nodes: 8},
		"few":     {reason: "few nodes go, where the kube-scheduler may do as it likes", small: 7, sold: []string{"m5zn.xlarge", "c5a.large"}, nodes: 7},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			types := slices.DeleteFunc(slices.Clone(realCatalogue(t)), func(typ *cloud.InstanceType) bool { return !slices.Contains(test.sold, typ.Name) })
			tn := newTown(&world{pools: []plan.Pool{{NodePool: nodePool("default", onDemand()), Types: types}}})
			claim := &plan.Claim{NodePool: "default", CapacityType: "on-demand", InstanceTypes: []string{"m5zn.xlarge"}, Zones: []string{"us-east-1a"}}
			for _, pod := range slices.Concat(manyPods(8, "large", "2700m", "1Gi"), manyPods(test.small, "small", "900m", "1Gi")) {
				tn.settle(pod, tn.build(t, claim))
			}
			var went int
			var bought []string
			commands := plan.Disrupt(tn.input()).Commands
			for _, c := range commands {
				went += len(c.Nodes)
				for i := range c.Replacements {
					bought = append(bought, c.Replacements[i].InstanceTypes[0])
					if !c.Late || !c.Apart {
						t.Errorf("%s: %s is not bought for small pods alone", test.reason, c.Replacements[i].InstanceTypes[0])
					}
				}
			}
			if went != test.nodes || !slices.Equal(bought, test.bought) {
				t.Errorf("%s: %d nodes go for %v, want %d for %v", test.reason, went, bought, test.nodes, test.bought)
			}
			if late := tn.carryOut(t, commands); late > 0 || tn.doubted > 0 {
				t.Errorf("%s: %d pods have no room, %d nodes were doubted", test.reason, late, tn.doubted)
			}
		})
	}
}

// While the pods of many nodes are about to move, no other node is found underutilized, but not for ever.
func TestNothingElseGoesWhileManyMove(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		moving int
		after  time.Duration
		gone   bool
		waits  bool
	}{
		"about to": {reason: "nine nodes with pods are marked", moving: 9, waits: true},
		"few":      {reason: "where the pods of eight go is little", moving: 8},
		"moved":    {reason: "their pods have moved", moving: 9, gone: true},
		"for ever": {reason: "a budget may keep them for days", moving: 9, after: 4 * time.Minute},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tn := newTown(&world{pools: []plan.Pool{{NodePool: nodePool("default", onDemand()), Types: realCatalogue(t)}}})
			claim := &plan.Claim{NodePool: "default", CapacityType: "on-demand", InstanceTypes: []string{"m5.xlarge"}, Zones: []string{"us-east-1a"}}
			for i := range test.moving {
				n := tn.build(t, claim)
				n.Replacement, n.Disrupted, n.Deleting = "r", true, true
				if !test.gone {
					tn.settle(newPod(fmt.Sprintf("moves-%d", i), "1", "1Gi"), n)
				}
			}
			tn.build(t, &plan.Claim{NodePool: "default", CapacityType: "on-demand", InstanceTypes: []string{"m5.8xlarge"}, Zones: []string{"us-east-1a"}}).Replacement = "r"
			idle := tn.build(t, claim)
			tn.settle(newPod("idle", "100m", "128Mi"), idle)
			tn.settle(newPod("busy", "3", "1Gi"), tn.build(t, claim))
			in := tn.input()
			in.Snapshot.Time = now.Add(test.after)
			found := plan.Disrupt(in)
			at := slices.IndexFunc(found.Verdicts, func(v plan.Verdict) bool {
				return v.Node == idle.Key() && v.Reason == karpv1.DisruptionReasonUnderutilized && v.Cause == plan.CauseQuiet
			})
			if waits := at >= 0; waits != test.waits || waits == (len(found.Commands) > 0) {
				t.Errorf("%s: the idle node waits: %t, %d commands", test.reason, waits, len(found.Commands))
			}
			if test.waits && !found.NextLook.Equal(now.Add(4*time.Minute)) {
				t.Errorf("%s: looked at again at %v", test.reason, found.NextLook)
			}
		})
	}
}
