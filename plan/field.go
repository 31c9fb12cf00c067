package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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
	d      *distribution
	stands map[string]*stand
	// inDomain are the stands by label and value.
	inDomain map[domainKey][]*stand
	// unready are the slots that only pods that wait may use; barred says that they are closed now.
	unready []*slot
	barred  bool
	shelves [][len(capacityTypes)][]int
	// tried is the fork that is written into the journal, if there is one. What is kept is before written.
	tried   *move
	written int
	purse   purse
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
	f := &field{stands: make(map[string]*stand, len(in.Snapshot.Nodes)), inDomain: map[domainKey][]*stand{}}
	for _, n := range in.Snapshot.Nodes {
		f.stands[n.Key()] = &stand{node: n}
	}
	for _, n := range movable {
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
	items := itemsOf(&in, book, t, pods, false)
	m := marketFor(&in, items)
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
	for _, n := range snapshot.Nodes {
		st := f.stands[n.Key()]
		st.leaving = (n.Deleting || n.Disrupted) && !slices.ContainsFunc(n.Pods, func(p *Pod) bool { return !moving[p] && p.Reschedulable() })
		for key, value := range n.Labels {
			f.inDomain[domainKey{key, value}] = append(f.inDomain[domainKey{key, value}], st)
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
			it.pods, it.step, it.turn, it.unmet = nil, 0, 0, ""
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

// relocate finds a place for all pods of some nodes, which are gone. A fork that succeeds stays as it is until the next
// one is tried: keep makes it part of the base. Where there is no place, why is a sentence for people.
func (f *field) relocate(nodes []*Node, may purchase) (found *move, why string, cause Cause) {
	// What is bought for pods that are spread is best bought where they were: there they are within the rules in any case.
	if zone := f.zoneOf(nodes); zone != 0 && may.most == 1 {
		found, why, cause = f.try(nodes, may, zone)
		if found != nil || cause == CausePrice {
			return found, why, cause
		}
	}
	return f.try(nodes, may, 0)
}

// zoneOf is the mask of the zone that nodes are all in; zero where there is none.
func (f *field) zoneOf(nodes []*Node) uint64 {
	if len(nodes) == 0 {
		return 0
	}
	zone, known := f.d.m.zoneIndex[nodes[0].Zone]
	if !known || slices.ContainsFunc(nodes, func(n *Node) bool { return n.Zone != nodes[0].Zone }) {
		return 0
	}
	return 1 << zone
}

// try is one fork, which buys for pods that are spread in some zones only, if any are given.
func (f *field) try(nodes []*Node, may purchase, zones uint64) (found *move, why string, cause Cause) {
	f.rollback()
	d := f.d
	d.t.log.keeps, d.buysIn = true, zones
	f.purse = d.m.purse()
	f.tried = &move{nodes: nodes}
	var pods []*Pod
	for _, n := range nodes {
		pods = append(pods, f.remove(f.stands[n.Key()])...)
	}
	items := f.copies(pods)
	d.items = items
	f.vanish(nodes, items)
	why, cause = f.replace(items, may)
	if why != "" {
		f.rollback()
		return nil, why, cause
	}
	found = f.tried
	found.placements = d.placements
	for _, claim := range found.claims {
		found.price += claim.PricePerHour
	}
	return found, "", ""
}

// replace places the items of a fork.
func (f *field) replace(items []*item, may purchase) (why string, cause Cause) {
	d := f.d
	f.bar(true)
	d.buysNothing = true
	for _, virtual := range [...]bool{false, true} {
		order := inOrder(items, virtual)
		for _, it := range order {
			if d.place(it); len(it.pods) > 0 && may.most == 0 && it.rules.empty() {
				return noRoomFor(it)
			}
		}
		for d.retry(order) {
			// Others may have made way.
		}
	}
	left := slices.IndexFunc(items, func(it *item) bool { return len(it.pods) > 0 })
	if left < 0 {
		return "", ""
	}
	if may.most == 0 {
		return noRoomFor(items[left])
	}
	f.bar(false)
	d.buysNothing = false
	before := len(d.placements)
	for _, virtual := range [...]bool{false, true} {
		order := inOrder(items, virtual)
		for _, it := range order {
			d.place(it)
		}
		for d.retry(order) {
			// Others may have made way.
		}
	}
	for i := before; i < len(d.placements); i++ {
		if p := d.placements[i]; !f.stands[p.Node].node.Initialized {
			return fmt.Sprintf("pod %s would go to %s, which is not initialized yet", p.Pod.Key(), p.Node), CauseRoom
		}
	}
	return f.buy(items, may)
}

func noRoomFor(it *item) (string, Cause) {
	pod := it.pods[0]
	why := fmt.Sprintf("pod %s would find no room on the other nodes", pod.Key())
	switch {
	case pod.Virtual:
		return "it keeps room free for " + pod.Key(), CauseBuffer
	case it.refusal != "":
		why = fmt.Sprintf("pod %s cannot be planned for: %s", pod.Key(), it.refusal)
	case it.unmet != "":
		why += ": " + it.unmet
	}
	return why, CauseRoom
}

// remove takes a node away and returns the pods that need another place.
func (f *field) remove(st *stand) []*Pod {
	st.gone = true
	if s := st.slot; s != nil && !s.closed {
		f.d.t.log.write(entry{slot: s, closed: true})
		s.close()
	}
	for _, pod := range st.own {
		for _, g := range f.d.home[pod].required.joins {
			value, has := st.node.domain(g.key)
			if has && (g.included == nil || g.included(st.node)) && (g.leaving || !pod.Terminating()) {
				g.addAt(value, -1)
				g.add(-1)
			}
		}
	}
	for _, pod := range st.guests {
		f.d.counted(st.slot, f.d.home[pod].required.joins, -1)
	}
	f.tried.pods += len(st.own)
	if len(st.guests) == 0 {
		return st.own
	}
	return slices.Concat(st.own, st.guests)
}

// vanish drops the domains that only the nodes made, as far as the items are spread over them.
func (f *field) vanish(nodes []*Node, items []*item) {
	seen := map[*group]bool{}
	check := func(r *spreadRule) {
		g := r.group
		if g.host >= 0 || seen[g] {
			return
		}
		seen[g] = true
		for _, n := range nodes {
			value, has := n.domain(g.key)
			if !has || !g.domains[value] {
				continue
			}
			makes := func(st *stand) bool {
				return !st.gone && !st.leaving && (g.included == nil || g.included(st.node))
			}
			if !slices.ContainsFunc(f.inDomain[domainKey{g.key, value}], makes) {
				delete(g.domains, value)
				f.d.t.log.write(entry{group: g, domain: value, vanished: true})
			}
		}
	}
	for _, it := range items {
		for i := range it.required.spread {
			check(&it.required.spread[i])
		}
		for i := range it.preferences {
			if it.preferences[i].spread != nil {
				check(it.preferences[i].spread)
			}
		}
	}
}

// bar closes the slots that are not ready to those who move, or opens them again.
func (f *field) bar(closed bool) {
	if f.barred == closed {
		return
	}
	f.barred = closed
	for _, s := range f.unready {
		if f.stands[s.node.Key()].gone {
			continue
		}
		if closed {
			s.close()
		} else {
			s.open()
		}
	}
}

// rollback takes back the fork that was tried, unless it was kept.
func (f *field) rollback() {
	if f.tried == nil {
		return
	}
	d := f.d
	for _, n := range f.tried.nodes {
		f.stands[n.Key()].gone = false
	}
	d.t.log.undo(f.written)
	f.bar(true)
	for _, s := range f.unready {
		if !s.closed {
			s.close()
		}
	}
	d.m.restore(f.purse)
	f.finish()
}

func (f *field) finish() {
	f.tried = nil
	f.d.t.log.keeps, f.d.buysIn = false, 0
	f.d.items, f.d.lots, f.d.placements = nil, nil, nil
}

// keep makes the fork that was tried last part of the base, so that what follows reckons with it. It says whether the
// move was that fork.
func (f *field) keep(found *move) bool {
	if found == nil || found != f.tried {
		return false
	}
	f.written = len(f.d.t.log.entries)
	for i := range found.placements {
		st := f.stands[found.placements[i].Node]
		f.kept = append(f.kept, keepsake{st, st.own, st.guests, st.gone})
		st.guests = append(slices.Clip(st.guests), found.placements[i].Pod)
	}
	for _, n := range found.nodes {
		st := f.stands[n.Key()]
		f.kept = append(f.kept, keepsake{st, st.own, st.guests, false})
		st.own, st.guests = nil, nil
	}
	f.finish()
	return true
}

// settleHere makes everything final that was kept so far, so that revert comes back to it.
func (f *field) settleHere() {
	f.rollback()
	f.d.t.log.entries, f.written, f.kept = nil, 0, nil
}

// revert takes back all that was kept since.
func (f *field) revert() {
	f.rollback()
	f.bar(false)
	f.d.t.log.undo(0)
	f.written = 0
	for i := len(f.kept) - 1; i >= 0; i-- {
		k := &f.kept[i]
		k.st.own, k.st.guests, k.st.gone = k.own, k.guests, k.gone
	}
	f.kept = nil
}

// expects says whether pods are to come to a node, be it that they wait or that their own nodes go, and names one.
func (f *field) expects(n *Node) (*Pod, bool) {
	guests := f.stands[n.Key()].guests
	for _, pod := range guests {
		if !pod.Virtual {
			return pod, true
		}
	}
	return nil, false
}

// names is a list of pods for people.
func names(pods []*Pod) string {
	var list []string
	for _, pod := range pods[:min(len(pods), 3)] {
		list = append(list, pod.Key())
	}
	if len(pods) > 3 {
		list = append(list, fmt.Sprintf("%d more", len(pods)-3))
	}
	return strings.Join(list, ", ")
}
