package disrupt

import (
	"cmp"
	"slices"

	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/place"
	"github.com/tenon-sh/tenon/plan/rules"
)

// NewSimulation places all that waits. movable are the nodes that trials may take away, those first that are the most
// likely to go.
func NewSimulation(in model.Input, movable []*model.Node) *Simulation {
	waits := place.Waiting(in.Snapshot)
	pods := slices.Clone(waits)
	f := &Simulation{in: in, Simulated: make(map[string]*simulatedNode, len(in.Snapshot.Nodes)), inDomain: map[domainKey][]*simulatedNode{}, movable: make(map[*model.Node]bool, len(movable))}
	for _, n := range in.Snapshot.Nodes {
		f.Simulated[n.Key()] = &simulatedNode{node: n}
	}
	for _, n := range movable {
		f.movable[n] = true
		st := f.Simulated[n.Key()]
		if n.Deleting || n.Disrupted || len(st.own) > 0 {
			continue
		}
		for _, pod := range n.Pods {
			if pod.Reschedulable() {
				st.own = append(st.own, pod)
			}
		}
		pods = append(pods, st.own...)
	}
	f.Distribution = place.NewDistribution(&in, pods, waits, false)
	f.arrange(f.Distribution.Existing, movable)
	shelveMachines(f)
	f.settle(in.Snapshot, waits)
	return f
}

// arrange brings existing nodes into the order in which they are filled.
func (f *Simulation) arrange(existing []*place.ExistingNode, movable []*model.Node) {
	rank := make(map[*model.Node]int, len(movable))
	for i, n := range movable {
		rank[n] = len(movable) - i
	}
	slices.SortStableFunc(existing, func(a, b *place.ExistingNode) int {
		return cmp.Or(cmp.Compare(model.Flag(!a.Node.Initialized), model.Flag(!b.Node.Initialized)), cmp.Compare(rank[a.Node], rank[b.Node]))
	})
	for _, s := range existing {
		f.Simulated[s.Node.Key()].slot = s
		if !s.Node.Initialized {
			f.unready = append(f.unready, s)
		}
	}
}

// settle gives everything that waits its place.
func (f *Simulation) settle(snapshot *model.Snapshot, waits []*model.Pod) {
	moving := make(map[*model.Pod]bool, len(waits))
	for _, pod := range waits {
		moving[pod] = pod.Node != ""
	}
	keys := f.Distribution.Topology.Keys
	for _, n := range snapshot.Nodes {
		st := f.Simulated[n.Key()]
		st.leaving = (n.Deleting || n.Disrupted) && !slices.ContainsFunc(n.Pods, func(p *model.Pod) bool { return !moving[p] && p.Reschedulable() })
		for _, key := range keys {
			if value, has := rules.Label(n, key); has {
				f.inDomain[domainKey{key, value}] = append(f.inDomain[domainKey{key, value}], st)
			}
		}
	}
	d := f.Distribution
	d.PodGroups = f.copies(waits)
	place.Distribute(d, d.PodGroups)
	for i := range d.Placements {
		st := f.Simulated[d.Placements[i].Node]
		st.guests = append(st.guests, d.Placements[i].Pod)
	}
	// What has to be bought for those that wait is bought by others.
	d.PodGroups, d.Chunks, d.Placements = nil, nil, nil
}

// copies are pod groups of some pods, as they are at the beginning.
func (f *Simulation) copies(pods []*model.Pod) []*place.PodGroup {
	byHome := make(map[*place.PodGroup]*place.PodGroup, len(pods))
	var podGroups []*place.PodGroup
	for _, pod := range pods {
		home := f.Distribution.Home[pod]
		it := byHome[home]
		if it == nil {
			again := *home
			it = &again
			it.Pods, it.Turn, it.Unmet = nil, 0, ""
			it.ShapeUp(f.Distribution.Market, 0)
			byHome[home] = it
			podGroups = append(podGroups, it)
		}
		it.Pods = append(it.Pods, pod)
	}
	for _, it := range podGroups {
		slices.SortFunc(it.Pods, place.FirstServed)
	}
	slices.SortFunc(podGroups, func(a, b *place.PodGroup) int { return cmp.Compare(a.Place, b.Place) })
	return podGroups
}
