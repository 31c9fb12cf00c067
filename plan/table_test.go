package plan

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// What a table says is the most valuable load is that: never less than any load is worth, and exactly the best one's worth
// where every resource that matters is a dimension of the table.
func TestTableFindsTheMostValuableLoad(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := good{index: 0, room: []int64{rapid.Int64Range(0, 4000).Draw(t, "cpu"), rapid.Int64Range(0, 4000).Draw(t, "memory"), 0, rapid.Int64Range(0, 6).Draw(t, "pods")}}
		g.prices = []float64{0.001, 0.001, 0, rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "price of a pod's place")}
		b := &buyer{}
		for k := range rapid.IntRange(1, 4).Draw(t, "items") {
			request := []int64{100 * rapid.Int64Range(0, 20).Draw(t, "cpu"), 50 * rapid.Int64Range(1, 30).Draw(t, "memory"), 0, 1}
			b.items = append(b.items, stocked{demand: &demand{request: request, most: rapid.IntRange(0, 2).Draw(t, "most")}})
			b.left = append(b.left, rapid.IntRange(0, 5).Draw(t, "left"))
			b.worth = append(b.worth, float64(rapid.IntRange(0, 9).Draw(t, "worth")))
			g.members = append(g.members, k)
			g.fit = append(g.fit, b.items[k].times(g.room))
		}
		best := mostValuable(b, 0, slices.Clone(g.room))
		limit, l, ok := b.heaviestByTable(&g)
		if !ok {
			return
		}
		if limit < best-1e-9 || g.prices[dimPods] > 0 && limit > best+1e-9 {
			t.Fatalf("the limit is %g, and the best load is worth %g", limit, best)
		}
		if l != nil && l.value > best+1e-9 {
			t.Fatalf("the load found is worth %g, and the best one %g", l.value, best)
		}
	})
}

// mostValuable tries all loads of items from a place on.
func mostValuable(b *buyer, k int, free []int64) float64 {
	if k == len(b.items) {
		return 0
	}
	best := 0.0
	for n := range min(b.left[k], b.items[k].times(free)) + 1 {
		rest := slices.Clone(free)
		take(rest, b.items[k].request, n)
		best = max(best, float64(n)*b.worth[k]+mostValuable(b, k+1, rest))
	}
	return best
}
