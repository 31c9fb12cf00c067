package place

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/solve"
)

// Pack decides where the pods that wait for a node go: onto nodes that exist, onto claims in flight, or onto new
// claims. Pods that have to leave a node that is going away wait as well. Nothing is bought for pods for which a
// Replacement buys, nor for pods whose growth is paused: where a plan buys for some of these, it is made again without
// them. They are planned for in the first place because they may use existing room, and because no other pod may take
// the room that a Replacement has bought. If there is none, the Replacement waits or is undone, and the nodes of its
// pods keep serving.
func Pack(in model.Input) model.Plan {
	replaced := replacedPods(in.Snapshot)
	var paused []model.Unplaced
	for {
		packed := packAll(in)
		spared := map[types.UID]bool{}
		for i := range packed.Claims {
			for _, uid := range packed.Claims[i].Pods {
				if replaced[uid] || in.Growth[uid].Paused(in.Snapshot.Time) {
					spared[uid] = true
				}
			}
		}
		if len(spared) == 0 {
			packed.Unplaced = slices.DeleteFunc(packed.Unplaced, func(u model.Unplaced) bool { return replaced[u.Pod.UID] })
			packed.Unplaced = append(packed.Unplaced, paused...)
			return packed
		}
		for _, pod := range Waiting(in.Snapshot) {
			if spared[pod.UID] && !replaced[pod.UID] {
				g := in.Growth[pod.UID]
				why := fmt.Sprintf("launching further nodes for it is paused until %s: %d nodes came up for it, and it was placed on none of them", g.Until.UTC().Format(time.RFC3339), g.Nodes)
				paused = append(paused, model.Unplaced{Pod: pod, Reasons: []model.Reason{{Message: why}}})
			}
		}
		in.Snapshot = withoutPods(in.Snapshot, spared)
	}
}

// packAll plans for all pods alike, whether or not they are spared later. If a limit was met and real pods are left, it
// first plans virtual pods after all others, if there are any, and stops if that is enough. Otherwise it plans once
// more by priority. It takes that plan if it leaves fewer pods of the highest priority in which the two plans differ;
// if it leaves the same pods and costs less; or if it leaves other pods of the same priorities, and the earlier plan
// buys a node for a pod of lower priority than one it leaves. Each pass starts afresh.
func packAll(in model.Input) model.Plan {
	first := pack(&in, allAtOnce, nil)
	if !first.limited {
		return reordered(&in, first).Plan
	}
	if !slices.ContainsFunc(first.Unplaced, func(u model.Unplaced) bool { return !u.Pod.Virtual }) {
		return first.Plan
	}
	if slices.ContainsFunc(in.Snapshot.Pending, isVirtual) {
		if first = pack(&in, virtualLast, nil); !first.limited || len(first.Unplaced) == 0 {
			return first.Plan
		}
	}
	second := pack(&in, priorityFirst, nil)
	priority, uid := func(p *model.Pod) int32 { return p.Priority }, func(p *model.Pod) types.UID { return p.UID }
	before, after := leftBy(first.Plan, priority), leftBy(second.Plan, priority)
	same := slices.Equal(leftBy(second.Plan, uid), leftBy(first.Plan, uid))
	inverted := first.lowest < before[0] // some pod has a new node while one of a higher priority is left
	switch order := slices.Compare(after, before); {
	case order < 0, same && second.PricePerHour() < first.PricePerHour(), order == 0 && !same && inverted:
		return second.Plan
	}
	return first.Plan
}

// maxReordered is the number of pods, and of nodes, up to which reordered tries another order. In larger clusters,
// other pods fill the room that one pod leaves.
const maxReordered = 1000

// reordered returns a plan in which those pods go first that lacked a node because others took what their rules leave
// them. It returns the earlier plan if that leaves fewer pods, or as few at no higher price.
func reordered(in *model.Input, before outcome) outcome {
	if len(before.lacked) == 0 || max(len(in.Snapshot.Pending), len(in.Snapshot.Nodes)) > maxReordered {
		return before
	}
	after := pack(in, allAtOnce, before.lacked)
	if !after.limited && cmp.Or(len(after.Unplaced)-len(before.Unplaced), cmp.Compare(after.PricePerHour(), before.PricePerHour())) < 0 {
		return after
	}
	return before
}

// pack is one pass: all pods at once, or one after the other in an order. Pods that are spread over hosts count on the
// existing hosts alone, unless something is bought: a new host is emptier than all of them.
func pack(in *model.Input, by order, lacked map[types.UID]float64) outcome {
	packed := packOnce(in, by, true, lacked)
	if packed.leans && len(packed.Claims) > 0 {
		return packOnce(in, by, false, lacked)
	}
	return packed
}

// packOnce is one pass. With alone it assumes that no host is added, so that pods may be spread over the existing
// hosts. The pod groups of pods that lacked a node go before others, those with the dearest nodes first.
func packOnce(in *model.Input, by order, alone bool, lacked map[types.UID]float64) outcome {
	d := survey(in, by == priorityFirst)
	d.Topology.Alone = alone
	ruled := map[types.UID]bool{}
	for _, it := range d.PodGroups {
		for _, pod := range it.Pods {
			ruled[pod.UID] = !it.Rules.Empty()
			it.lacked += lacked[pod.UID]
		}
	}
	byMoney := func() {}
	if by == priorityFirst {
		byMoney = priceByLimits(d.Market)
	}
	var planned []*PlannedNode
	for _, tier := range tiersOf(d.PodGroups, by) {
		Distribute(d, tier)
		planned = BuyAll(d, planned, tier)
		d.intoSpareRoom(tier, planned)
	}
	byMoney()
	planned = audit(d, in.Snapshot, planned)
	result := outcome{limited: d.Market.LimitMet, leans: d.Topology.Leans, lowest: math.MaxInt32, lacked: map[types.UID]float64{}}
	result.Placements, result.Claims, result.Unsellable = d.Placements, Claims(d.Market, planned), d.Market.Unsellable()
	for _, b := range planned {
		price := d.Market.PriceIn(b.Machine, b.Zones) / float64(len(slices.Collect(b.pods)))
		for pod := range b.pods {
			result.lowest = min(result.lowest, pod.Priority)
			if ruled[pod.UID] && len(d.Placements) > 0 {
				result.lacked[pod.UID] = price
			}
		}
	}
	for _, it := range d.PodGroups {
		if len(it.Pods) == 0 {
			continue
		}
		reasons := Explain(d.Market, it)
		for _, pod := range it.Pods {
			if it.Unmet != "" {
				result.lacked[pod.UID] = math.SmallestNonzeroFloat64
			}
			result.Unplaced = append(result.Unplaced, model.Unplaced{Pod: pod, Reasons: reasons})
		}
	}
	return result
}

// survey finds the pods that wait, what they ask for, what exists and what can be bought.
func survey(in *model.Input, byPriority bool) *Distribution {
	pods := Waiting(in.Snapshot)
	d := NewDistribution(in, pods, pods, byPriority)
	sizes := map[model.Workload]int{}
	for _, pod := range pods {
		if pod.OwnerName != "" {
			sizes[pod.Workload()]++
		}
	}
	for _, it := range d.PodGroups {
		slices.SortFunc(it.Pods, FirstServed)
		it.alternate(sizes)
		d.Market.Batch += len(it.Pods)
		if len(it.Variants) > 0 {
			solve.Subtract(d.Market.Asked, it.Request, -len(it.Pods))
		}
	}
	return d
}

// Distribute places pod groups on nodes that exist or are on their way, and makes demand chunks of the rest.
func Distribute(d *Distribution, podGroups []*PodGroup) {
	for _, virtual := range [...]bool{false, true} {
		d.keepPromises(podGroups, virtual)
		order := InOrder(podGroups, virtual)
		for _, it := range order {
			d.Place(it)
		}
		Retry(d, order)
	}
}

// Retry places pods that rules about other pods left without a place, for as long as that helps: the pods they had to
// wait for may have been placed meanwhile.
func Retry(d *Distribution, podGroups []*PodGroup) {
	for helped := true; helped; {
		helped = false
		for _, it := range podGroups {
			if left := len(it.Pods); left > 0 && !it.Rules.Empty() {
				d.Place(it)
				helped = helped || len(it.Pods) < left
			}
		}
	}
}

// chunkAgain makes new demand chunks of what could not be bought, if pods may go to another domain or have a preference
// to give up. It reports whether it made any.
func chunkAgain(d *Distribution, podGroups []*PodGroup) bool {
	for _, l := range d.Chunks {
		if p := l.Content[0]; l.Left() > 0 && !l.bundle && p.as == p.it.shape {
			p.it.barred = append(p.it.barred, l.at)
		}
		d.giveBack(l)
	}
	d.Chunks = nil
	for _, it := range podGroups {
		if it.Refusal == "" && len(it.Pods) > 0 && (len(it.barred) > 0 || it.relax(d.Market)) {
			d.Place(it)
		}
	}
	return len(d.Chunks) > 0
}

// Waiting returns the pods that need a place: those for which the kube-scheduler found none, and those on nodes that
// are going away which have to move now.
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
