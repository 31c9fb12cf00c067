package plan

import (
	"fmt"
	"slices"
	"strings"
)

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
	if may.most == 0 {
		if hopeless := slices.IndexFunc(items, f.fitsNowhere); hopeless >= 0 {
			return noRoomFor(items[hopeless])
		}
	}
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
		f.d.t.log.write(entry{other: slotClosing{s}})
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
	f.written, f.openings = len(f.d.t.log.entries), nil
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
	f.d.t.log.entries, f.written, f.kept, f.openings = nil, 0, nil, nil
}

// revert takes back all that was kept since.
func (f *field) revert() {
	f.rollback()
	f.bar(false)
	f.d.t.log.undo(0)
	f.written, f.openings = 0, nil
	for i := len(f.kept) - 1; i >= 0; i-- {
		k := &f.kept[i]
		k.st.own, k.st.guests, k.st.gone = k.own, k.guests, k.gone
	}
	f.kept = nil
}

// expects says whether pods are to come to a node, be it that they wait or that their own nodes go, and names one.
func (f *field) expects(n *Node) (*Pod, bool) { return f.stands[n.Key()].expects() }

func (st *stand) expects() (*Pod, bool) {
	for _, pod := range st.guests {
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
