package plan

import "slices"

// bin is a machine that is bought, and what goes onto it.
type bin struct {
	machine int
	zones   uint64
	content []portion
	// used is what the content takes, free what it leaves. slack is the share of a machine that shall stay free.
	used, free []int64
	slack      float64
	shaped     bool
	// size is what the pool's limits were charged for it.
	size  Resources
	ports []HostPort
	// custom are the content's conditions on labels its pool leaves open.
	custom term
}

// portion is a number of alike pods in a bin.
type portion struct {
	it      *item
	variant int
	count   int
	pods    []*Pod
}

// buy finds machines for what is left of the items. bins are those that are already bought: they are filled first, and
// they are part of the result.
func (m *market) buy(bins []*bin, items []*item) []*bin {
	for first := 0; first < len(m.sellers); {
		last := first + 1
		for last < len(m.sellers) && weight(m.sellers[last].NodePool) == weight(m.sellers[first].NodePool) {
			last++
		}
		bins = m.buyFrom(m.sellers[first:last], bins, items)
		first = last
	}
	return bins
}

// buyFrom buys from pools of one weight. Reserved machines go first: they are paid for. Then comes what can only be had
// on demand, so that other pods may fill what it leaves. Pods for which nothing is left of the capacity type they prefer
// take the next.
func (m *market) buyFrom(sellers []*seller, bins []*bin, items []*item) []*bin {
	offered := newBitset(len(m.machines))
	for _, s := range sellers {
		for i := s.first; i < s.last; i++ {
			offered.set(i)
		}
	}
	var tried capacityTries
	for {
		stocks := m.preferred(items, offered, tried)
		stock := firstNonEmpty(stocks[reservedFirst], stocks[onDemandNext], stocks[spotLast])
		if len(stock) == 0 {
			return bins
		}
		tried.note(m, stock)
		for _, group := range m.components(stock) {
			topUp(m, bins, group)
			bins = append(bins, newBuyer(m, group).run()...)
		}
	}
}

// The order in which capacity types are bought, as places in capacityTypes.
const (
	reservedFirst = 0
	spotLast      = 1
	onDemandNext  = 2
)

func firstNonEmpty(stocks ...[]stocked) []stocked {
	for _, stock := range stocks {
		if len(stock) > 0 {
			return stock
		}
	}
	return nil
}

// capacityTries remembers which capacity types were tried for which items.
type capacityTries [len(capacityTypes)]map[*item]bool

func (t *capacityTries) note(m *market, stock []stocked) {
	for _, it := range stock {
		c := m.machines[firstOf(it.stock)].capacity
		if t[c] == nil {
			t[c] = map[*item]bool{}
		}
		t[c][it.item] = true
	}
}

// stocked is an item and the machines it may be bought now.
type stocked struct {
	*item
	stock bitset
}

// preferred gives each item the machines of its best capacity type that was not tried yet, and files it under that type.
func (m *market) preferred(items []*item, offered bitset, tried capacityTries) [len(capacityTypes)][]stocked {
	var byCapacity [len(capacityTypes)]bitset
	for c := range byCapacity {
		byCapacity[c] = newBitset(len(m.machines))
	}
	for i := range m.machines {
		byCapacity[m.machines[i].capacity].set(i)
	}
	var result [len(capacityTypes)][]stocked
	for _, it := range items {
		if it.left == 0 || it.refusal != "" {
			continue
		}
		for c := range byCapacity {
			if tried[c][it] {
				continue
			}
			stock := it.allowed.clone()
			stock.intersect(offered)
			stock.intersect(byCapacity[c])
			m.withoutUsedUp(stock)
			if !stock.empty() {
				result[c] = append(result[c], stocked{it, stock})
				break
			}
		}
	}
	return result
}

// components splits items into groups that share no machine, so that each can be priced by itself.
func (m *market) components(items []stocked) [][]stocked {
	var groups [][]stocked
	var reach []bitset
	for _, it := range items {
		joined, union := []stocked{it}, it.stock.clone()
		keptGroups, keptReach := groups[:0:0], reach[:0:0]
		for g := range groups {
			if union.intersects(reach[g]) {
				joined = append(groups[g], joined...)
				union.unite(reach[g])
			} else {
				keptGroups, keptReach = append(keptGroups, groups[g]), append(keptReach, reach[g])
			}
		}
		groups, reach = append(keptGroups, joined), append(keptReach, union)
	}
	return groups
}

// topUp puts pods onto machines that are already bought.
func topUp(m *market, bins []*bin, items []stocked) {
	for _, it := range items {
		for _, b := range bins {
			if it.left == 0 {
				break
			}
			n := min(it.left, times(it.request, b.free))
			if n == 0 || len(m.sellers[m.machines[b.machine].pool].minimums) > 0 {
				continue // what narrows the choice further could break minValues
			}
			if n, v := b.admits(m, it.item, n); n > 0 {
				b.put(it.item, v, n)
			}
		}
	}
}

// admits says how many of n pods the bin takes for all reasons but room, and by which variant.
func (b *bin) admits(m *market, it *item, n int) (count, variant int) {
	if len(it.class.HostPorts) > 0 {
		if portsConflict(b.ports, it.class.HostPorts) {
			return 0, 0
		}
		n = 1
	}
	for v := range it.variants {
		candidate := &it.variants[v]
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

// put places the next n pods of the item.
func (b *bin) put(it *item, v, n int) {
	b.account(it, v, n)
	b.content = append(b.content, portion{it: it, variant: v, count: n, pods: it.next(n)})
}

// account changes what the bin takes in by n pods of the item, without placing them.
func (b *bin) account(it *item, v, n int) {
	take(b.free, it.request, n)
	take(b.used, it.request, -n)
	b.zones &= it.variants[v].zones
	b.custom = append(b.custom, it.variants[v].custom...)
	b.ports = append(b.ports, it.class.HostPorts...)
}
