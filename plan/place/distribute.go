package place

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
)

// Place finds a place for a pod group's pods, giving up one preference after another where there is none.
func (d *Distribution) Place(it *PodGroup) {
	if it.Turn == 0 {
		d.turns++
		it.Turn = d.turns
	}
	for it.Refusal == "" && len(it.Pods) > 0 {
		if it.Rules.NearHost() != nil {
			placeBundle(d, it)
		} else {
			d.acrossDomains(it)
		}
		if len(it.Pods) == 0 || d.BuysNothing && len(it.Variants) > 0 || !it.relax(d.Market) {
			return
		}
	}
}

// giveBack returns a demand chunk's pods to their pod groups.
func (d *Distribution) giveBack(l *DemandChunk) {
	for i := range l.Content {
		p := &l.Content[i]
		p.it.Pods = append(p.it.Pods, p.Pods...)
		countAt(p.as.Rules.Joins, l.at, -len(p.Pods))
		p.Pods = nil
	}
}

// InOrder are pod groups as they are placed: those that say where others have to be come after these, and those that ask
// for devices first, so that nobody who can do without takes their place.
func InOrder(podGroups []*PodGroup, virtual bool) []*PodGroup {
	var order []*PodGroup
	for _, it := range podGroups {
		if it.virtual == virtual && len(it.Pods) > 0 {
			order = append(order, it)
		}
	}
	rank := func(it *PodGroup) int {
		follows := slices.ContainsFunc(it.Rules.Near, func(r rules.NearRule) bool { return !r.Self })
		switch {
		case follows:
			return 3
		case it.lacked > 0:
			return -2
		case model.AsksDevice(it.Class):
			return -1
		case it.Rules.NearHost() != nil:
			return 1
		case len(it.Rules.Keys()) > 0:
			return 0
		}
		return 2
	}
	slices.SortStableFunc(order, func(a, b *PodGroup) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.lacked, a.lacked), cmp.Compare(a.choice(), b.choice()))
	})
	if i := slices.IndexFunc(order, func(it *PodGroup) bool { return rank(it) == 3 }); i >= 0 {
		inTrain(order[i:])
	}
	return order
}

// choice is small for pods that close domains to others, or are kept out of them, and have few to choose from. They go
// first.
func (it *PodGroup) choice() int {
	if !slices.ContainsFunc(it.Rules.Apart, func(g *rules.Group) bool { return g.Host < 0 }) {
		return math.MaxInt
	}
	return bits.OnesCount64(ZonesOfVariants(it.Variants))
}

// inTrain orders followers so that those who are followed come first, as far as they do not follow each other.
func inTrain(podGroups []*PodGroup) {
	for ; len(podGroups) > 0; podGroups = podGroups[1:] {
		leads := func(it *PodGroup) bool {
			return !slices.ContainsFunc(podGroups, func(other *PodGroup) bool {
				return other != it && slices.ContainsFunc(it.Rules.Near, func(r rules.NearRule) bool { return slices.Contains(other.Rules.Joins, r.Group) })
			})
		}
		if i := slices.IndexFunc(podGroups, leads); i > 0 {
			it := podGroups[i]
			copy(podGroups[1:i+1], podGroups[:i])
			podGroups[0] = it
		}
	}
}
