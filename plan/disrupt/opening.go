package disrupt

import (
	"math"
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/place"
	"github.com/tenon-sh/tenon/plan/rules"
	"github.com/tenon-sh/tenon/plan/solve"
)

// In a cluster that is well packed, most nodes stay for a simple reason: one of their pods by itself fits on no other
// node, and what their pods need at least, when all room that any of them could have elsewhere is taken off, costs as
// much as the node does. Both are seen without a trial, from the existing nodes that have room for a pod of each kind:
// few, if any.

// mostOpenings is how many existing nodes with room for a kind of pods are worth counting.
const mostOpenings = 8

// openingFor finds the existing nodes on nodes that serve with room for one of a pod group's pods, its own node included.
// The pod group is not choosy.
func openingFor(f *Simulation, it *place.PodGroup) *opening {
	found := f.openings[it]
	if found != nil {
		return found
	}
	f.Rollback()
	found = &opening{}
	takers := f.Distribution.LettingIn(it)
	for i := takers.Next(0, it.Request); i < len(takers.Slots) && !found.many; i = takers.Next(i+1, it.Request) {
		s := takers.Slots[i]
		switch {
		case !s.Node.Initialized || !holds(s, it):
		case len(found.slots) == mostOpenings:
			found.many = true
		default:
			found.slots = append(found.slots, s)
		}
	}
	if f.openings == nil {
		f.openings = map[*place.PodGroup]*opening{}
	}
	f.openings[it] = found
	return found
}

// elsewhere says whether there is an opening but for one existing node.
func (o *opening) elsewhere(but *place.ExistingNode) bool {
	return o.many || slices.ContainsFunc(o.slots, func(s *place.ExistingNode) bool { return s != but })
}

// stuck finds a pod of a node that by itself fits on no other, the first of the first pod group in the order of pod groups,
// and returns a pod group of it alone; nil where there is none.
func stuck(f *Simulation, st *simulatedNode) *place.PodGroup {
	var pod *model.Pod
	var of *place.PodGroup
	for _, p := range st.own {
		it := f.Distribution.Home[p]
		if of != nil && (it.Place > of.Place || it == of && place.FirstServed(pod, p) < 0) {
			continue
		}
		if it == of || it.Refusal != "" || !choosy(it) && !openingFor(f, it).elsewhere(st.slot) {
			pod, of = p, it
		}
	}
	if of == nil {
		return nil
	}
	return &place.PodGroup{Pods: []*model.Pod{pod}, Refusal: of.Refusal}
}

// saveless says that whatever is bought for a node's pods, beside the room that some of them could have on other nodes,
// costs as much as a bound; nil where that is not certain.
func saveless(f *Simulation, st *simulatedNode, below float64) *model.Verdict {
	m := f.Distribution.Market
	whole, least, many := make([]int64, m.Dims.Count()), newNeed(m), false
	var open []*place.ExistingNode
	for _, pod := range st.own {
		it := f.Distribution.Home[pod]
		if it.Refusal != "" || it.Allowed.Empty() {
			return nil
		}
		solve.Subtract(whole, it.Request, -1)
		if choosy(it) {
			many = true
			continue
		}
		room := openingFor(f, it)
		if !room.elsewhere(st.slot) {
			least.add(it.Request, 1, it.Allowed, zonesOfGroup(it))
			continue
		}
		many = many || room.many
		for _, s := range room.slots {
			if s != st.slot && !slices.Contains(open, s) {
				open = append(open, s)
			}
		}
	}
	if !many {
		for _, s := range open {
			solve.Subtract(whole, s.Free, 1)
		}
		for d := range whole {
			least.request[d] = max(least.request[d], whole[d])
		}
	}
	// Bounds on pods of a kind may be those of preferences, which are given up where they are in the way.
	clear(least.request[market.DimExtended+len(m.Dims.Extended):])
	if slices.Max(least.request) <= 0 {
		return nil
	}
	return dearer(f, &least, below)
}

// zonesOfGroup are those in which a machine for the pod group may be.
func zonesOfGroup(it *place.PodGroup) uint64 {
	var zones uint64
	for i := range it.Variants {
		zones |= it.Variants[i].Zones
	}
	return zones
}

// dearer says that no machine that meets a need costs less than a bound, and names the cheapest; nil where one does.
func dearer(f *Simulation, least *need, below float64) *model.Verdict {
	m := f.Distribution.Market
	cheapest, price := -1, math.Inf(1)
	for _, shelf := range f.shelves {
		for _, machines := range shelf {
			at := slices.IndexFunc(machines, func(i int) bool { return m.Machines[i].Price >= price || least.metBy(m, i) })
			if at >= 0 && m.Machines[machines[at]].Price < price {
				cheapest, price = machines[at], m.Machines[machines[at]].Price
			}
		}
	}
	switch {
	case price < below:
		return nil
	case cheapest < 0:
		return stays(model.CauseRoom, "no single node would take the pods that find no room elsewhere")
	}
	return stays(model.CausePrice, "the cheapest replacement, %s, saves nothing", priced(m, cheapest, least.zones))
}

// fitsNowhere says that one of the pod group's pods by itself finds no existing node with room, whatever others do.
func (f *Simulation) fitsNowhere(it *place.PodGroup) bool {
	if it.Refusal != "" {
		return true
	}
	if choosy(it) {
		return false
	}
	takers := f.Distribution.LettingIn(it)
	for i := takers.Next(0, it.Request); i < len(takers.Slots); i = takers.Next(i+1, it.Request) {
		if holds(takers.Slots[i], it) {
			return false
		}
	}
	return true
}

// choosy says that there are nodes which the pod group's pods would like better than others that let them in as well.
func choosy(it *place.PodGroup) bool {
	return slices.ContainsFunc(it.Preferences, func(p rules.Preference) bool { return p.Node != nil || p.Wary })
}

// holds says whether one of the pod group's pods has room on the node, as far as rules about other pods have no say.
func holds(s *place.ExistingNode, it *place.PodGroup) bool {
	return solve.Fits(it.Request, s.Free) && !market.PortsConflict(s.Ports, it.Class.HostPorts) && s.Attach.Holds(&it.Volumes.Attach, 1) > 0
}
