package place

import (
	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
	"github.com/tenon-sh/tenon/plan/solve"
)

// Pack decides where the pods that wait for a node go: onto nodes that exist, onto claims in flight, or onto new
// claims. Pods that will have to leave a node which is going away wait as well; nothing is bought for them where a
// Replacement does so, and for pods whose growth is paused.
func Pack(in model.Input) model.Plan { return packPaused(in) }

// PackAll plans for all pods alike, whoever sees to them.
func PackAll(in model.Input) model.Plan {
	together := func(byPriority bool) outcome { return pack(&in, order{priority: byPriority}) }
	if !hasVirtual(in.Snapshot.Pending) {
		return fairly(together)
	}
	if first := together(false); !first.limited || !leavesReal(first.Unplaced) {
		return first.Plan
	}
	return fairly(func(byPriority bool) outcome { return pack(&in, order{priority: byPriority, virtualLast: true}) })
}

// pack is one pass: all pods at once, or one after the other in an order. Pods that are spread over hosts count on those
// that are there, unless something is bought: a new host is emptier than all of them.
func pack(in *model.Input, by order) outcome {
	by.alone = true
	if alone, leans := packOnce(in, by); !leans || len(alone.Claims) == 0 {
		return alone
	}
	by.alone = false
	packed, _ := packOnce(in, by)
	return packed
}

// packOnce is one pass under one view of the hosts, and says whether it leans on that view.
func packOnce(in *model.Input, by order) (packed outcome, leans bool) {
	d := survey(in, by.priority)
	d.Topology.Alone = by.alone
	byMoney := func() {}
	if by.priority {
		byMoney = priceByLimits(d.Market)
	}
	var planned []*PlannedNode
	for _, tier := range tiersOf(d.PodGroups, by) {
		Distribute(d, tier)
		planned = Buy(d.Market, planned, d.Chunks)
		for ChunkAgain(d, tier) {
			planned = Buy(d.Market, planned, d.Chunks)
		}
		d.intoSpareRoom(tier, planned)
	}
	byMoney()
	planned = audit(d, in.Snapshot, planned)
	result := model.Plan{Placements: d.Placements, Claims: Claims(d.Market, planned)}
	for _, it := range d.PodGroups {
		if len(it.Pods) == 0 {
			continue
		}
		reasons := Explain(d.Market, it)
		for _, pod := range it.Pods {
			result.Unplaced = append(result.Unplaced, model.Unplaced{Pod: pod, Reasons: reasons})
		}
	}
	return outcome{Plan: result, limited: d.Market.LimitMet, lowest: lowestPriority(planned)}, d.Topology.Leans
}

// survey finds out what waits, what it asks for, what there is and what can be bought.
func survey(in *model.Input, byPriority bool) *Distribution {
	book, t := rules.Volumes(in.Snapshot), rules.NewTopology(in.Snapshot.Namespaces)
	pods := Waiting(in.Snapshot)
	podGroups := podGroupsOf(in, book, t, pods, byPriority)
	m := marketFor(in, podGroups)
	m.Book, m.Hosts = book, t.Hosts
	if len(t.Groups) > 0 {
		t.Survey(in.Snapshot, pods)
	}
	sizes := map[workload]int{}
	for _, pod := range pods {
		if pod.OwnerName != "" {
			sizes[workloadOf(pod)]++
		}
	}
	for _, it := range podGroups {
		it.countWorkloads(sizes)
		m.Batch += len(it.Pods)
		Weigh(m, it)
		if len(it.Variants) > 0 {
			solve.Subtract(m.Asked, it.Request, -len(it.Pods))
		}
	}
	market.TellRemote(m, pods)
	home := map[*model.Pod]*PodGroup{}
	for _, it := range podGroups {
		for _, pod := range it.Pods {
			home[pod] = it
		}
	}
	d := NewDistribution(m, t, podGroups, home, pods, ExistingNodesOf(m, book, t))
	d.Now = in.Snapshot.Time
	return d
}

// Distribute places pod groups on the nodes that are there or on their way, and makes demand chunks of the rest.
func Distribute(d *Distribution, podGroups []*PodGroup) {
	for _, virtual := range [...]bool{false, true} {
		d.keepPromises(podGroups, virtual)
		order := InOrder(podGroups, virtual)
		for _, it := range order {
			d.Place(it)
		}
		for Retry(d, order) {
			// What was placed meanwhile may be what others had to wait for.
		}
	}
}

// Retry places once more what rules about other pods kept from a place, and says whether that helped.
func Retry(d *Distribution, podGroups []*PodGroup) bool {
	helped := false
	for _, it := range podGroups {
		if left := len(it.Pods); left > 0 && !it.Rules.Empty() {
			d.Place(it)
			helped = helped || len(it.Pods) < left
		}
	}
	return helped
}

// ChunkAgain makes new demand chunks of what could not be bought, for pods that may go to another domain or have a
// preference to give up.
func ChunkAgain(d *Distribution, podGroups []*PodGroup) bool {
	elsewhere := map[*PodGroup]bool{}
	for _, l := range d.Chunks {
		if l.Left() > 0 {
			if p := l.Content[0]; !l.bundle && len(l.at) > 0 && p.as == p.it.shape {
				p.as.barred = append(p.as.barred, l.at)
				elsewhere[p.it] = true
			}
			d.giveBack(l)
		}
	}
	d.Chunks = nil
	for _, it := range podGroups {
		switch {
		case it.Refusal != "" || len(it.Pods) == 0:
		case elsewhere[it]:
			d.Place(it)
		case it.relax():
			Weigh(d.Market, it)
			d.Place(it)
		}
	}
	return len(d.Chunks) > 0
}

func marketFor(in *model.Input, podGroups []*PodGroup) *market.Market {
	return market.NewMarket(in, DimensionsOf(in, podGroups))
}

// DimensionsOf numbers the resources that matter to an input's pods.
func DimensionsOf(in *model.Input, podGroups []*PodGroup) *market.Dimensions {
	var classes []*model.Class
	for _, it := range podGroups {
		classes = append(classes, it.Class)
	}
	for _, set := range in.Snapshot.DaemonSets {
		classes = append(classes, set.Class)
	}
	return market.NewDimensions(classes, hostCapsOf(podGroups)...)
}

// Waiting are the pods that need a place: those the kube-scheduler found none for, and those on nodes that are going
// away and have to move now.
func Waiting(snapshot *model.Snapshot) []*model.Pod {
	pods, _ := snapshot.WaitingForNode()
	for _, n := range snapshot.Nodes {
		if !n.Deleting && !n.Disrupted {
			continue
		}
		for _, pod := range n.Pods {
			if at, moves := pod.MovesAt(n.EndsAt, snapshot.Time); moves && !at.After(snapshot.Time) {
				pods = append(pods, pod)
			}
		}
	}
	return pods
}
