package plan_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenon-sh/tenon/plan"
)

// slack is by which factor a plan may be dearer than another one that it is held against. What spreads its pods over more
// nodes may cost a little for it.
func (b batch) slack() float64 {
	if b.pools[0].Packing == plan.PackingSpread {
		return 1.01
	}
	return 1 + 1e-9
}

// No plan is dearer than what anybody gets by filling machines by hand: first fit in falling order of size into claims that
// become the cheapest type which holds their pods, or machines of the best single type.
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

// The same batch has the same plan when it is asked again, in whatever order.
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
