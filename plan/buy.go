package plan

import (
	"cmp"
	"encoding/binary"
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
	ports      []HostPort
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

// buy finds machines for what is left of the items.
func (m *market) buy(items []*item) []*bin {
	var bins []*bin
	for first := 0; first < len(m.sellers); {
		last := first + 1
		for last < len(m.sellers) && weight(m.sellers[last].NodePool) == weight(m.sellers[first].NodePool) {
			last++
		}
		bins = append(bins, m.buyFrom(m.sellers[first:last], items)...)
		first = last
	}
	return bins
}

// buyFrom buys from pools of one weight. What can only be had on demand goes first, so that other pods may fill what
// it leaves.
func (m *market) buyFrom(sellers []*seller, items []*item) []*bin {
	offered := newBitset(len(m.machines))
	for _, s := range sellers {
		for i := s.first; i < s.last; i++ {
			offered.set(i)
		}
	}
	var bins []*bin
	stocks := m.preferred(items, offered)
	for capacity := len(capacityTypes) - 1; capacity >= 0; capacity-- {
		for _, group := range m.components(stocks[capacity]) {
			topUp(m, bins, group)
			b := newBuyer(m, group)
			bins = append(bins, b.run()...)
		}
	}
	return bins
}

// stocked is an item and the machines it may be bought now.
type stocked struct {
	*item
	stock bitset
}

// preferred gives each item the machines of its best capacity type, and files it under that type.
func (m *market) preferred(items []*item, offered bitset) [len(capacityTypes)][]stocked {
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
			stock := it.allowed.clone()
			stock.intersect(offered)
			stock.intersect(byCapacity[c])
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

// buyer buys machines for one group of items.
type buyer struct {
	m      *market
	items  []stocked
	lambda []float64
	// goods are the machines worth looking at.
	goods []good
	// pricedFor is the demand λ was computed for.
	pricedFor float64
	demand    []int64
	bins      []*bin
}

// good is a machine that may be bought for a group of items.
type good struct {
	index int
	// room is what can be filled: less than the machine's where minValues demands smaller alternatives.
	room  []int64
	price float64
	// handicap lets smaller machines win over very large ones of nearly the same value.
	handicap float64
	// bound is the most worth per dollar it can carry.
	bound float64
}

func newBuyer(m *market, items []stocked) *buyer {
	b := &buyer{m: m, items: items, demand: make([]int64, m.dims.count())}
	b.goods = b.worthwhile()
	return b
}

// worthwhile are the machines that no other beats: one as large, as cheap, and open to the same items in the same
// zones makes another superfluous.
func (b *buyer) worthwhile() []good {
	reach := newBitset(len(b.m.machines))
	for _, it := range b.items {
		reach.unite(it.stock)
	}
	groups := map[string][]good{}
	var order []string
	signature := make([]byte, 0, len(b.items)/8+16)
	for i := range reach.all {
		signature = b.sign(signature[:0], i)
		if groups[string(signature)] == nil {
			order = append(order, string(signature))
		}
		mach := &b.m.machines[i]
		groups[string(signature)] = append(groups[string(signature)],
			good{index: i, room: mach.usable, price: mach.price, handicap: handicap(mach)})
	}
	var goods []good
	for _, key := range order {
		group := b.m.withChoice(groups[key])
		slices.SortStableFunc(group, func(x, y good) int { return cmp.Compare(x.price, y.price) })
		front := len(goods)
		for _, g := range group {
			if !slices.ContainsFunc(goods[front:], func(other good) bool { return covers(other.room, g.room) }) {
				goods = append(goods, g)
			}
		}
	}
	return goods
}

// sign writes down who may use a machine, and where it is.
func (b *buyer) sign(signature []byte, index int) []byte {
	mach := &b.m.machines[index]
	signature = binary.AppendUvarint(signature, uint64(mach.pool))
	signature = binary.LittleEndian.AppendUint64(signature, mach.zones)
	var octet byte
	for k, it := range b.items {
		if it.stock.has(index) {
			octet |= 1 << (k & 7)
		}
		if k&7 == 7 {
			signature, octet = append(signature, octet), 0
		}
	}
	return append(signature, octet)
}

func covers(a, b []int64) bool {
	for d := range a {
		if a[d] < b[d] {
			return false
		}
	}
	return true
}

// handicap is small: four thousandths for each doubling beyond 32 cores. It settles near-ties in favour of more and
// smaller machines, so that one failure takes fewer pods with it.
func handicap(mach *machine) float64 {
	cores := float64(mach.usable[dimCPU]) / 1000
	if cores <= 32 {
		return 1
	}
	return 1 - 0.004*math.Log2(cores/32)
}

// run buys until nothing is left or nothing can be bought.
func (b *buyer) run() []*bin {
	for {
		b.items = slices.DeleteFunc(b.items, func(it stocked) bool { return it.left == 0 })
		if len(b.items) == 0 {
			break
		}
		b.appraise()
		load := b.best()
		if load == nil {
			break
		}
		b.commit(load)
	}
	return b.bins
}

// appraise brings λ and the goods' bounds up to date with what is left.
func (b *buyer) appraise() {
	clear(b.demand)
	for _, it := range b.items {
		take(b.demand, it.request, -it.left)
	}
	if b.lambda == nil || worth(b.lambda, b.demand) < 0.97*b.pricedFor {
		offers := make([]offer, len(b.goods))
		for i := range b.goods {
			offers[i] = offer{b.goods[i].room, b.goods[i].price}
		}
		b.lambda = worths(offers, b.demand)
		b.pricedFor = worth(b.lambda, b.demand)
	}
	total := worth(b.lambda, b.demand)
	for i := range b.goods {
		g := &b.goods[i]
		g.bound = min(total, worth(b.lambda, g.room)) / g.price * g.handicap
	}
	slices.SortStableFunc(b.goods, func(x, y good) int {
		return cmp.Or(-cmp.Compare(x.bound, y.bound), cmp.Compare(x.index, y.index))
	})
}

// load is a machine and a way to fill it.
type load struct {
	good   *good
	counts []portion
	value  float64
}

// best fills the goods by turns and returns the load with the most worth per dollar, or nil if nothing can be bought.
func (b *buyer) best() *load {
	var best *load
	for i := range b.goods {
		g := &b.goods[i]
		if best != nil && g.bound <= best.value {
			break
		}
		mach := &b.m.machines[g.index]
		if n, why := b.m.sellers[mach.pool].affordable(ResourcesOf(mach.typ.Capacity)); n == 0 {
			b.blame(g.index, why)
			continue
		}
		for _, greedy := range [...]bool{true, false} {
			if l := b.fill(g, greedy); l != nil && (best == nil || l.value > best.value+1e-12) {
				best = l
			}
		}
	}
	return best
}

// blame remembers that a limit kept a machine from the items it would have served.
func (b *buyer) blame(index int, why string) {
	for _, it := range b.items {
		if it.stock.has(index) {
			if it.limited == nil {
				it.limited = map[int]string{}
			}
			it.limited[b.m.machines[index].pool] = why
		}
	}
}

// fill loads one machine with what is left. Matching prefers pods whose shape is that of the room still free; without
// it, the most valuable pods go first.
func (b *buyer) fill(g *good, matching bool) *load {
	trial := b.open(g)
	left := make([]int, len(b.items))
	var order []int
	for k, it := range b.items {
		if it.stock.has(g.index) {
			left[k] = it.left
			order = append(order, k)
		}
	}
	if !matching {
		slices.SortStableFunc(order, func(x, y int) int {
			return -cmp.Compare(worth(b.lambda, b.items[x].request), worth(b.lambda, b.items[y].request))
		})
	}
	l := &load{good: g}
	weights := make([]float64, len(b.lambda))
	for len(order) > 0 {
		pick := 0
		if matching {
			pick, order = b.match(trial, g, order, weights)
			if pick < 0 {
				break
			}
		}
		k := order[pick]
		it := b.items[k]
		n := min(left[k], times(it.request, trial.free))
		if matching && n > 3 {
			n = max(1, n/3)
		}
		variant := 0
		if n > 0 {
			n, variant = trial.admits(b.m, it.item, n)
		}
		if n > 0 {
			trial.account(it.item, variant, n)
			l.add(it.item, variant, n)
			left[k] -= n
		}
		if n == 0 || left[k] == 0 || !matching || len(it.class.HostPorts) > 0 {
			order = slices.Delete(order, pick, pick+1)
		}
	}
	if len(l.counts) == 0 {
		return nil
	}
	price := b.m.priceIn(g.index, trial.zones)
	l.value = worth(b.lambda, trial.used) / max(price, g.price) * g.handicap
	return l
}

func (b *buyer) open(g *good) *bin {
	mach := &b.m.machines[g.index]
	return &bin{machine: g.index, zones: mach.zones, free: slices.Clone(g.room), used: make([]int64, len(g.room))}
}

// match picks, among the items that still have room, the one that uses most of what is plentiful: the sum over
// resources of the worth it takes, weighed by the share of that resource which is still free. It returns the position in
// order, or -1 when nothing has room, and order without the items that have none.
func (b *buyer) match(trial *bin, g *good, order []int, weights []float64) (int, []int) {
	for d, l := range b.lambda {
		weights[d] = 0
		if g.room[d] > 0 {
			weights[d] = l * float64(trial.free[d]) / float64(g.room[d])
		}
	}
	pick, highest := -1, -1.0
	kept := order[:0]
	for _, k := range order {
		request := b.items[k].request
		if !fits(request, trial.free) {
			continue
		}
		kept = append(kept, k)
		score := 0.0
		for d, w := range weights {
			score += w * float64(request[d])
		}
		if score > highest {
			pick, highest = len(kept)-1, score
		}
	}
	return pick, kept
}

func (l *load) add(it *item, variant, n int) {
	for i := range l.counts {
		if l.counts[i].it == it && l.counts[i].variant == variant {
			l.counts[i].count += n
			return
		}
	}
	l.counts = append(l.counts, portion{it: it, variant: variant, count: n})
}

// commit buys the load as often as its content repeats and the pool's limits allow.
func (b *buyer) commit(l *load) {
	mach := &b.m.machines[l.good.index]
	s := b.m.sellers[mach.pool]
	capacity := ResourcesOf(mach.typ.Capacity)
	copies, _ := s.affordable(capacity)
	for _, p := range l.counts {
		copies = min(copies, p.it.left/p.count)
	}
	s.spend(capacity, copies)
	for range copies {
		bought := b.open(l.good)
		for _, p := range l.counts {
			bought.put(p.it, p.variant, p.count)
		}
		b.bins = append(b.bins, bought)
	}
}
