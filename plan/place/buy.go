package place

import (
	"math"
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/solve"
)

// Buy finds machines for what is left of the demand chunks. planned nodes are those that are already bought: they are
// filled first, and they are part of the result.
func Buy(m *market.Market, planned []*PlannedNode, chunks []*DemandChunk) []*PlannedNode {
	for first := 0; first < len(m.Sellers); {
		last := first + 1
		for last < len(m.Sellers) && market.Weight(m.Sellers[last].NodePool) == market.Weight(m.Sellers[first].NodePool) {
			last++
		}
		planned = buyFrom(m, m.Sellers[first:last], planned, chunks)
		first = last
	}
	return planned
}

// buyFrom buys from pools of one weight. Reserved machines go first: they are paid for. Then comes what can only be had
// on demand, so that other pods may fill what it leaves. Pods that may use spot and on-demand take what is cheaper.
func buyFrom(m *market.Market, sellers []*market.Seller, planned []*PlannedNode, chunks []*DemandChunk) []*PlannedNode {
	offered := market.NewBitset(len(m.Machines))
	for _, s := range sellers {
		for i := s.First; i < s.Last; i++ {
			offered.Set(i)
		}
	}
	var tried capacityTries
	for {
		stocks := preferred(m, chunks, offered, tried)
		stock := firstNonEmpty(insistent(m, stocks[reservedFirst], offered), stocks[reservedFirst], stocks[onDemandNext], stocks[SpotLast])
		if len(stock) == 0 {
			return planned
		}
		tried.note(m, stock)
		for _, group := range components(m, stock) {
			planned = exhaust(m, group, planned)
		}
	}
}

// exhaust buys for demand chunks until nothing is left of them or nothing more can be had. What the pods' rules keep off
// the machines that were bought for them goes elsewhere in the next round.
func exhaust(m *market.Market, chunks []Supplied, planned []*PlannedNode) []*PlannedNode {
	before := make([]int, len(chunks))
	for {
		for i := range chunks {
			before[i] = chunks[i].Left()
		}
		demands := DemandsOf(m, chunks)
		topUp(m, planned, demands)
		demands = slices.DeleteFunc(demands, func(d stocked) bool {
			d.wanted = min(d.wanted, d.Pieces())
			return d.wanted == 0
		})
		if len(demands) == 0 {
			return planned
		}
		bought := purchase(m, demands, fewCandidateTypesFor(m, demands))
		if len(bought) == 0 {
			return planned
		}
		planned = append(planned, bought...)
		for i := range chunks {
			chunks[i].Quota = max(0, chunks[i].Quota-before[i]+chunks[i].Left())
		}
	}
}

// The order in which capacity types are bought, as places in CapacityTypes.
const (
	reservedFirst = 0
	SpotLast      = 1
	onDemandNext  = 2
)

func firstNonEmpty(stocks ...[]Supplied) []Supplied {
	for _, stock := range stocks {
		if len(stock) > 0 {
			return stock
		}
	}
	return nil
}

// capacityTries remembers which capacity types were tried for which demand chunks.
type capacityTries [len(market.CapacityTypes)]map[*DemandChunk]bool

func (t *capacityTries) note(m *market.Market, stock []Supplied) {
	for c := range t {
		for _, l := range stock {
			if !l.Stock.Intersects(byCapacity(m, c)) {
				continue
			}
			if t[c] == nil {
				t[c] = map[*DemandChunk]bool{}
			}
			t[c][l.DemandChunk] = true
		}
	}
}

// byCapacity are the machines of a capacity type.
func byCapacity(m *market.Market, capacity int) market.Bitset {
	if m.Capacities[capacity] == nil {
		m.Capacities[capacity] = m.Those(func(mach *market.Machine) bool { return mach.Capacity == capacity })
	}
	return m.Capacities[capacity]
}

// preferred gives each demand chunk the machines it may be bought now, and files it under a capacity type. Reserved
// machines come first. Spot and on-demand compete by price: a demand chunk that may use both is filed under spot.
func preferred(m *market.Market, chunks []*DemandChunk, offered market.Bitset, tried capacityTries) [len(market.CapacityTypes)][]Supplied {
	var result [len(market.CapacityTypes)][]Supplied
	for _, l := range chunks {
		if l.Left() == 0 {
			continue
		}
		at := -1
		var stock market.Bitset
		for c := range result {
			if tried[c][l] || at == reservedFirst {
				continue
			}
			more := l.Allowed.Clone()
			more.Intersect(offered)
			more.Intersect(byCapacity(m, c))
			market.WithoutUsedUp(m, more)
			switch {
			case more.Empty():
			case at < 0:
				at, stock = c, more
			default:
				stock.Unite(more)
			}
		}
		if at >= 0 {
			result[at] = append(result[at], Supplied{DemandChunk: l, Stock: stock, Quota: math.MaxInt})
		}
	}
	return result
}

// components splits demand chunks into groups that share no machine, so that each can be priced by itself.
func components(m *market.Market, chunks []Supplied) [][]Supplied {
	var groups [][]Supplied
	var reach []market.Bitset
	for _, l := range chunks {
		home := -1
		for g := 0; g < len(groups); g++ {
			switch {
			case groups[g] == nil || !l.Stock.Intersects(reach[g]):
			case home < 0:
				home = g
			default: // the demand chunk is what joins two groups
				groups[home] = append(groups[home], groups[g]...)
				reach[home].Unite(reach[g])
				groups[g] = nil
			}
		}
		if home < 0 {
			groups, reach = append(groups, []Supplied{l}), append(reach, l.Stock.Clone())
			continue
		}
		groups[home] = append(groups[home], l)
		reach[home].Unite(l.Stock)
	}
	return slices.DeleteFunc(groups, func(group []Supplied) bool { return group == nil })
}

// topUp puts pods onto machines that are already bought.
func topUp(m *market.Market, planned []*PlannedNode, demands []stocked) {
	for _, d := range demands {
		left := d.Pieces()
		for _, b := range planned {
			if left == 0 {
				break
			}
			n := min(left, solve.Times(d.Request, b.Free))
			if n == 0 || len(m.Sellers[m.Machines[b.Machine].Pool].Minimums) > 0 {
				continue // what narrows the choice further could break minValues
			}
			if n, v := b.Admits(m, d.Demand, n); n > 0 {
				done := 0
				for minding := MindsPods; minding <= MindsNothing; minding++ {
					done += FillUp(m, b, d.Demand, v, n-done, minding)
				}
				left -= done
			}
		}
	}
}

// insistent are the demand chunks that can be had in reservations only: they go before those that can do without.
func insistent(m *market.Market, stock []Supplied, offered market.Bitset) []Supplied {
	var only []Supplied
	for _, l := range stock {
		flexible := false
		for i := range l.Allowed.All {
			flexible = flexible || offered.Has(i) && m.Machines[i].Reservation == market.Unreserved
		}
		if !flexible {
			only = append(only, l)
		}
	}
	return only
}
