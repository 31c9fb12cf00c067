package plan_test

import (
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// slack is the factor by which a plan may be dearer than the one it is compared with. Spreading its pods over more
// nodes may cost a little.
func (b batch) slack() float64 {
	if b.pools[0].Packing == plan.PackingSpread {
		return 1.01
	}
	return 1 + 1e-9
}

// No plan is dearer than filling machines by hand: first fit in descending order of size into claims that become the
// cheapest type that holds their pods, or machines of the best single type.
func TestNoPlanIsDearerThanFillingByHand(t *testing.T) {
	t.Parallel()
	checkBatches(t, func(t *rapid.T, b batch) {
		p := plan.Pack(b.input())
		cost := b.total(p)
		if len(p.Unplaced) > 0 {
			if _, fits := b.firstFit(handTypes(b.pools[0].Types)); fits {
				t.Fatalf("%s is unplaced, and by hand it is not: %v", p.Unplaced[0].Pod.Key(), p.Unplaced[0].Reasons)
			}
			return
		}
		if price, fits := b.firstFit(handTypes(b.pools[0].Types)); fits && cost > price*b.slack() {
			t.Errorf("the plan costs $%.4f/h on %d nodes, first fit $%.4f/h: %.3f times as much%s", cost, len(p.Claims), price, cost/price, fleet(p))
		}
		if price, name := b.oneType(); cost > price*b.slack() {
			t.Errorf("the plan costs $%.4f/h on %d nodes, machines of type %s alone $%.4f/h: %.3f times as much%s", cost, len(p.Claims), name, price, cost/price, fleet(p))
		}
	})
}

// Realistic batches are planned without breaking a rule.
func TestBatchesBreakNoRule(t *testing.T) {
	t.Parallel()
	checkBatches(t, func(t *rapid.T, b batch) {
		check(t, b.world, plan.Pack(b.input()))
	})
}

// The same batch has the same plan when planned again, in whatever order it comes.
func TestBatchesHaveOnePlan(t *testing.T) {
	t.Parallel()
	checkBatches(t, func(t *rapid.T, b batch) {
		in := b.input()
		p := plan.Pack(in)
		if diff := comparePlans(p, plan.Pack(in)); diff != "" {
			t.Fatalf("the plan is another one when asked for again (-first +second):\n%s", diff)
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 1))
		again, snapshot := in, *in.Snapshot
		again.Snapshot = &snapshot
		snapshot.Pending, snapshot.DaemonSets = shuffled(r, snapshot.Pending), shuffled(r, snapshot.DaemonSets)
		if diff := comparePlans(p, plan.Pack(again)); diff != "" {
			t.Fatalf("the plan depends on the order of its input (-first +second):\n%s", diff)
		}
	})
}

// A pod that may be in any zone and one that has to be in one zone share a machine there.
func TestAPodOfOneZoneSharesAMachine(t *testing.T) {
	t.Parallel()
	large := machineSpec{name: "c5.large", cores: 2, memory: 4, price: 0.085}.instanceType()
	xlarge := machineSpec{name: "c5.xlarge", cores: 4, memory: 8, price: 0.17}.instanceType()
	for _, test := range []struct{ reason, bound, free string }{
		{reason: "the pod that may be anywhere is the smaller one", bound: "2500m", free: "1000m"},
		{reason: "the pod that may be anywhere is the larger one", bound: "1000m", free: "2500m"},
	} {
		w := &world{
			pods: []*corev1.Pod{
				newPod("bound", test.bound, "800Mi", selects(zone, "us-east-1b")),
				newPod("free", test.free, "1300Mi")},
			pools: []plan.Pool{{NodePool: nodePool("default", onDemand()), Types: []*cloud.InstanceType{large, xlarge}}},
		}
		in := w.input()
		in.Nominates = true
		p := plan.Pack(in)
		if p.PricePerHour() > 0.1701 {
			t.Errorf("%s: the plan costs $%.3f/h, and one c5.xlarge $0.17/h:%s", test.reason, p.PricePerHour(), fleet(p))
		}
	}
}
