package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// terms are what a claim that replaces nodes has to meet to be worth it.
type terms struct {
	// below is the price, in dollars per hour, that whatever the launch comes to has to stay under.
	below float64
	// noSpot says that spot would replace spot only, which is not wanted.
	noSpot bool
	// choice is how many types a spot claim has to choose from, and then the most it may; zero for any number.
	choice int
	// sources are what is replaced. None is replaced by its like; and where one of several sources is of a type that would
	// do, it is better kept than replaced, so that only what is cheaper than it will do.
	sources []*candidate
}

// shelve sorts what can be bought: by weight of the pool, reserved before all others, price.
func (f *field) shelve() {
	m := f.d.m
	for first := 0; first < len(m.sellers); {
		last := first + 1
		for last < len(m.sellers) && weight(m.sellers[last].NodePool) == weight(m.sellers[first].NodePool) {
			last++
		}
		var shelf [len(capacityTypes)][]int
		for i := m.sellers[first].first; i < m.sellers[last-1].last; i++ {
			if m.machines[i].zones != 0 {
				at := min(m.machines[i].capacity, spotLast) // spot and on-demand compete by price
				shelf[at] = append(shelf[at], i)
			}
		}
		for c := range shelf {
			slices.SortStableFunc(shelf[c], func(a, b int) int { return cmp.Compare(m.machines[a].price, m.machines[b].price) })
		}
		f.shelves = append(f.shelves, shelf)
		first = last
	}
}

// buy buys for what a fork has found no place for.
func (f *field) buy(items []*item, may purchase) (why string, cause Cause) {
	d := f.d
	if i := slices.IndexFunc(items, func(it *item) bool { return len(it.pods) > 0 }); i >= 0 {
		return noRoomFor(items[i])
	}
	if len(d.lots) == 0 {
		return "", ""
	}
	b, why, cause := f.oneFor(d.lots, may.terms)
	switch {
	case b != nil:
		claim, why := f.claimOf(b, may.terms)
		if why != "" {
			return why, CausePrice
		}
		d.m.spend(b.machine, b.size, 1)
		f.tried.claims = []Claim{claim}
		return "", ""
	case may.most == 1:
		return why, cause
	}
	return f.buyMany(items)
}

// buyMany buys as a plan does.
func (f *field) buyMany(items []*item) (why string, cause Cause) {
	d := f.d
	bins := d.m.buy(nil, d.lots)
	for d.again(items) {
		bins = d.m.buy(bins, d.lots)
	}
	for _, it := range items {
		if len(it.pods) > 0 {
			why := fmt.Sprintf("nothing can be bought for pod %s", it.pods[0].Key())
			if reasons := d.m.explain(it); len(reasons) > 0 {
				why += ": " + reasons[0].Message
			}
			return why, CauseRoom
		}
	}
	f.tried.claims = d.m.claims(bins)
	return "", ""
}

const limitsInTheWay = "its NodePool's limits leave no room for a replacement beside it"

// oneFor is the cheapest machine that takes all lots, filled with them. Pools are tried by weight, and reserved machines
// before others: the first that has such a machine at all decides.
func (f *field) oneFor(lots []*lot, on *terms) (best *bin, why string, cause Cause) {
	m := f.d.m
	need, zones, allowed := make([]int64, m.dims.count()), ^uint64(0), lots[0].allowed.clone()
	for _, l := range lots {
		take(need, l.request, -l.left())
		allowed.intersect(l.allowed)
		zones &= l.zones()
	}
	limited := false
	for _, shelf := range f.shelves {
		for capacity := range shelf {
			price := math.Inf(1)
			for _, i := range shelf[capacity] {
				mach := &m.machines[i]
				if mach.price >= price {
					break
				}
				if !allowed.has(i) || mach.zones&zones == 0 || !fits(need, mach.usable) {
					continue
				}
				if on != nil && mach.price >= on.below && limited {
					return nil, limitsInTheWay, CauseRoom
				}
				if on != nil && mach.price >= on.below {
					return nil, fmt.Sprintf("the cheapest replacement, %s %s at $%.4f an hour, saves nothing", mach.typ.Name, capacityTypes[mach.capacity], m.priceIn(i, zones)), CausePrice
				}
				if m.affordable(i, mach.size) == 0 {
					limited = true
					continue
				}
				if p := m.priceIn(i, zones); p < price {
					if b := f.filled(i, zones, lots); b != nil {
						best, price = b, p
					}
				}
			}
			if best != nil {
				return f.filledWith(best, lots), "", ""
			}
		}
	}
	if limited {
		return nil, limitsInTheWay, CauseRoom
	}
	return nil, fmt.Sprintf("no single node would take the pods that find no room elsewhere: %s", names(lotted(lots))), CauseRoom
}

func lotted(lots []*lot) []*Pod {
	var pods []*Pod
	for _, l := range lots {
		for i := range l.content {
			pods = append(pods, l.content[i].pods...)
		}
	}
	return pods
}

// zones are those in which the lot may be.
func (l *lot) zones() uint64 {
	var zones uint64
	for i := range l.variants {
		zones |= l.variants[i].zones
	}
	return zones
}

// filled is a machine with all lots on it, or nil if it does not take them. The lots stay as they were.
func (f *field) filled(index int, zones uint64, lots []*lot) *bin {
	pods := make([][]*Pod, 0, len(lots))
	for _, l := range lots {
		for i := range l.content {
			pods = append(pods, l.content[i].pods)
		}
	}
	b := f.fill(index, zones, lots)
	for _, l := range lots {
		for i := range l.content {
			l.content[i].pods, pods = pods[0], pods[1:]
		}
	}
	return b
}

// filledWith fills for good what was only tried.
func (f *field) filledWith(b *bin, lots []*lot) *bin {
	return f.fill(b.machine, b.zones, lots)
}

func (f *field) fill(index int, zones uint64, lots []*lot) *bin {
	m := f.d.m
	mach := &m.machines[index]
	b := &bin{machine: index, zones: mach.zones & zones, size: mach.size,
		free: slices.Clone(mach.usable), used: make([]int64, len(mach.usable)), attach: m.book.newRoom(mach.typ.Name)}
	if m.hosts > 0 {
		b.tally = make([]int32, m.hosts)
	}
	supply := make([]supplied, len(lots))
	for i, l := range lots {
		supply[i] = supplied{lot: l, stock: l.allowed, quota: math.MaxInt}
	}
	for _, demand := range m.demandsOf(supply) {
		for left := demand.pieces(); left > 0; left = demand.pieces() {
			n, v := b.admits(m, demand.demand, min(left, times(demand.request, b.free)))
			done := 0
			for minding := mindsPods; n > 0 && minding <= mindsNothing; minding++ {
				done += m.fillUp(b, demand.demand, v, n-done, minding)
			}
			if done == 0 {
				return nil
			}
		}
	}
	if s := m.sellers[mach.pool]; len(s.minimums) > 0 && m.policy != MinValuesBestEffort && !m.enough(s, m.holders(s, b)) {
		return nil
	}
	return b
}

// claimOf makes a claim of a bin that meets the terms, whichever of its types the launch comes to.
func (f *field) claimOf(b *bin, on *terms) (Claim, string) {
	m := f.d.m
	g := m.groups(m.sellers[m.machines[b.machine].pool], []*bin{b})[0]
	if on == nil {
		return m.claimsOf(g)[0], ""
	}
	cheapest := m.machines[b.machine]
	capacity := capacityTypes[cheapest.capacity]
	at := fmt.Sprintf("%s %s at $%.4f an hour", cheapest.typ.Name, capacity, m.priceIn(b.machine, g.zones))
	if on.noSpot && capacityTypes[1] == capacity {
		return Claim{}, "the cheapest replacement, " + at + ", is spot as it is, and SpotToSpotConsolidation is off"
	}
	ceiling := math.Inf(1)
	if on.choice == 0 {
		ceiling = m.ceiling(g)
	}
	ranked := slices.DeleteFunc(m.ranked(g, ceiling), func(i int) bool { return m.worstIn(i, g.zones) >= on.below })
	if len(ranked) == 0 {
		return Claim{}, "the cheapest replacement, " + at + ", saves nothing"
	}
	ranked = on.unlike(m, ranked, g.zones)
	if len(ranked) == 0 {
		return Claim{}, "the cheapest replacement, " + at + ", is of the same type"
	}
	s := g.seller
	if capacity == capacityTypes[1] && on.choice > 0 {
		if len(ranked) < on.choice {
			return Claim{}, fmt.Sprintf("spot is replaced by spot only where %d types are cheaper, and %d are", on.choice, len(ranked))
		}
		n := on.choice
		for n < len(ranked) && len(s.minimums) > 0 && !m.enough(s, setOf(ranked[:n], len(m.machines))) {
			n++
		}
		ranked = ranked[:n]
	}
	g.common, g.chosen = setOf(ranked, len(m.machines)), true
	if len(s.minimums) > 0 && m.policy != MinValuesBestEffort && !m.enough(s, g.common) {
		return Claim{}, "the types that are cheaper are fewer than its NodePool's minValues demand"
	}
	b.machine = ranked[0]
	return m.claimsOf(g)[0], ""
}

// unlike are those of the machines that are not what is replaced.
func (on *terms) unlike(m *market, ranked []int, zones uint64) []int {
	ceiling := math.Inf(1)
	for _, i := range ranked {
		for _, source := range on.sources {
			if len(on.sources) > 1 && source.node.InstanceType == m.machines[i].typ.Name {
				ceiling = min(ceiling, source.price)
			}
		}
	}
	return slices.DeleteFunc(ranked, func(i int) bool {
		return m.worstIn(i, zones) >= ceiling || slices.ContainsFunc(on.sources, func(source *candidate) bool {
			return source.node.InstanceType == m.machines[i].typ.Name && source.node.CapacityType == capacityTypes[m.machines[i].capacity]
		})
	})
}

// worstIn is the machine's highest price in some zones.
func (m *market) worstIn(index int, zones uint64) float64 {
	highest := 0.0
	for z := range m.zones {
		if m.machines[index].zones&zones&(1<<z) != 0 {
			highest = max(highest, m.zonePrice[index*len(m.zones)+z])
		}
	}
	return highest
}
