package disrupt

import (
	"slices"

	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/place"
	"github.com/tenon-sh/tenon/plan/rules"
)

// anyNumber allows as many claims as are needed.
const anyNumber = 1 << 30

// Relocate removes some nodes and finds a place for all their pods. It refuses if pods are expected on the nodes. It buys a
// limited number of claims (most); a single one has to meet the terms, if any. A trial that succeeds stays until the next
// one begins; keep makes it part of the base.
func (f *Simulation) Relocate(nodes []*model.Node, most int, on *terms) (claims []model.Claim, kept *model.Verdict) {
	for _, n := range nodes {
		if kept := f.expects(n); kept != nil {
			return nil, kept
		}
	}
	f.Rollback()
	var pods []*model.Pod
	for _, n := range nodes {
		pods = append(pods, f.remove(f.Simulated[n.Key()])...)
	}
	podGroups := f.copies(pods)
	f.vanish(nodes, podGroups)
	f.Distribution.PodGroups = podGroups
	if claims, kept = f.replace(podGroups, most, on); kept != nil {
		f.Rollback()
	}
	return claims, kept
}

// replace places the pod groups of a trial: on nodes that serve, as far as there is room, and then on what is bought.
func (f *Simulation) replace(podGroups []*place.PodGroup, most int, on *terms) ([]model.Claim, *model.Verdict) {
	left := f.placeAll(podGroups, most == 0)
	switch {
	case left == nil:
		return nil, nil
	case most == 0:
		return nil, noRoomFor(left, left.Pods[0])
	}
	d := f.Distribution
	d.BuysNothing = false
	before := len(d.Placements)
	f.bar(false)
	left = f.placeAll(podGroups, false)
	f.bar(true)
	for _, p := range d.Placements[before:] {
		if !f.Simulated[p.Node].node.Initialized {
			return nil, stays(model.CauseRoom, "pod %s would go to %s, which is not initialized yet", p.Pod.Key(), p.Node)
		}
	}
	if left != nil {
		return nil, noRoomFor(left, left.Pods[0])
	}
	return buyFor(f, podGroups, most, on)
}

// placeAll places pod groups, those of buffers last, and returns the first that has pods left. With all, it stops at a
// group without rules that has pods left, because no retry would place them.
func (f *Simulation) placeAll(podGroups []*place.PodGroup, all bool) (left *place.PodGroup) {
	d := f.Distribution
	for _, virtual := range [...]bool{false, true} {
		order := place.InOrder(podGroups, virtual)
		for _, it := range order {
			if d.Place(it); all && len(it.Pods) > 0 && it.Rules.Empty() {
				return it
			}
		}
		place.Retry(d, order)
	}
	if i := slices.IndexFunc(podGroups, func(it *place.PodGroup) bool { return len(it.Pods) > 0 }); i >= 0 {
		return podGroups[i]
	}
	return nil
}

// noRoomFor returns the verdict that one of a pod group's pods keeps a node.
func noRoomFor(it *place.PodGroup, pod *model.Pod) *model.Verdict {
	switch {
	case pod.Virtual:
		return stays(model.CauseBuffer, "it keeps room free for %s", pod.Key())
	case it.Refusal != "":
		return stays(model.CauseRoom, "pod %s cannot be planned for: %s", pod.Key(), it.Refusal)
	case it.Unmet != "":
		return stays(model.CauseRoom, "pod %s would find no room on the other nodes: %s", pod.Key(), it.Unmet)
	}
	return stays(model.CauseRoom, "pod %s would find no room on the other nodes", pod.Key())
}

// remove removes a node and returns the pods that need another place.
func (f *Simulation) remove(st *simulatedNode) []*model.Pod {
	st.Gone = true
	f.onUndo(func() { st.Gone = false })
	if s := st.slot; s != nil && !s.Closed {
		s.Closed = true
		f.onUndo(func() { s.Closed = false })
	}
	for _, pod := range st.own {
		for _, g := range f.Distribution.Home[pod].Required.Joins {
			value, has := rules.Domain(st.node, g.Key)
			if has && g.Includes(st.node) && (g.Leaving || !pod.Terminating()) {
				g.AddAt(value, -1)
				g.Add(-1)
			}
		}
	}
	for _, pod := range st.guests {
		f.Distribution.Counted(st.slot, f.Distribution.Home[pod].Required.Joins, -1)
	}
	return slices.Concat(st.own, st.guests)
}

// vanish drops the domains that only these nodes were in, as far as the pod groups are spread over them.
func (f *Simulation) vanish(nodes []*model.Node, podGroups []*place.PodGroup) {
	seen := map[*rules.Group]bool{}
	check := func(spread []rules.SpreadRule) {
		for i := range spread {
			g := spread[i].Group
			if g.Host >= 0 || seen[g] {
				continue
			}
			seen[g] = true
			for _, n := range nodes {
				if value, has := rules.Domain(n, g.Key); has && g.Domains[value] && !f.made(g, value) {
					delete(g.Domains, value)
					f.onUndo(func() { g.Domains[value] = true })
				}
			}
		}
	}
	for _, it := range podGroups {
		check(it.Required.Spread)
		for i := range it.Preferences {
			check(it.Preferences[i].Spread)
		}
	}
}

// made says whether some node that stays is in a group's domain. A leaving node counts as long as it has pods that must not
// be moved.
func (f *Simulation) made(g *rules.Group, domain string) bool {
	fixed := func(pod *model.Pod) bool { return pod.Reschedulable() && f.Distribution.Home[pod] == nil }
	for _, st := range f.Simulated {
		if value, has := rules.Domain(st.node, g.Key); has && value == domain && !st.Gone && g.Includes(st.node) &&
			(!st.node.Deleting && !st.node.Disrupted || slices.ContainsFunc(st.node.Pods, fixed)) {
			return true
		}
	}
	return false
}

// bar closes the existing nodes that are not initialized to pods that move, or opens them.
func (f *Simulation) bar(closed bool) {
	for _, s := range f.unready {
		s.Closed = closed || f.Simulated[s.Node.Key()].Gone
	}
}

// onUndo records how to undo the change that was just made.
func (f *Simulation) onUndo(back func()) { f.Distribution.Topology.Journal.Write(back) }

// Rollback undoes the last trial, unless it was kept, so that another can begin.
func (f *Simulation) Rollback() {
	d := f.Distribution
	d.Topology.Journal.Undo(f.written)
	d.PodGroups, d.Chunks, d.Placements, d.BuysNothing = nil, nil, nil, true
}

// keep makes the last trial part of the base, so that what follows builds on it.
func (f *Simulation) keep() {
	for _, p := range f.Distribution.Placements {
		st := f.Simulated[p.Node]
		guests := st.guests
		st.guests = append(slices.Clip(guests), p.Pod)
		f.onUndo(func() { st.guests = guests })
	}
	f.written = len(f.Distribution.Topology.Journal.Entries)
	clear(f.openings)
}

// expects says that a pod is expected on the node, because it waits or because its own node is removed; nil if none is.
func (f *Simulation) expects(n *model.Node) *model.Verdict {
	guests := f.Simulated[n.Key()].guests
	if i := slices.IndexFunc(guests, func(pod *model.Pod) bool { return !pod.Virtual }); i >= 0 {
		return stays(model.CauseNominated, "pod %s is to come to it", guests[i].Key())
	}
	return nil
}
