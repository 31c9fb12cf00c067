package place

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
)

// Place finds places for a pod group's pods. Where there are none, it gives up one preference after another.
func (d *Distribution) Place(it *PodGroup) {
	if it.Turn == 0 {
		d.turns++
		it.Turn = d.turns
	}
	for it.Refusal == "" && len(it.Pods) > 0 {
		switch {
		case it.Rules.NearHost() != nil:
			placeBundle(d, it)
		case it.Devices.Together():
			placeSharing(d, it)
		default:
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

// InOrder returns pod groups in the order in which they are placed. Pods that lacked a node in an earlier pass come
// first. Pods that ask for devices follow, so that no pod that can do without takes their place. Pods that have to be
// near pods of another group come last, after the groups they follow.
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

// choice orders pod groups whose rules keep pods apart across domains: it is small for those with few zones to choose
// from, which go first.
func (it *PodGroup) choice() int {
	if !slices.ContainsFunc(it.Rules.Apart, func(g *rules.Group) bool { return g.Host < 0 }) {
		return math.MaxInt
	}
	return bits.OnesCount64(ZonesOfVariants(it.Variants))
}

// inTrain orders pod groups so that each comes after those it follows, unless they follow each other.
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
