package disrupt

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/place"
)

// A simulation is one distribution (place/distribute.go) over the whole snapshot, in which everything that waits has its
// place: pending pods, including those that the kube-scheduler has not looked at yet, the pods of leaving nodes or their
// successors, and the room that buffers keep free. A trial of it removes some nodes, places their pods and no others, and
// records its changes in a journal, so that undoing it is cheap.
//
// A trial says what Pack would say of the same snapshot with the nodes leaving, with these exceptions:
//
//   - Pods that move first fill the nodes that are not to be removed, then those that are the least likely to be.
//     Pack fills them by name. Where pods of several sizes just fit, one order may find room where another does not.
//   - Pods that wait keep the place the base gave them, as does the room of buffers, where Pack would place the largest
//     of all pods first. Their places are not offered to other pods.
//   - Pods are placed on existing nodes as long as the rules permit it, even where Pack would buy for the sake of an even
//     spread. As in Pack, a preference holds as long as something that meets it could be bought.
//   - Nodes that are not initialized take no pods: a pod that would be placed there is a reason to wait.
//   - A domain in which nothing can be bought because of a limit counts as one in which something could: pods that are
//     spread stay where Pack would put them into other domains.
//
// Each of these keeps a node that might have been removed, or finds another place; none moves a pod to where it may not be.

// Simulation is the base of all trials.
type Simulation struct {
	Distribution *place.Distribution
	Simulated    map[string]*simulatedNode
	// unready are the existing nodes that are not initialized. Only pods that wait may use them: they are closed to pods
	// that move.
	unready []*place.ExistingNode
	// byPrice are the machines that can be bought, the cheapest first.
	byPrice []int
	// shelves hold the same machines. What the market prefers is on an earlier shelf; the machines on one shelf compete by
	// price, the cheapest first.
	shelves [][]int
	// written is how much of the journal is kept. What comes after it is the last trial.
	written int
	// openings caches the first two existing nodes with room for a single pod of a pod group, rules about other pods aside.
	// It is cleared when the base changes.
	openings map[*place.PodGroup][]*place.ExistingNode
}

// simulatedNode is a node with the pods that need another place when it is removed.
type simulatedNode struct {
	node *model.Node
	slot *place.ExistingNode // nil if no pod can be placed on the node
	own  []*model.Pod
	// guests are pods that were placed on the node: they wait, or come from removed nodes.
	guests []*model.Pod
	// Gone says that the node is removed.
	Gone bool
}

// NewSimulation places everything that waits. movable are the nodes that trials may remove, the most likely first.
func NewSimulation(in model.Input, movable []*model.Node) *Simulation {
	in.Snapshot = withSuccessors(in.Snapshot)
	f := &Simulation{Simulated: make(map[string]*simulatedNode, len(in.Snapshot.Nodes)), openings: map[*place.PodGroup][]*place.ExistingNode{}}
	for _, n := range in.Snapshot.Nodes {
		f.Simulated[n.Key()] = &simulatedNode{node: n}
	}
	waits := place.Waiting(in.Snapshot)
	arriving, _ := in.Snapshot.Arriving()
	waits = append(waits, arriving...)
	pods := slices.Clone(waits)
	for _, n := range movable {
		if st := f.Simulated[n.Key()]; !st.node.Deleting && !st.node.Disrupted {
			st.own = n.Reschedulable()
			pods = append(pods, st.own...)
		}
	}
	f.Distribution = place.NewDistribution(&in, pods, waits, false)
	f.arrange(movable)
	f.stock()
	f.settle(waits)
	return f
}

// withSuccessors returns the snapshot as a Replacement intends it: the pods of the nodes that it removes are promised to
// the nodes that it has launched for them. Otherwise those pods would count on whatever nodes have room, and keep these
// from being replaced in their turn.
func withSuccessors(s *model.Snapshot) *model.Snapshot {
	moving := map[string][]types.UID{}
	for _, n := range s.Nodes {
		if n.Replacement == "" || !n.Leaving() {
			continue
		}
		for _, pod := range n.Pods {
			if pod.Reschedulable() {
				moving[n.Replacement] = append(moving[n.Replacement], pod.UID)
			}
		}
	}
	return with(s, func(n *model.Node) bool { return !n.Leaving() && len(moving[n.Replacement]) > 0 }, func(successor *model.Node) {
		successor.Promised = slices.Concat(successor.Promised, moving[successor.Replacement])
	})
}

// with returns the snapshot with some of its nodes changed.
func with(s *model.Snapshot, changes func(*model.Node) bool, change func(*model.Node)) *model.Snapshot {
	rest := *s
	rest.Nodes = slices.Clone(s.Nodes)
	for i, n := range rest.Nodes {
		if changes(n) {
			changed := *n
			change(&changed)
			rest.Nodes[i] = &changed
		}
	}
	return &rest
}

// arrange sorts existing nodes by the order in which they are filled.
func (f *Simulation) arrange(movable []*model.Node) {
	rank := make(map[string]int, len(movable))
	for i, n := range movable {
		rank[n.Key()] = len(movable) - i
	}
	slices.SortStableFunc(f.Distribution.Existing, func(a, b *place.ExistingNode) int {
		return cmp.Or(cmp.Compare(model.Flag(!a.Node.Initialized), model.Flag(!b.Node.Initialized)), cmp.Compare(rank[a.Node.Key()], rank[b.Node.Key()]))
	})
	for _, s := range f.Distribution.Existing {
		f.Simulated[s.Node.Key()].slot = s
		if !s.Node.Initialized {
			f.unready = append(f.unready, s)
		}
	}
}

// stock sorts what can be bought: by price, and on shelves by weight of the pool and reserved before all others.
func (f *Simulation) stock() {
	m := f.Distribution.Market
	for i := range m.Machines {
		if m.Machines[i].Zones != 0 {
			f.byPrice = append(f.byPrice, i)
		}
	}
	slices.SortStableFunc(f.byPrice, func(a, b int) int { return cmp.Compare(m.Machines[a].Price, m.Machines[b].Price) })
	shelves := map[[2]int][]int{}
	for _, i := range f.byPrice {
		mach := &m.Machines[i]
		at := [2]int{-int(market.Weight(m.Sellers[mach.Pool].NodePool)), min(mach.Capacity, place.Spot)} // spot and on-demand compete by price
		shelves[at] = append(shelves[at], i)
	}
	for _, at := range slices.SortedFunc(maps.Keys(shelves), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }) {
		f.shelves = append(f.shelves, shelves[at])
	}
}

// settle gives everything that waits its place. Later changes are recorded in the journal.
func (f *Simulation) settle(waits []*model.Pod) {
	d := f.Distribution
	d.PodGroups = f.copies(waits)
	place.Distribute(d, d.PodGroups)
	for i := range d.Placements {
		st := f.Simulated[d.Placements[i].Node]
		st.guests = append(st.guests, d.Placements[i].Pod)
	}
	for _, s := range f.unready {
		s.Closed = true
	}
	d.Topology.Journal.Keeps = true
	// Whatever has to be bought for the pods that wait is not bought here.
	f.Rollback()
}

// copies returns pod groups of some pods, in their initial state.
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
