package plan

import (
	"cmp"
	"math/bits"
	"slices"
)

// good is a machine that may be bought for a group of items.
type good struct {
	index int
	// room is what can be filled: less than the machine's where minValues demands smaller alternatives.
	room  []int64
	price float64
	// size is what the pool's limits are charged: the largest capacity the launch may come to by minValues.
	size Resources
	// users are the kinds of stock that have the machine.
	users bitset
}

// goodsFor are the machines worth looking at: those that no other beats. One that is as large and as cheap, and open to
// the same items in the same zones, makes another superfluous.
func (m *market) goodsFor(items []stocked) []good {
	reach := newBitset(len(m.machines))
	var zones uint64
	var stocks []bitset
	known := map[string]bool{}
	for _, it := range items {
		reach.unite(it.stock)
		for v := range it.variants {
			zones |= it.variants[v].zones
		}
		if key := it.stock.key(); !known[key] {
			known[key] = true
			stocks = append(stocks, it.stock)
		}
	}
	var goods []good
	for i := range reach.all {
		g := good{index: i, room: m.machines[i].usable, price: m.nodePriceIn(i, zones), size: m.machines[i].size, users: newBitset(len(stocks))}
		for k, stock := range stocks {
			if stock.has(i) {
				g.users.set(k)
			}
		}
		goods = append(goods, g)
	}
	goods = m.withChoice(goods)
	slices.SortStableFunc(goods, func(x, y good) int {
		return cmp.Or(cmp.Compare(x.price, y.price), -cmp.Compare(x.room[dimCPU], y.room[dimCPU]), -cmp.Compare(x.room[dimMemory], y.room[dimMemory]))
	})
	var front []good
	for _, g := range goods {
		if !slices.ContainsFunc(front, func(other good) bool { return m.beats(&other, &g) }) {
			front = append(front, g)
		}
	}
	return front
}

// fewGoodsFor are as many of them as are enough to plan with.
func (m *market) fewGoodsFor(items []stocked) []good { return thinned(m.goodsFor(items)) }

// Of machines that differ in little but size, a few sizes are enough to plan with: the claim is for the smallest that
// holds what was planned for it.
const (
	manyGoods = 48
	sizeStep  = 1.18
	sameShape = 0.03
)

// thinned leaves out goods that are nearly a kept one. Each item that has a machine keeps one.
func thinned(goods []good) []good {
	if len(goods) <= manyGoods {
		return goods
	}
	near := func(a, b float64, share float64) bool { return a <= b*(1+share) && b <= a*(1+share) }
	var kept []good
	for i := range goods {
		g := &goods[i]
		cores, memory := float64(g.room[dimCPU]), float64(g.room[dimMemory])
		if !slices.ContainsFunc(kept, func(k good) bool {
			size := float64(k.room[dimCPU])
			return size > 0 && cores >= size && cores < size*sizeStep && near(memory/cores, float64(k.room[dimMemory])/size, sameShape) &&
				near(g.price/cores, k.price/size, sameShape) && g.users.within(k.users)
		}) {
			kept = append(kept, *g)
		}
	}
	return kept
}

// beats says that whatever fits one good fits the other, which is not dearer in any zone.
func (m *market) beats(other, g *good) bool {
	a, b := &m.machines[other.index], &m.machines[g.index]
	if a.pool != b.pool && !m.interchangeable(a.pool, b.pool) || b.zones&^a.zones != 0 ||
		m.limited(other.index) || m.tightens(a.pool, other.size, g.size) {
		return false
	}
	for d := range g.room {
		if other.room[d] < g.room[d] {
			return false
		}
	}
	for zones := b.zones; zones != 0; zones &= zones - 1 {
		if z := bits.TrailingZeros64(zones); m.priceAt(other.index, z) > m.priceAt(g.index, z) {
			return false
		}
	}
	return g.users.within(other.users)
}

// interchangeable says that no limit makes it matter from which of two pools of the same weight a machine comes.
func (m *market) interchangeable(a, b int) bool {
	return len(m.sellers[a].budget) == 0 && len(m.sellers[a].open) == 0 && len(m.sellers[b].open) == 0
}
