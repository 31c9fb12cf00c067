package place

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
)

// candidateType is a machine that may be bought for a group of pod groups.
type candidateType struct {
	index int
	// room is what can be filled: less than the machine's where minValues demands smaller alternatives.
	room  []int64
	price float64
	// size is what the pool's limits are charged: the largest capacity the launch may come to by minValues.
	size model.Resources
	// users are the kinds of stock that have the machine.
	users market.Bitset
}

// candidateTypesFor are the machines worth looking at: those that no other beats. One that is as large and as cheap, and
// open to the same pod groups in the same zones, makes another superfluous.
func candidateTypesFor(m *market.Market, podGroups []stocked) []candidateType {
	reach := market.NewBitset(len(m.Machines))
	var zones uint64
	var stocks []market.Bitset
	known := map[string]bool{}
	for _, it := range podGroups {
		reach.Unite(it.stock)
		for v := range it.variants {
			zones |= it.variants[v].Zones
		}
		if key := it.stock.Key(); !known[key] {
			known[key] = true
			stocks = append(stocks, it.stock)
		}
	}
	var candidates []candidateType
	for i := range reach.All {
		g := candidateType{index: i, room: m.Machines[i].Usable, price: m.NodePriceIn(i, zones), size: m.Machines[i].Size, users: market.NewBitset(len(stocks))}
		for k, stock := range stocks {
			if stock.Has(i) {
				g.users.Set(k)
			}
		}
		candidates = append(candidates, g)
	}
	candidates = withChoice(m, candidates)
	slices.SortStableFunc(candidates, func(x, y candidateType) int {
		return cmp.Or(cmp.Compare(x.price, y.price), -cmp.Compare(x.room[market.DimCPU], y.room[market.DimCPU]), -cmp.Compare(x.room[market.DimMemory], y.room[market.DimMemory]))
	})
	var front []candidateType
	for _, g := range candidates {
		if !slices.ContainsFunc(front, func(other candidateType) bool { return beats(m, &other, &g) }) {
			front = append(front, g)
		}
	}
	return front
}

// fewCandidateTypesFor are as many of them as are enough to plan with.
func fewCandidateTypesFor(m *market.Market, podGroups []stocked) []candidateType {
	return thinned(candidateTypesFor(m, podGroups))
}

// Of machines that differ in little but size, a few sizes are enough to plan with: the claim is for the smallest that
// holds what was planned for it.
const (
	manyGoods = 48
	sizeStep  = 1.18
	sameShape = 0.03
)

// thinned leaves out candidate types that are nearly a kept one. Each pod group that has a machine keeps one.
func thinned(candidates []candidateType) []candidateType {
	if len(candidates) <= manyGoods {
		return candidates
	}
	near := func(a, b float64, share float64) bool { return a <= b*(1+share) && b <= a*(1+share) }
	var kept []candidateType
	for i := range candidates {
		g := &candidates[i]
		cores, memory := float64(g.room[market.DimCPU]), float64(g.room[market.DimMemory])
		if !slices.ContainsFunc(kept, func(k candidateType) bool {
			size := float64(k.room[market.DimCPU])
			return size > 0 && cores >= size && cores < size*sizeStep && near(memory/cores, float64(k.room[market.DimMemory])/size, sameShape) &&
				near(g.price/cores, k.price/size, sameShape) && g.users.Within(k.users)
		}) {
			kept = append(kept, *g)
		}
	}
	return kept
}

// beats says that whatever fits one good fits the other, which is not dearer in any zone.
func beats(m *market.Market, other, g *candidateType) bool {
	a, b := &m.Machines[other.index], &m.Machines[g.index]
	if a.Pool != b.Pool && !interchangeable(m, a.Pool, b.Pool) || b.Zones&^a.Zones != 0 ||
		m.Limited(other.index) || m.Tightens(a.Pool, other.size, g.size) {
		return false
	}
	for d := range g.room {
		if other.room[d] < g.room[d] {
			return false
		}
	}
	for zones := b.Zones; zones != 0; zones &= zones - 1 {
		if z := bits.TrailingZeros64(zones); m.PriceAt(other.index, z) > m.PriceAt(g.index, z) {
			return false
		}
	}
	return g.users.Within(other.users)
}

// interchangeable says that no limit makes it matter from which of two pools of the same weight a machine comes.
func interchangeable(m *market.Market, a, b int) bool {
	return len(m.Sellers[a].Budget) == 0 && len(m.Sellers[a].Open) == 0 && len(m.Sellers[b].Open) == 0
}
