package place

import (
	"cmp"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
)

// While there is enough for all pods, priority does not matter: the cheapest plan serves all of them. When a NodePool's
// limit leaves some without a place, they have to be those of low priority. So where a limit was met and pods are left,
// Pack plans once more from the beginning, one priority after the other. Each priority gets what the higher ones have
// left: room on nodes, room on machines that are bought, and limits. In that pass machines are chosen by how much of
// the limits they use, not by what they cost, because the limits are the scarce resource.
//
// Virtual pods are planned together with all others, so that they fill the room that those leave on machines. Where a
// limit was met and pods are left, they are planned separately, after everything else, so that no pod waits because of
// a buffer.

// order is the order in which pods are planned.
type order int

const (
	// allAtOnce plans all pods together. virtualLast plans virtual pods after all others. priorityFirst does that too,
	// and plans the others one priority after the other.
	allAtOnce order = iota
	virtualLast
	priorityFirst
)

// outcome is the plan of one pass.
type outcome struct {
	model.Plan
	// limited says that a limit kept a machine from being bought. leans says that it mattered that no new host is
	// added.
	limited, leans bool
	// lowest is the lowest priority of the pods that a machine is bought for.
	lowest int32
	// lacked are pods with rules about others that no existing node took, with their share of the hourly price of the
	// claims they are on. The share is next to nothing for pods that are left.
	lacked map[types.UID]float64
}

// leftBy returns a key of every pod that a plan leaves, in descending order. By priority, of two plans the one that
// compares lower leaves fewer pods of the highest priority in which they differ.
func leftBy[T cmp.Ordered](p model.Plan, by func(*model.Pod) T) []T {
	var left []T
	for _, u := range p.Unplaced {
		left = append(left, by(u.Pod))
	}
	slices.SortFunc(left, func(a, b T) int { return cmp.Compare(b, a) })
	return left
}

// priceByLimits sets the price of a machine to the share of its pool's limits that it uses, until the returned function
// is called. Money only decides between machines that are equal in this.
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

// tiersOf splits pod groups into those that are planned at once, in the order in which they are planned. With
// priorityFirst, every pod group must have a single priority.
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
