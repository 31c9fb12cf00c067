package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// All decided commands can be carried out at once: every pod that has to move has a place, nothing that is bought costs
// more than what it replaces, and no more nodes are removed than the budgets allow.
func TestCommandsCanAllBeCarriedOut(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]drawing{
		"no relations": {replicas: 12, settled: true, unlimited: true},
		"relations":    {replicas: 6, relations: relations(), settled: true, unlimited: true},
		"preferences":  {replicas: 8, preferences: preferences(), settled: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				w := settledWorld(t, d)
				budget := rapid.SampledFrom([]string{"100%", "2", "50%"}).Draw(t, "budget")
				for _, pool := range w.pools {
					pool.NodePool.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: budget}}
				}
				if len(w.waiting()) > 0 {
					return // waiting pods may need machines themselves
				}
				in := w.input()
				in.SpotToSpot = rapid.Bool().Draw(t, "spot to spot")
				found := plan.Disrupt(in)
				checkBudgets(t, w, found)
				after := w.afterwards(t, found)
				packed := plan.Pack(after.input())
				if len(packed.Claims) > 0 || len(packed.Unplaced) > 0 {
					t.Fatalf("%v\nafter %s there is no room for all: %s", w, outlined(found), outline(packed))
				}
				check(t, after, packed)
			})
		})
	}
}

// afterwards returns the world with the nodes of all commands leaving and their replacements there. It checks what the
// replacements cost.
func (w *world) afterwards(t fataler, found plan.Disruption) *world {
	t.Helper()
	var going []string
	next := &town{world: &world{pools: w.pools}}
	for i := range found.Commands {
		c := &found.Commands[i]
		before, after := 0.0, 0.0
		for _, n := range w.nodes {
			if slices.Contains(c.Nodes, n.Key()) {
				for _, o := range w.poolOf(n.Pool).typeNamed(n.InstanceType).Offerings {
					if o.Zone == n.Zone && o.CapacityType == n.CapacityType {
						before += o.Price // also where no more can be bought
					}
				}
			}
		}
		for j := range c.Replacements {
			claim := &c.Replacements[j]
			for _, name := range claim.InstanceTypes {
				for _, z := range claim.Zones {
					price, ok := offeringOf(w.poolOf(claim.NodePool).typeNamed(name), z, claim.CapacityType)
					if ok && c.Reason == karpv1.DisruptionReasonUnderutilized && price >= before {
						t.Fatalf("%v are replaced by %s in %s for $%.4f, which saves nothing", c.Nodes, name, z, price)
					}
				}
			}
			n := next.build(t, claim)
			after += claim.PricePerHour
			n.Taints = w.poolOf(claim.NodePool).NodePool.Spec.Template.Spec.Taints
		}
		if saves := before - after; c.Reason == karpv1.DisruptionReasonUnderutilized && (saves-c.SavesPerHour > 1e-9 || c.SavesPerHour-saves > 1e-9) {
			t.Fatalf("%v save $%.4f, and $%.4f is said", c.Nodes, saves, c.SavesPerHour)
		}
		going = append(going, c.Nodes...)
	}
	after := w.without(going...)
	after.policy = plan.PreferencesIgnore // a plan would buy where a preference was given up
	after.nodes = append(after.nodes, next.nodes...)
	return after
}

// checkBudgets checks the number of nodes that are removed.
func checkBudgets(t fataler, w *world, found plan.Disruption) {
	t.Helper()
	taken := map[string]int{}
	seen := map[string]bool{}
	for i := range found.Commands {
		for _, key := range found.Commands[i].Nodes {
			if seen[key] {
				t.Fatalf("%s goes twice", key)
			}
			seen[key] = true
			at := slices.IndexFunc(w.nodes, func(n *plan.Node) bool { return n.Key() == key })
			taken[w.nodes[at].Pool]++
		}
	}
	for _, pool := range w.pools {
		nodes, disrupting := 0, 0
		for _, n := range w.nodes {
			if n.Pool == pool.NodePool.Name && n.Initialized {
				nodes++
				if !n.Ready || going(n) {
					disrupting++
				}
			}
		}
		allowed, err := pool.NodePool.AllowedDisruptions(now, nodes, karpv1.DisruptionReasonUnderutilized)
		if err != nil {
			t.Fatal(err)
		}
		if n := taken[pool.NodePool.Name]; n > max(0, allowed-disrupting) {
			t.Fatalf("%d nodes of %s go, and %d are allowed besides %d", n, pool.NodePool.Name, allowed, disrupting)
		}
	}
}

// The same cluster has the same result, in whatever order its nodes, DaemonSets and pools come.
func TestDisruptRepeats(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := settledWorld(t, allWishes())
		in := w.input()
		first := plan.Disrupt(in)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 1))
		again, snapshot := in, *in.Snapshot
		again.Snapshot = &snapshot
		snapshot.Nodes, snapshot.DaemonSets = shuffled(r, snapshot.Nodes), shuffled(r, snapshot.DaemonSets)
		again.Pools = shuffled(r, again.Pools)
		if diff := cmp.Diff(first, plan.Disrupt(again)); diff != "" {
			t.Fatalf("%v\nthe answer depends on the order of the question (-first +second):\n%s", w, diff)
		}
	})
}

// outlined returns a disruption in short form.
func outlined(d plan.Disruption) string {
	text := ""
	for i := range d.Commands {
		text += fmt.Sprintf("%s %s (%s); ", d.Commands[i].Reason, describe(&d.Commands[i]), d.Commands[i].Why)
	}
	return text
}
