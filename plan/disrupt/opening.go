package disrupt

import (
	"cmp"
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/place"
	"github.com/tenon-sh/tenon/plan/rules"
)

// In a well-packed cluster, most nodes stay for a simple reason: some of their pods fit on no other node even by
// themselves, and what these need costs as much as the node does. Both can be seen without a trial, from the existing nodes
// that have room for a pod of each kind: few, if any.

// openingsFor finds up to two existing nodes that serve with room for one of a pod group's pods, its own node included.
func (f *Simulation) openingsFor(it *place.PodGroup) []*place.ExistingNode {
	found, known := f.openings[it]
	if known {
		return found
	}
	f.Rollback()
	takers := f.Distribution.LettingIn(it)
	for i := takers.Next(0, it.Request); i < len(takers) && len(found) < 2 && it.Refusal == ""; i = takers.Next(i+1, it.Request) {
		if s := takers[i]; !market.PortsConflict(s.Ports, it.Class.HostPorts) && s.Devices.Holds(&it.Devices, s.Attach.Holds(&it.Volumes.Attach, 1)) > 0 {
			found = append(found, s)
		}
	}
	f.openings[it] = found
	return found
}

// stuck returns the pods of a node that fit on no other node even by themselves, in the order in which they are placed.
// Pods that prefer some of the nodes that admit them are left to a trial.
func (f *Simulation) stuck(st *simulatedNode) []*model.Pod {
	home := f.Distribution.Home
	pods := slices.DeleteFunc(slices.Clone(st.own), func(pod *model.Pod) bool {
		return slices.ContainsFunc(home[pod].Preferences, func(p rules.Preference) bool { return p.Node != nil || p.Wary }) ||
			slices.ContainsFunc(f.openingsFor(home[pod]), func(s *place.ExistingNode) bool { return s != st.slot })
	})
	slices.SortFunc(pods, func(a, b *model.Pod) int {
		return cmp.Or(cmp.Compare(home[a].Place, home[b].Place), place.FirstServed(a, b))
	})
	return pods
}

// needOf returns what pods ask of one machine; nil if no machine would do for one of them.
func (f *Simulation) needOf(pods []*model.Pod) *need {
	m := f.Distribution.Market
	n := newNeed(m)
	for _, pod := range pods {
		it := f.Distribution.Home[pod]
		if it.Refusal != "" || it.Allowed.Empty() {
			return nil
		}
		n.add(it.Request, 1, it.Allowed, place.ZonesOfVariants(it.Variants))
	}
	return n
}

// saveless says that whatever is bought for the stuck pods of a node costs at least as much as a bound; nil if that is not
// certain.
func (f *Simulation) saveless(st *simulatedNode, below float64) *model.Verdict {
	m := f.Distribution.Market
	least := f.needOf(f.stuck(st))
	if least == nil {
		return nil
	}
	// Bounds on pods of a kind may come from preferences, which are given up if they are in the way.
	clear(least.request[market.DimExtended+len(m.Dims.Extended):])
	if slices.Max(least.request) <= 0 {
		return nil
	}
	at := slices.IndexFunc(f.byPrice, func(i int) bool { return least.metBy(m, i) })
	switch {
	case at < 0:
		return least.unmet(m, -1)
	case m.Machines[f.byPrice[at]].Price < below:
		return nil
	}
	return least.unmet(m, f.byPrice[at])
}
