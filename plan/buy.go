package plan

import (
	"math"
	"slices"
)

// bin is a machine that is bought, and what goes onto it.
type bin struct {
	machine int
	zones   uint64
	content []portion
	// used is what the content takes, free what it leaves.
	used, free []int64
	// least is what a machine has to have to be launched in place of this one; nil if the content says it.
	least []int64
	// size is what the pool's limits were charged for it.
	size  Resources
	ports []HostPort
	// custom are the content's conditions on labels its pool leaves open.
	custom term
	// tally counts the pods of the groups over hostnames, attach how many volumes the node can still attach.
	tally  []int32
	attach *attachRoom
}

// need is what a machine has to have to be launched for the bin.
func (b *bin) need() []int64 {
	if b.least != nil {
		return b.least
	}
	return b.used
}

// portion is a number of alike pieces in a bin.
type portion struct {
	variant *variant
	// request is what one piece takes.
	request []int64
	count   int
	pods    []*Pod
}

// buy finds machines for what is left of the lots. bins are those that are already bought: they are filled first, and
// they are part of the result.
func (m *market) buy(bins []*bin, lots []*lot) []*bin {
	for first := 0; first < len(m.sellers); {
		last := first + 1
		for last < len(m.sellers) && weight(m.sellers[last].NodePool) == weight(m.sellers[first].NodePool) {
			last++
		}
		bins = m.buyFrom(m.sellers[first:last], bins, lots)
		first = last
	}
	return bins
}

// buyFrom buys from pools of one weight. Reserved machines go first: they are paid for. Then comes what can only be had
// on demand, so that other pods may fill what it leaves. Pods that may use spot and on-demand take what is cheaper.
func (m *market) buyFrom(sellers []*seller, bins []*bin, lots []*lot) []*bin {
	offered := newBitset(len(m.machines))
	for _, s := range sellers {
		for i := s.first; i < s.last; i++ {
			offered.set(i)
		}
	}
	var tried capacityTries
	for {
		stocks := m.preferred(lots, offered, tried)
		stock := firstNonEmpty(m.insistent(stocks[reservedFirst], offered), stocks[reservedFirst], stocks[onDemandNext], stocks[spotLast])
		if len(stock) == 0 {
			return bins
		}
		tried.note(m, stock)
		for _, group := range m.components(stock) {
			bins = m.exhaust(group, bins)
		}
	}
}

// exhaust buys for lots until nothing is left of them or nothing more can be had. What the pods' rules keep off the
// machines that were bought for them goes elsewhere in the next round.
func (m *market) exhaust(lots []supplied, bins []*bin) []*bin {
	before := make([]int, len(lots))
	for {
		for i := range lots {
			before[i] = lots[i].left()
		}
		demands := m.demandsOf(lots)
		topUp(m, bins, demands)
		demands = slices.DeleteFunc(demands, func(d stocked) bool {
			d.wanted = min(d.wanted, d.pieces())
			return d.wanted == 0
		})
		if len(demands) == 0 {
			return bins
		}
		bought := m.purchase(demands, m.fewGoodsFor(demands))
		if len(bought) == 0 {
			return bins
		}
		bins = append(bins, bought...)
		for i := range lots {
			lots[i].quota = max(0, lots[i].quota-before[i]+lots[i].left())
		}
	}
}

// The order in which capacity types are bought, as places in capacityTypes.
const (
	reservedFirst = 0
	spotLast      = 1
	onDemandNext  = 2
)

func firstNonEmpty(stocks ...[]supplied) []supplied {
	for _, stock := range stocks {
		if len(stock) > 0 {
			return stock
		}
	}
	return nil
}

// capacityTries remembers which capacity types were tried for which lots.
type capacityTries [len(capacityTypes)]map[*lot]bool

func (t *capacityTries) note(m *market, stock []supplied) {
	for c := range t {
		for _, l := range stock {
			if !l.stock.intersects(m.byCapacity(c)) {
				continue
			}
			if t[c] == nil {
				t[c] = map[*lot]bool{}
			}
			t[c][l.lot] = true
		}
	}
}

// byCapacity are the machines of a capacity type.
func (m *market) byCapacity(capacity int) bitset {
	if m.capacities[capacity] == nil {
		set := newBitset(len(m.machines))
		for i := range m.machines {
			if m.machines[i].capacity == capacity {
				set.set(i)
			}
		}
		m.capacities[capacity] = set
	}
	return m.capacities[capacity]
}

// preferred gives each lot the machines it may be bought now, and files it under a capacity type. Reserved machines come
// first. Spot and on-demand compete by price: a lot that may use both is filed under spot.
func (m *market) preferred(lots []*lot, offered bitset, tried capacityTries) [len(capacityTypes)][]supplied {
	var result [len(capacityTypes)][]supplied
	for _, l := range lots {
		if l.left() == 0 {
			continue
		}
		at := -1
		var stock bitset
		for c := range result {
			if tried[c][l] || at == reservedFirst {
				continue
			}
			more := l.allowed.clone()
			more.intersect(offered)
			more.intersect(m.byCapacity(c))
			m.withoutUsedUp(more)
			switch {
			case more.empty():
			case at < 0:
				at, stock = c, more
			default:
				stock.unite(more)
			}
		}
		if at >= 0 {
			result[at] = append(result[at], supplied{lot: l, stock: stock, quota: math.MaxInt})
		}
	}
	return result
}

// components splits lots into groups that share no machine, so that each can be priced by itself.
func (m *market) components(lots []supplied) [][]supplied {
	var groups [][]supplied
	var reach []bitset
	for _, l := range lots {
		home := -1
		for g := 0; g < len(groups); g++ {
			switch {
			case groups[g] == nil || !l.stock.intersects(reach[g]):
			case home < 0:
				home = g
			default: // the lot is what joins two groups
				groups[home] = append(groups[home], groups[g]...)
				reach[home].unite(reach[g])
				groups[g] = nil
			}
		}
		if home < 0 {
			groups, reach = append(groups, []supplied{l}), append(reach, l.stock.clone())
			continue
		}
		groups[home] = append(groups[home], l)
		reach[home].unite(l.stock)
	}
	return slices.DeleteFunc(groups, func(group []supplied) bool { return group == nil })
}

// topUp puts pods onto machines that are already bought.
func topUp(m *market, bins []*bin, demands []stocked) {
	for _, d := range demands {
		left := d.pieces()
		for _, b := range bins {
			if left == 0 {
				break
			}
			n := min(left, times(d.request, b.free))
			if n == 0 || len(m.sellers[m.machines[b.machine].pool].minimums) > 0 {
				continue // what narrows the choice further could break minValues
			}
			if n, v := b.admits(m, d.demand, n); n > 0 {
				done := 0
				for minding := mindsPods; minding <= mindsNothing; minding++ {
					done += m.fillUp(b, d.demand, v, n-done, minding)
				}
				left -= done
			}
		}
	}
}

// admits says how many of n pods the bin takes for all reasons but room, and by which variant.
func (b *bin) admits(m *market, d *demand, n int) (count, variant int) {
	if len(d.ports) > 0 {
		if portsConflict(b.ports, d.ports) {
			return 0, 0
		}
		n = 1
	}
	for v := range d.variants {
		candidate := &d.variants[v]
		if !candidate.machines.has(b.machine) || candidate.zones&b.zones == 0 {
			continue
		}
		if len(candidate.custom) > 0 {
			s := m.sellers[m.machines[b.machine].pool]
			if _, ok := s.settle(append(slices.Clone(b.custom), candidate.custom...)); !ok {
				continue
			}
		}
		return n, v
	}
	return 0, 0
}

// account changes what the bin takes in by n pieces of a demand, without placing them.
func (b *bin) account(d *demand, v, n int) {
	take(b.free, d.request, n)
	take(b.used, d.request, -n)
	b.zones &= d.variants[v].zones
	b.custom = append(b.custom, d.variants[v].custom...)
	b.ports = append(b.ports, d.ports...)
}
