package place

import (
	"cmp"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
)

// While there is enough for everybody, priority does not matter: the cheapest plan serves all pods. When a NodePool's
// limit leaves some without a place, those of low priority have to be the ones. So where a limit was met and pods are
// left, Pack plans once more from the beginning, one priority after the other, each with all that the higher ones have
// left: room on nodes, room on machines that are bought, and limits. In that pass machines are chosen by what they use
// up of the limits, and not by what they cost: it is the limits that are short.
//
// Virtual pods are planned together with all others, so that they fill what those leave of machines. Where a limit was met
// and pods are left, they are planned apart, behind everything else: no pod waits because of a buffer.

// order is what is planned after what.
type order int

const (
	// allAtOnce plans all pods together, virtualLast virtual pods after all others, and priorityFirst one priority after the other
	// before these.
	allAtOnce order = iota
	virtualLast
	priorityFirst
)

// outcome is the plan of one pass.
type outcome struct {
	model.Plan
	// limited says that a limit kept a machine from being bought, leans that it mattered that no new host comes.
	limited, leans bool
	// lowest is the lowest priority of a pod that a machine is bought for.
	lowest int32
	// lacked are pods with rules about others that no node took which was there, with their part of the price per hour of
	// the claims they are on. It is next to nothing for pods that are left.
	lacked map[types.UID]float64
}

// leftBy is something of every pod that a plan leaves, in falling order. Of two plans, the one whose priorities come first
// leaves fewer pods of the highest priority in which they differ.
func leftBy[T cmp.Ordered](p model.Plan, by func(*model.Pod) T) []T {
	var left []T
	for _, u := range p.Unplaced {
		left = append(left, by(u.Pod))
	}
	slices.SortFunc(left, func(a, b T) int { return cmp.Compare(b, a) })
	return left
}

// priceByLimits makes what a machine uses up of its pool's limits its price, until the returned function is called. What
// costs money remains to decide between machines that are equal in this.
func priceByLimits(m *market.Market) (byMoney func()) {
	const money = 1e-6
	for _, s := range m.Sellers {
		for i := range s.Budget {
			s.Budget[i].Remote = false
		}
	}
	machines := slices.Clone(m.Machines)
	for i := range m.Machines {
		mach := &m.Machines[i]
		share := 0.0
		for _, a := range m.Sellers[mach.Pool].Budget {
			if n := market.CountOf(a.Name, mach.Size); n > 0 {
				share = max(share, float64(n)/float64(max(1, a.Left)))
			}
		}
		mach.Price = share + money*mach.Price
		mach.Prices = slices.Clone(mach.Prices)
		for z := range mach.Prices {
			mach.Prices[z] = share + money*mach.Prices[z]
		}
	}
	return func() { copy(m.Machines, machines) }
}

// tiersOf splits pod groups into those that are planned at once, the first of them first. By priority, pod groups have to
// be of one priority each.
func tiersOf(podGroups []*PodGroup, by order) [][]*PodGroup {
	rank := func(it *PodGroup) int64 {
		switch {
		case it.virtual && by >= virtualLast:
			return math.MinInt64
		case by == priorityFirst:
			return int64(it.Pods[0].Priority)
		}
		return 0
	}
	var tiers [][]*PodGroup
	ordered := slices.Clone(podGroups)
	slices.SortStableFunc(ordered, func(a, b *PodGroup) int { return -cmp.Compare(rank(a), rank(b)) })
	for i, it := range ordered {
		if i == 0 || rank(it) != rank(ordered[i-1]) {
			tiers = append(tiers, nil)
		}
		tiers[len(tiers)-1] = append(tiers[len(tiers)-1], it)
	}
	return tiers
}
