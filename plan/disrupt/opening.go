package disrupt

import (
	"cmp"
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
// There are always many where it likes some better than others that let it in as well.
func (f *Simulation) openingFor(it *place.PodGroup) *opening {
	if found := f.openings[it]; found != nil {
		return found
	}
	f.Rollback()
	place.Weigh(f.Distribution.Market, it)
	found := &opening{many: slices.ContainsFunc(it.Preferences, func(p rules.Preference) bool { return p.Node != nil || p.Wary })}
	takers := f.Distribution.LettingIn(it)
	for i := takers.Next(0, it.Request); i < len(takers.Slots) && !found.many && it.Refusal == ""; i = takers.Next(i+1, it.Request) {
		s := takers.Slots[i]
		switch {
		case market.PortsConflict(s.Ports, it.Class.HostPorts) || s.Attach.Holds(&it.Volumes.Attach, 1) == 0:
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

// stuck are the pods of a node that by themselves fit on no other, in the order in which they are placed.
func (f *Simulation) stuck(st *simulatedNode) []*model.Pod {
	home := f.Distribution.Home
	pods := slices.DeleteFunc(slices.Clone(st.own), func(pod *model.Pod) bool {
		open := f.openingFor(home[pod])
		return open.many || slices.ContainsFunc(open.slots, func(s *place.ExistingNode) bool { return s != st.slot })
	})
	slices.SortFunc(pods, func(a, b *model.Pod) int {
		return cmp.Or(cmp.Compare(home[a].Place, home[b].Place), place.FirstServed(a, b))
	})
	return pods
}

// needOf is what pods ask of one machine; nil if no machine would do for one of them.
func (f *Simulation) needOf(pods []*model.Pod) *need {
	m := f.Distribution.Market
	n := newNeed(m)
	for _, pod := range pods {
		it := f.Distribution.Home[pod]
		place.Weigh(m, it)
		if it.Refusal != "" || it.Allowed.Empty() {
			return nil
		}
		var zones uint64
		for i := range it.Variants {
			zones |= it.Variants[i].Zones
		}
		n.add(it.Request, 1, it.Allowed, zones)
	}
	return n
}

// saveless says that whatever is bought for a node's pods, beside the room that some of them could have on other nodes,
// costs as much as a bound; nil where that is not certain.
func (f *Simulation) saveless(st *simulatedNode, below float64) *model.Verdict {
	m := f.Distribution.Market
	least, whole := f.needOf(f.stuck(st)), f.needOf(st.own)
	if least == nil || whole == nil {
		return nil
	}
	if room, known := f.roomElsewhere(st); known {
		for d := range whole.request {
			least.request[d] = max(least.request[d], whole.request[d]-room[d])
		}
	}
	// Bounds on pods of a kind may be those of preferences, which are given up where they are in the way.
	clear(least.request[market.DimExtended+len(m.Dims.Extended):])
	if slices.Max(least.request) <= 0 {
		return nil
	}
	cheapest := f.cheapestFor(least)
	if cheapest >= 0 && m.Machines[cheapest].Price < below {
		return nil
	}
	return least.unmet(m, cheapest)
}

// roomElsewhere is what is free on all other nodes that have room for one of a node's pods, if they are few.
func (f *Simulation) roomElsewhere(st *simulatedNode) (room []int64, known bool) {
	room = make([]int64, f.Distribution.Market.Dims.Count())
	seen := map[*place.ExistingNode]bool{st.slot: true}
	for _, pod := range st.own {
		open := f.openingFor(f.Distribution.Home[pod])
		if open.many {
			return nil, false
		}
		for _, s := range open.slots {
			if !seen[s] {
				seen[s] = true
				solve.Subtract(room, s.Free, -1)
			}
		}
	}
	return room, true
}

// cheapestFor is the cheapest machine that meets a need; -1 if there is none.
func (f *Simulation) cheapestFor(least *need) int {
	m := f.Distribution.Market
	found := -1
	for _, machines := range f.shelves {
		at := slices.IndexFunc(machines, func(i int) bool {
			return least.metBy(m, i) || found >= 0 && m.Machines[i].Price >= m.Machines[found].Price
		})
		if at >= 0 && (found < 0 || m.Machines[machines[at]].Price < m.Machines[found].Price) {
			found = machines[at]
		}
	}
	return found
}
