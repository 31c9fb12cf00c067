package plan

import (
	"cmp"
	"slices"
)

// What becomes of the cluster when a node goes is asked thousands of times, so it must not cost a plan each. A field is
// one distribution (distribute.go) over the whole snapshot, in which everything that waits has its place: pending pods,
// the pods of nodes that are leaving, and the room that buffers keep free. A fork of it takes some nodes away, places
// their pods and nobody else's, and writes what it changes into a journal. Undoing that is as cheap as doing it.
//
// A fork says what Pack would say of the same snapshot with the nodes on their way out, but for this:
//
//   - Pods that move fill the nodes first that nobody wants to take away, then those that are the least likely to go.
//     Pack fills them by name. Where pods of several sizes just fit, one order may find room where another does not.
//   - Pods that wait keep the place the base gave them, as the room of buffers does, where Pack would place the largest of
//     all pods first. What they have is not what is offered to others.
//   - Pods are placed on the nodes that are there as long as the rules permit it, also where Pack would buy for the sake
//     of an even spread. A preference is held to as long as something could be bought that meets it, as in Pack.
//   - Nodes that are not initialized take nobody: a pod that would go there is a reason to wait.
//   - A domain in which nothing can be bought because of a limit counts as one in which something could: pods that are spread
//     stay where Pack would put them into other domains.
//
// Each of these keeps a node that might have gone, or finds another place; none moves a pod to where it may not be.

// field is the base of all forks.
type field struct {
	in Input
	// movable are the nodes that forks may take away.
	movable map[*Node]bool
	d       *distribution
	stands  map[string]*stand
	// inDomain are the stands by label and value, of the labels that groups are about.
	inDomain map[domainKey][]*stand
	// unready are the slots that only pods that wait may use; barred says that they are closed now.
	unready []*slot
	barred  bool
	shelves [][len(capacityTypes)][]int
	// tried is the fork that is written into the journal, if there is one. What is kept is before written.
	tried   *move
	written int
	purse   purse
	// openings are the slots with room for a pod of an item, as things are; nil where nobody has asked since they changed.
	openings map[*item]*opening
	// kept are the moves since the mark that can still be taken back, with what they changed on stands.
	kept []keepsake
}

// keepsake is what a stand was like.
type keepsake struct {
	st          *stand
	own, guests []*Pod
	gone        bool
}

type domainKey struct{ key, value string }

// stand is a node with the pods that have to go somewhere else when it goes.
type stand struct {
	node *Node
	slot *slot // nil where nothing can be put on the node
	own  []*Pod
	// guests are pods that were placed on the node: they wait, or come from nodes that go.
	guests []*Pod
	// gone says that the node is taken away.
	gone bool
	// leaving says that the node makes no domain any more.
	leaving bool
}

// purchase is what a fork may buy.
type purchase struct {
	// most is how many claims may be bought: none, one, or any number.
	most int
	// terms are those a single claim has to meet; nil if any will do.
	terms *terms
}

// anyNumber of claims is as many as are needed.
const anyNumber = 1 << 30

// move is what a fork found out: where the pods of some nodes go.
type move struct {
	nodes      []*Node
	placements []Placement
	claims     []Claim
	// price is what the claims cost, in dollars per hour.
	price float64
	// pods is how many running pods have to move.
	pods int
}

// newField places all that waits. movable are the nodes that forks may take away, those first that are the most likely to
// go.
func newField(in Input, movable []*Node) *field {
	book, t := in.Snapshot.volumes(), newTopology(in.Snapshot.Namespaces)
	waits := waiting(in.Snapshot)
	pods := slices.Clone(waits)
	f := &field{in: in, stands: make(map[string]*stand, len(in.Snapshot.Nodes)), inDomain: map[domainKey][]*stand{}, movable: make(map[*Node]bool, len(movable))}
	for _, n := range in.Snapshot.Nodes {
		f.stands[n.Key()] = &stand{node: n}
	}
	for _, n := range movable {
		f.movable[n] = true
		st := f.stands[n.Key()]
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
	items := homesOf(&in, book, t, pods, false)
	m := newMarket(&in, dimensionsOf(&in, items))
	m.book, m.hosts = book, t.hosts
	if len(t.groups) > 0 {
		t.survey(in.Snapshot, waits)
	}
	home := make(map[*Pod]*item, len(pods))
	for _, it := range items {
		for _, pod := range it.pods {
			home[pod] = it
		}
	}
	slots := m.slotsOf(book, t)
	f.arrange(slots, movable)
	f.d = newDistribution(m, t, nil, home, waits, slots)
	f.d.now = in.Snapshot.Time
	f.shelve()
	f.settle(in.Snapshot, waits)
	return f
}

// arrange brings slots into the order in which they are filled.
func (f *field) arrange(slots []*slot, movable []*Node) {
	rank := make(map[*Node]int, len(movable))
	for i, n := range movable {
		rank[n] = len(movable) - i
	}
	slices.SortStableFunc(slots, func(a, b *slot) int {
		return cmp.Or(cmp.Compare(flag(!a.node.Initialized), flag(!b.node.Initialized)), cmp.Compare(rank[a.node], rank[b.node]))
	})
	for _, s := range slots {
		f.stands[s.node.Key()].slot = s
		if !s.node.Initialized {
			f.unready = append(f.unready, s)
		}
	}
}

// settle gives everything that waits its place.
func (f *field) settle(snapshot *Snapshot, waits []*Pod) {
	moving := make(map[*Pod]bool, len(waits))
	for _, pod := range waits {
		moving[pod] = pod.Node != ""
	}
	keys := f.d.t.keys()
	for _, n := range snapshot.Nodes {
		st := f.stands[n.Key()]
		st.leaving = (n.Deleting || n.Disrupted) && !slices.ContainsFunc(n.Pods, func(p *Pod) bool { return !moving[p] && p.Reschedulable() })
		for _, key := range keys {
			if value, has := n.label(key); has {
				f.inDomain[domainKey{key, value}] = append(f.inDomain[domainKey{key, value}], st)
			}
		}
	}
	d := f.d
	d.items = f.copies(waits)
	d.distribute(d.items)
	for i := range d.placements {
		st := f.stands[d.placements[i].Node]
		st.guests = append(st.guests, d.placements[i].Pod)
	}
	// What has to be bought for those that wait is bought by others.
	d.items, d.lots, d.placements = nil, nil, nil
}

// copies are items of some pods, as they are at the beginning.
func (f *field) copies(pods []*Pod) []*item {
	byHome := make(map[*item]*item, len(pods))
	var items []*item
	for _, pod := range pods {
		home := f.d.home[pod]
		it := byHome[home]
		if it == nil {
			again := *home
			it = &again
			it.pods, it.step, it.turn, it.unmet, it.home = nil, 0, 0, "", home
			it.shapeUp()
			f.d.m.weigh(it)
			byHome[home] = it
			items = append(items, it)
		}
		it.pods = append(it.pods, pod)
	}
	for _, it := range items {
		slices.SortFunc(it.pods, firstServed)
	}
	slices.SortFunc(items, func(a, b *item) int { return cmp.Compare(a.place, b.place) })
	return items
}
