package place

import (
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
)

// BuyAll buys machines for what is left of pod groups, from the pools of one weight after the other. planned are the
// nodes that are already bought: they are filled first, and are part of the result.
func BuyAll(d *Distribution, planned []*PlannedNode, podGroups []*PodGroup) []*PlannedNode {
	for again := true; again; again = chunkAgain(d, podGroups) {
		for i, s := range d.Market.Sellers {
			if weight := market.Weight(s.NodePool); i == 0 || weight != market.Weight(d.Market.Sellers[i-1].NodePool) {
				planned = buyFrom(d.Market, weight, planned, d.Chunks)
			}
		}
	}
	return planned
}

// Capacity types, as indexes of market.CapacityTypes.
const (
	reserved = iota
	Spot
	onDemand
)

// buyFrom buys from the pools of one weight. Reserved machines are first, because they are paid for, and go first to
// pods that can have no others. Next come pods that can only run on demand, so that other pods may fill the room they
// leave. Pods that may use spot and on-demand take what is cheaper.
func buyFrom(m *market.Market, weight int32, planned []*PlannedNode, chunks []*DemandChunk) []*PlannedNode {
	var sold [len(market.CapacityTypes)]market.Bitset
	for c := range sold {
		sold[c] = market.NewBitset(len(m.Machines))
	}
	for i := range m.Machines {
		if market.Weight(market.SellerOf(m, i).NodePool) == weight {
			sold[m.Machines[i].Capacity].Set(i)
		}
	}
	unreserved := sold[Spot].Clone()
	unreserved.Unite(sold[onDemand])
	for _, r := range []round{
		{offered: sold[reserved], shunning: unreserved},
		{offered: sold[reserved]},
		{offered: sold[onDemand], shunning: sold[Spot]},
		{offered: unreserved},
	} {
		market.WithoutUsedUp(m, r.offered)
		for _, group := range r.components(chunks) {
			planned = exhaust(m, r.offered, planned, group)
		}
	}
	return planned
}

// round offers some machines to all pods except those that may use any of certain others (shunning).
type round struct{ offered, shunning market.Bitset }

// exhaust buys for demand chunks until nothing is left of them or nothing more can be bought. Pods that their rules
// keep off the machines bought for them get others in the next iteration.
func exhaust(m *market.Market, offered market.Bitset, planned []*PlannedNode, chunks []*DemandChunk) []*PlannedNode {
	for {
		demands := DemandsOf(m, chunks, offered)
		topUp(m, planned, demands)
		demands = slices.DeleteFunc(demands, func(d *Demand) bool { return d.Pieces() == 0 })
		bought := purchase(m, demands, thinned(m, candidateTypesFor(m, demands)))
		if len(bought) == 0 {
			return planned
		}
		planned = append(planned, bought...)
	}
}

// components returns the demand chunks of this round that are not bought for yet, in groups that share no machine, so
// that each group can be priced separately.
func (r round) components(chunks []*DemandChunk) [][]*DemandChunk {
	var groups [][]*DemandChunk
	var reaches []market.Bitset
	for _, l := range chunks {
		if l.Left() == 0 || !l.Allowed.Intersects(r.offered) || r.shunning.Intersects(l.Allowed) {
			continue
		}
		group, reach := []*DemandChunk(nil), l.Allowed.Clone()
		reach.Intersect(r.offered)
		for g := len(groups) - 1; g >= 0; g-- {
			if reaches[g].Intersects(reach) {
				group = append(groups[g], group...)
				reach.Unite(reaches[g])
				groups, reaches = slices.Delete(groups, g, g+1), slices.Delete(reaches, g, g+1)
			}
		}
		groups, reaches = append(groups, append(group, l)), append(reaches, reach)
	}
	return groups
}

// topUp puts pods onto machines that are already bought.
func topUp(m *market.Market, planned []*PlannedNode, demands []*Demand) {
	for _, d := range demands {
		for _, b := range planned {
			if len(market.SellerOf(m, b.Machine).Minimums) == 0 { // narrowing the choice further could break minValues
				b.Take(m, d)
			}
		}
	}
}
