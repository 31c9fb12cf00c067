package plan

import (
	"fmt"
	"math"
	"slices"
)

// In a cluster that is well packed, most nodes stay for a simple reason: one of their pods by itself fits on no other node,
// and what their pods need at least, when all room that any of them could have elsewhere is taken off, costs as much as
// the node does. Both are seen without a fork, from the slots that have room for a pod of each kind: few, if any.

// mostOpenings is how many slots with room for a kind of pods are worth counting.
const mostOpenings = 8

// opening is where one of an item's pods by itself has room, rules about other pods apart.
type opening struct {
	slots []*slot
	// many says that there are more.
	many bool
}

// openingFor finds the slots on nodes that serve with room for one of an item's pods, its own node included. The item is
// not choosy.
func (f *field) openingFor(it *item) *opening {
	found := f.openings[it]
	if found != nil {
		return found
	}
	f.rollback()
	f.d.m.weigh(it)
	found = &opening{}
	takers := f.d.lettingIn(it)
	for i := takers.next(0, it.request); i < len(takers.slots) && !found.many; i = takers.next(i+1, it.request) {
		s := takers.slots[i]
		switch {
		case !s.node.Initialized || !s.holds(it):
		case len(found.slots) == mostOpenings:
			found.many = true
		default:
			found.slots = append(found.slots, s)
		}
	}
	if f.openings == nil {
		f.openings = map[*item]*opening{}
	}
	f.openings[it] = found
	return found
}

// elsewhere says whether there is an opening but for one slot.
func (o *opening) elsewhere(but *slot) bool {
	return o.many || slices.ContainsFunc(o.slots, func(s *slot) bool { return s != but })
}

// stuck finds a pod of a node that by itself fits on no other; the first of the first item in the order of items.
func (f *field) stuck(st *stand) (pod *Pod, of *item) {
	for _, p := range st.own {
		it := f.d.home[p]
		if of != nil && (it.place > of.place || it == of && firstServed(pod, p) < 0) {
			continue
		}
		if it == of || it.refusal != "" || !it.choosy() && !f.openingFor(it).elsewhere(st.slot) {
			pod, of = p, it
		}
	}
	return pod, of
}

// saveless says that whatever is bought for a node's pods, beside the room that some of them could have on other nodes,
// costs as much as a bound, and names the cheapest machine that might do.
func (f *field) saveless(st *stand, below float64) (why string, cause Cause, saveless bool) {
	m := f.d.m
	whole, least := make([]int64, m.dims.count()), make([]int64, m.dims.count())
	var allowed bitset
	zones, many := ^uint64(0), false
	var open []*slot
	for _, pod := range st.own {
		it := f.d.home[pod]
		m.weigh(it)
		if it.refusal != "" || it.allowed.empty() {
			return "", "", false
		}
		take(whole, it.request, -1)
		if it.choosy() {
			many = true
			continue
		}
		room := f.openingFor(it)
		if room.elsewhere(st.slot) {
			many = many || room.many
			for _, s := range room.slots {
				if s != st.slot && !slices.Contains(open, s) {
					open = append(open, s)
				}
			}
			continue
		}
		take(least, it.request, -1)
		if allowed == nil {
			allowed = it.allowed.clone()
		}
		allowed.intersect(it.allowed)
		zones &= it.zones()
	}
	if !many {
		for _, s := range open {
			take(whole, s.free, 1)
		}
		for d := range least {
			least[d] = max(least[d], whole[d])
		}
	}
	// Bounds on pods of a kind may be those of preferences, which are given up where they are in the way.
	clear(least[dimExtended+len(m.dims.extended):])
	if slices.Max(least) <= 0 {
		return "", "", false
	}
	return f.dearer(least, allowed, zones, below)
}

// zones are those in which a machine for the item may be.
func (it *item) zones() uint64 {
	var zones uint64
	for i := range it.variants {
		zones |= it.variants[i].zones
	}
	return zones
}

// dearer says that no machine for a need costs less than a bound, and names the cheapest.
func (f *field) dearer(need []int64, allowed bitset, zones uint64, below float64) (why string, cause Cause, dearer bool) {
	m := f.d.m
	cheapest, price := -1, math.Inf(1)
	for _, shelf := range f.shelves {
		for _, machines := range shelf {
			for _, i := range machines {
				mach := &m.machines[i]
				if mach.price >= price {
					break
				}
				if allowed != nil && !allowed.has(i) || mach.zones&zones == 0 || !fits(need, mach.usable) {
					continue
				}
				if mach.price < below {
					return "", "", false
				}
				cheapest, price = i, mach.price
				break
			}
		}
	}
	if cheapest < 0 {
		return "no single node would take the pods that find no room elsewhere", CauseRoom, true
	}
	mach := &m.machines[cheapest]
	return fmt.Sprintf("the cheapest replacement, %s %s at $%.4f an hour, saves nothing", mach.typ.Name, capacityTypes[mach.capacity], m.priceIn(cheapest, zones)), CausePrice, true
}

// fitsNowhere says that one of the item's pods by itself finds no slot with room, whatever others do.
func (f *field) fitsNowhere(it *item) bool {
	if it.refusal != "" {
		return true
	}
	if it.choosy() {
		return false
	}
	takers := f.d.lettingIn(it)
	for i := takers.next(0, it.request); i < len(takers.slots); i = takers.next(i+1, it.request) {
		if takers.slots[i].holds(it) {
			return false
		}
	}
	return true
}

// choosy says that there are nodes which the item's pods would like better than others that let them in as well.
func (it *item) choosy() bool {
	return slices.ContainsFunc(it.preferences, func(p preference) bool { return p.node != nil || p.wary })
}

// holds says whether one of the item's pods has room on the node, as far as rules about other pods have no say.
func (s *slot) holds(it *item) bool {
	return fits(it.request, s.free) && !portsConflict(s.ports, it.class.HostPorts) && s.attach.holds(&it.volumes.attach, 1) > 0
}
