package place

import (
	"cmp"
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/solve"
)

// candidateType is a machine that may be bought for a group of demands.
type candidateType struct {
	index int
	// zones are those in which it may be bought.
	zones uint64
	// room is the room that can be filled. It is less than the machine's where minValues requires smaller alternatives.
	room  []int64
	price float64
	// size is charged to the pool's limits: the largest capacity that the launch may get under minValues.
	size model.Resources
	// users are the kinds of stock that have the machine.
	users market.Bitset
}

// candidateTypesFor returns the machines worth considering: those that no other beats. A machine is superfluous if
// another is as large, as cheap, and open to the same demands in the same zones.
func candidateTypesFor(m *market.Market, demands []*Demand) []candidateType {
	reach := market.NewBitset(len(m.Machines))
	var zones uint64
	var stocks []market.Bitset
	known := map[string]bool{}
	for _, d := range demands {
		reach.Unite(d.stock)
		zones |= ZonesOfVariants(d.variants)
		if key := d.stock.Key(); !known[key] {
			known[key] = true
			stocks = append(stocks, d.stock)
		}
	}
	var candidates []candidateType
	for i := range reach.All {
		mach := &m.Machines[i]
		g := candidateType{index: i, zones: mach.Zones, room: mach.Usable, price: m.PriceIn(i, zones) + market.SellerOf(m, i).NodePrice,
			size: mach.Size, users: market.NewBitset(len(stocks))}
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
		if !slices.ContainsFunc(front, func(other candidateType) bool { return other.beats(m, &g) }) {
			front = append(front, g)
		}
	}
	return front
}

// Where machines differ in little but size, a few sizes are enough to plan with: the claim will be for the smallest
// that holds what was planned for it.
const (
	manyGoods = 48
	sizeStep  = 1.18
	sameShape = 0.03
)

// thinned leaves out candidate types that nearly equal one that is kept. Each demand that has a machine keeps one.
func thinned(m *market.Market, candidates []candidateType) []candidateType {
	if len(candidates) <= manyGoods {
		return candidates
	}
	near := func(a, b float64) bool { return a <= b*(1+sameShape) && b <= a*(1+sameShape) }
	var kept []candidateType
	for _, g := range candidates {
		cores, memory := float64(g.room[market.DimCPU]), float64(g.room[market.DimMemory])
		if !slices.ContainsFunc(kept, func(k candidateType) bool {
			size := float64(k.room[market.DimCPU])
			return size > 0 && cores >= size && cores < size*sizeStep && near(memory/cores, float64(k.room[market.DimMemory])/size) &&
				near(g.price/cores, k.price/size) && g.users.Within(k.users) &&
				slices.Equal(g.room[m.Dims.Claimed(0):], k.room[m.Dims.Claimed(0):])
		}) {
			kept = append(kept, g)
		}
	}
	return kept
}

// beats reports whether everything that fits another candidate type fits this one, this one is not dearer in any zone,
// and no limit makes it matter which of two pools of the same weight sells the machine.
func (g *candidateType) beats(m *market.Market, other *candidateType) bool {
	a, b := market.SellerOf(m, g.index), market.SellerOf(m, other.index)
	if a != b && len(a.Budget)+len(a.Open)+len(b.Open) > 0 || m.Machines[g.index].Reservation != market.Unreserved || m.Tightens(m.Machines[g.index].Pool, g.size, other.size) ||
		other.zones&^g.zones != 0 || !other.users.Within(g.users) || !solve.Fits(other.room, g.room) {
		return false
	}
	for z := range (market.Bitset{other.zones}).All {
		if m.PriceAt(g.index, z) > m.PriceAt(other.index, z) {
			return false
		}
	}
	return true
}

// soldByZone returns the candidate types as they are sold to some demands: one entry for all zones, or one per zone
// where demands are bound to zones.
func soldByZone(m *market.Market, demands []*Demand, candidates []candidateType) []candidateType {
	if !slices.ContainsFunc(demands, func(d *Demand) bool {
		return slices.ContainsFunc(d.variants, func(v market.Variant) bool { return m.AllZones&^v.Zones != 0 })
	}) {
		return candidates
	}
	var sold []candidateType
	for _, g := range candidates {
		for z := range (market.Bitset{g.zones}).All {
			g.zones = 1 << z
			sold = append(sold, g)
		}
	}
	return sold
}
