package plan

import (
	"cmp"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// While there is enough for everybody, priority does not matter: the cheapest plan serves all pods. When a NodePool's
// limit leaves some without a place, those of low priority have to be the ones. So where a limit was met and pods are
// left, Pack plans once more from the beginning, one priority after the other, each with all that the higher ones have
// left: room on nodes, room on machines that are bought, and limits. In that pass machines are chosen by what they use
// up of the limits, and not by what they cost: it is the limits that are short.
//
// Virtual pods are planned together with all others, so that they fill what those leave of machines. Where a limit was met
// and pods are left, they are planned apart, behind everything else: no pod waits because of a buffer.

// order is what is planned after what, where not everything is planned at once.
type order struct {
	// priority plans one priority after the other, virtualLast virtual pods after all others.
	priority, virtualLast bool
	// alone says that no new host comes, so that pods may be spread over the hosts that are there.
	alone bool
}

// leavesReal says that some of the pods that are left are not virtual.
func leavesReal(unplaced []Unplaced) bool {
	return slices.ContainsFunc(unplaced, func(u Unplaced) bool { return !u.Pod.Virtual })
}

// outcome is the plan of one pass.
type outcome struct {
	Plan
	// limited says that a limit kept a machine from being bought.
	limited bool
	// lowest is the lowest priority of a pod that a machine is bought for.
	lowest int32
}

// fairly is the plan of one pass, or of a second pass by priority if that serves other pods and is fairer. Each pass
// starts anew.
func fairly(pass func(byPriority bool) outcome) Plan {
	first := pass(false)
	if !first.limited || len(first.Unplaced) == 0 {
		return first.Plan
	}
	second := pass(true)
	switch ahead, behind, same := compareLeft(second.Plan, first.Plan); {
	case ahead, same && second.PricePerHour() < first.PricePerHour(), !behind && !same && first.inverted():
		return second.Plan
	}
	return first.Plan
}

// inverted says that some pod has a new node while one of a higher priority is left.
func (o *outcome) inverted() bool {
	highest := int32(math.MinInt32)
	for _, u := range o.Unplaced {
		highest = max(highest, u.Pod.Priority)
	}
	return o.lowest < highest
}

func lowestPriority(bins []*bin) int32 {
	lowest := int32(math.MaxInt32)
	for _, b := range bins {
		for _, p := range b.content {
			for _, pod := range p.pods {
				lowest = min(lowest, pod.Priority)
			}
		}
	}
	return lowest
}

// compareLeft says whether a plan leaves fewer or more pods than another of the highest priority in which the two differ,
// and whether they leave the very same pods.
func compareLeft(a, b Plan) (ahead, behind, same bool) {
	balance, pods := map[int32]int{}, map[types.UID]bool{}
	for _, u := range a.Unplaced {
		balance[u.Pod.Priority]++
		pods[u.Pod.UID] = true
	}
	same = len(a.Unplaced) == len(b.Unplaced)
	for _, u := range b.Unplaced {
		balance[u.Pod.Priority]--
		same = same && pods[u.Pod.UID]
	}
	highest := int32(math.MinInt32)
	for priority, difference := range balance {
		if difference != 0 && priority >= highest {
			highest, ahead, behind = priority, difference < 0, difference > 0
		}
	}
	return ahead, behind, same
}

// priceByLimits makes what a machine uses up of its pool's limits its price, until the returned function is called. What
// costs money remains to decide between machines that are equal in this.
func (m *market) priceByLimits() (byMoney func()) {
	const money = 1e-6
	m.nothingRemote()
	machines, zones := slices.Clone(m.machines), slices.Clone(m.zonePrice)
	for i := range m.machines {
		mach := &m.machines[i]
		share := 0.0
		for _, a := range m.sellers[mach.pool].budget {
			if n := countOf(a.name, mach.size); n > 0 {
				share = max(share, float64(n)/float64(max(1, a.left)))
			}
		}
		mach.price = share + money*mach.price
		for z := range m.zones {
			price := &m.zonePrice[i*len(m.zones)+z]
			*price = share + money**price
		}
	}
	return func() {
		copy(m.machines, machines)
		copy(m.zonePrice, zones)
	}
}

// tiersOf splits items into those that are planned at once, the first of them first. By priority, items have to be of one
// priority each.
func tiersOf(items []*item, by order) [][]*item {
	rank := func(it *item) int64 {
		switch {
		case it.virtual && by.virtualLast:
			return math.MinInt64
		case by.priority:
			return int64(it.pods[0].Priority)
		}
		return 0
	}
	var tiers [][]*item
	ordered := slices.Clone(items)
	slices.SortStableFunc(ordered, func(a, b *item) int { return -cmp.Compare(rank(a), rank(b)) })
	for i, it := range ordered {
		if i == 0 || rank(it) != rank(ordered[i-1]) {
			tiers = append(tiers, nil)
		}
		tiers[len(tiers)-1] = append(tiers[len(tiers)-1], it)
	}
	return tiers
}
