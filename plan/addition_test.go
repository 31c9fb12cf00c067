package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/plan/model"
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

// A NodePool that waits for the pods it has moved takes its step beside the others, which do not wait for it.
func TestWhoWaitsForPodsGoesAlone(t *testing.T) {
	t.Parallel()
	types := slices.DeleteFunc(slices.Clone(realCatalogue(t)), func(typ *cloud.InstanceType) bool {
		return !slices.Contains([]string{"m5zn.xlarge", "c5a.large"}, typ.Name)
	})
	careful := nodePool("careful", onDemand())
	careful.Annotations = map[string]string{karpv1.WaitForReadyAnnotationKey: "true"}
	tn := newTown(&world{pools: []plan.Pool{{NodePool: nodePool("default", onDemand()), Types: types}, {NodePool: careful, Types: types}}})
	build := func(pool string) *plan.Node {
		return tn.build(t, &plan.Claim{NodePool: pool, CapacityType: "on-demand", InstanceTypes: []string{"m5zn.xlarge"}, Zones: []string{"us-east-1a"}})
	}
	own := map[string]bool{}
	for _, pod := range manyPods(2, "careful", "900m", "1Gi") {
		n := build("careful")
		own[n.Key()] = true
		tn.settle(pod, n)
	}
	for _, pod := range slices.Concat(manyPods(10, "large", "2700m", "1Gi"), manyPods(10, "small", "900m", "1Gi")) {
		tn.settle(pod, build("default"))
	}
	late, alone := 0, 0
	for _, c := range plan.Disrupt(tn.input()).Commands {
		if c.Late {
			late++
		}
		for _, key := range c.Nodes {
			if own[key] && (c.Late || len(c.Nodes) > 1) {
				t.Errorf("%s goes with %d nodes", key, len(c.Nodes))
			} else if own[key] {
				alone++
			}
		}
	}
	if late != 1 || alone != 1 {
		t.Errorf("%d commands for small pods, %d nodes of the pool that waits", late, alone)
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

// What is launched for the small pods of many nodes has no room for all their pods: the others spend the room that there
// is, and whoever else has to move finds none there.
func TestManyPodsDoNotFitOnWhatIsLaunchedForSome(t *testing.T) {
	t.Parallel()
	tn := newTown(&world{pools: []plan.Pool{{NodePool: nodePool("default", onDemand()), Types: realCatalogue(t)}}})
	build := func(typ string) *plan.Node {
		return tn.build(t, &plan.Claim{NodePool: "default", CapacityType: "on-demand", InstanceTypes: []string{typ}, Zones: []string{"us-east-1a"}})
	}
	for i := range 9 {
		n := build("m5.xlarge")
		n.Replacement, n.Disrupted, n.Deleting = "r", true, true
		tn.settle(newPod(fmt.Sprintf("moves-%d", i), "3", "1Gi"), n)
	}
	build("m5.8xlarge") // There is room for ten of them.
	launching := build("m5.large")
	launching.Name, launching.Launched, launching.Registered, launching.Initialized, launching.Ready = "", false, false, false, false
	launching.Replacement = "r"
	launching.Requirements = model.Term{among(corev1.LabelInstanceTypeStable, "m5.large")}
	drifted := build("m5.2xlarge")
	drifted.Drifted, drifted.DriftedFor, drifted.DriftedAt = true, "NodePoolDrifted", now
	tn.settle(newPod("drifted", "6", "1Gi"), drifted)
	commands := plan.Disrupt(tn.input()).Commands
	if len(commands) != 1 || commands[0].Reason != karpv1.DisruptionReasonDrifted || len(commands[0].Replacements) != 1 {
		t.Errorf("%+v", commands)
	}
}
