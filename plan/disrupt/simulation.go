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
// place: pending pods, also those that nobody has looked at yet, the pods of nodes that are leaving, or what succeeds them,
// and the room that buffers keep free. A trial of it takes some nodes away, places their pods and nobody else's, and writes
// what it changes into a journal, so that undoing it is cheap.
//
// A trial says what Pack would say of the same snapshot with the nodes on their way out, but for this:
//
//   - Pods that move fill the nodes first that nobody wants to take away, then those that are the least likely to go.
//     Pack fills them by name. Where pods of several sizes just fit, one order may find room where another does not.
//   - Pods that wait keep the place the base gave them, as the room of buffers does, where Pack would place the largest
//     of all pods first. What they have is not what is offered to others.
//   - Pods are placed on the nodes that are there as long as the rules permit it, also where Pack would buy for the sake
//     of an even spread. A preference is held to as long as something could be bought that meets it, as in Pack.
//   - Nodes that are not initialized take nobody: a pod that would go there is a reason to wait.
//   - A domain in which nothing can be bought because of a limit counts as one in which something could: pods that are
//     spread stay where Pack would put them into other domains.
//
// Each of these keeps a node that might have gone, or finds another place; none moves a pod to where it may not be.

// Simulation is the base of all trials.
type Simulation struct {
	Distribution *place.Distribution
	Simulated    map[string]*simulatedNode
	// unready are the existing nodes that only pods that wait may use: they are closed to those who move.
	unready []*place.ExistingNode
	// byPrice are the machines that can be bought, the cheapest first.
	byPrice []int
	// shelves are the same machines. What the market prefers is on an earlier shelf; the machines of one compete by price,
	// and the cheapest is the first.
	shelves [][]int
	// written is how much of the journal is kept. What comes after it is the trial that was tried last.
	written int
	// openings are the first two existing nodes with room for a pod of a pod group by itself, rules about other pods apart,
	// as far as somebody has asked since something changed.
	openings map[*place.PodGroup][]*place.ExistingNode
}

// simulatedNode is a node with the pods that have to go somewhere else when it goes.
type simulatedNode struct {
	node *model.Node
	slot *place.ExistingNode // nil where nothing can be put on the node
	own  []*model.Pod
	// guests are pods that were placed on the node: they wait, or come from nodes that go.
	guests []*model.Pod
	// Gone says that the node is taken away.
	Gone bool
}

// NewSimulation places all that waits. movable are the nodes that trials may take away, those first that are the most
// likely to go.
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

// withSuccessors is the snapshot as a Replacement means it: the pods of nodes that it takes away are promised to the
// nodes that it has launched for them. Without that, whoever reckons with those pods would see them on whatever nodes
// have room, and keep these from being replaced in their turn.
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

// with is the snapshot with some of its nodes changed.
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

// arrange brings existing nodes into the order in which they are filled.
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

// settle gives everything that waits its place. From then on what changes is written into the journal.
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
	// What has to be bought for those that wait is bought by others.
	f.Rollback()
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
