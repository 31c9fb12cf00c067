package disrupt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/place"
	"github.com/tenon-sh/tenon/plan/rules"
)

// Relocate finds a place for all pods of some nodes, which are gone; nobody may be about to come to them. A trial that
// succeeds stays as it is until the next one is tried: keep makes it part of the base.
func (f *Simulation) Relocate(nodes []*model.Node, may Purchase) (found *move, kept *model.Verdict) {
	for _, n := range nodes {
		if kept := f.Simulated[n.Key()].expects(); kept != nil {
			return nil, kept
		}
	}
	f.begin(nodes)
	var pods []*model.Pod
	for _, n := range nodes {
		pods = append(pods, f.remove(f.Simulated[n.Key()])...)
	}
	podGroups, d := f.copies(pods), f.Distribution
	d.PodGroups = podGroups
	f.vanish(nodes, podGroups)
	if kept = f.replace(podGroups, may); kept != nil {
		f.Rollback()
		return nil, kept
	}
	found = f.tried
	found.Placements = d.Placements
	for _, claim := range found.Claims {
		found.price += claim.PricePerHour
	}
	return found, nil
}

// begin begins a trial in which nodes are to be removed.
func (f *Simulation) begin(nodes []*model.Node) {
	f.Rollback()
	f.Distribution.Topology.Journal.Keeps = true
	f.purse = f.Distribution.Market.Purse()
	f.tried = &move{nodes: nodes}
}

// replace places the pod groups of a trial: on nodes that serve, as far as there is room, and then on what is bought.
func (f *Simulation) replace(podGroups []*place.PodGroup, may Purchase) *model.Verdict {
	f.bar(true)
	f.Distribution.BuysNothing = true
	if may.Most == 0 {
		if hopeless := slices.IndexFunc(podGroups, f.fitsNowhere); hopeless >= 0 {
			return noRoomFor(podGroups[hopeless])
		}
	}
	if hopeless := f.placeAll(podGroups, may.Most == 0); hopeless != nil {
		return noRoomFor(hopeless)
	}
	left := slices.IndexFunc(podGroups, func(it *place.PodGroup) bool { return len(it.Pods) > 0 })
	switch {
	case left < 0:
		return nil
	case may.Most == 0:
		return noRoomFor(podGroups[left])
	}
	f.bar(false)
	f.Distribution.BuysNothing = false
	before := len(f.Distribution.Placements)
	f.placeAll(podGroups, false)
	for _, p := range f.Distribution.Placements[before:] {
		if !f.Simulated[p.Node].node.Initialized {
			return stays(model.CauseRoom, "pod %s would go to %s, which is not initialized yet", p.Pod.Key(), p.Node)
		}
	}
	return buyFor(f, podGroups, may)
}

// placeAll places pod groups, those of buffers last. Where all have to find a place, it stops at one that has no rules and
// finds none: nobody makes way for it.
func (f *Simulation) placeAll(podGroups []*place.PodGroup, all bool) (hopeless *place.PodGroup) {
	d := f.Distribution
	for _, virtual := range [...]bool{false, true} {
		order := place.InOrder(podGroups, virtual)
		for _, it := range order {
			if d.Place(it); all && len(it.Pods) > 0 && it.Rules.Empty() {
				return it
			}
		}
		for place.Retry(d, order) {
			// Others may have made way.
		}
	}
	return nil
}

// noRoomFor says that the first of a pod group's pods keeps a node.
func noRoomFor(it *place.PodGroup) *model.Verdict {
	pod := it.Pods[0]
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

// remove takes a node away and returns the pods that need another place.
func (f *Simulation) remove(st *simulatedNode) []*model.Pod {
	st.Gone = true
	if s := st.slot; s != nil && !s.Closed {
		f.Distribution.Topology.Journal.Write(s.Open)
		s.Close()
	}
	for _, pod := range st.own {
		for _, g := range f.Distribution.Home[pod].Required.Joins {
			value, has := rules.Domain(st.node, g.Key)
			if has && (g.Included == nil || g.Included(st.node)) && (g.Leaving || !pod.Terminating()) {
				g.AddAt(value, -1)
				g.Add(-1)
			}
		}
	}
	for _, pod := range st.guests {
		f.Distribution.Counted(st.slot, f.Distribution.Home[pod].Required.Joins, -1)
	}
	f.tried.pods += len(st.own)
	if len(st.guests) == 0 {
		return st.own
	}
	return slices.Concat(st.own, st.guests)
}

// vanish drops the domains that only the nodes made, as far as the pod groups are spread over them.
func (f *Simulation) vanish(nodes []*model.Node, podGroups []*place.PodGroup) {
	seen := map[*rules.Group]bool{}
	check := func(r *rules.SpreadRule) {
		g := r.Group
		if g.Host >= 0 || seen[g] {
			return
		}
		seen[g] = true
		for _, n := range nodes {
			value, has := rules.Domain(n, g.Key)
			if !has || !g.Domains[value] {
				continue
			}
			makes := func(st *simulatedNode) bool {
				return !st.Gone && !st.leaving && (g.Included == nil || g.Included(st.node))
			}
			if !slices.ContainsFunc(f.inDomain[domainKey{g.Key, value}], makes) {
				delete(g.Domains, value)
				f.Distribution.Topology.Journal.Write(func() { g.Domains[value] = true })
			}
		}
	}
	for _, it := range podGroups {
		for i := range it.Required.Spread {
			check(&it.Required.Spread[i])
		}
		for i := range it.Preferences {
			for j := range it.Preferences[i].Spread {
				check(&it.Preferences[i].Spread[j])
			}
		}
	}
}

// bar closes the existing nodes that are not ready to those who move, or opens them again.
func (f *Simulation) bar(closed bool) {
	if f.barred == closed {
		return
	}
	f.barred = closed
	for _, s := range f.unready {
		if f.Simulated[s.Node.Key()].Gone {
			continue
		}
		if closed {
			s.Close()
		} else {
			s.Open()
		}
	}
}

// Rollback takes back the trial that was tried, unless it was kept.
func (f *Simulation) Rollback() {
	if f.tried == nil {
		return
	}
	d := f.Distribution
	for _, n := range f.tried.nodes {
		f.Simulated[n.Key()].Gone = false
	}
	d.Topology.Journal.Undo(f.written)
	f.bar(true)
	for _, s := range f.unready {
		if !s.Closed {
			s.Close()
		}
	}
	d.Market.Restore(f.purse)
	f.finish()
}

func (f *Simulation) finish() {
	f.tried = nil
	f.Distribution.Topology.Journal.Keeps = false
	f.Distribution.PodGroups, f.Distribution.Chunks, f.Distribution.Placements = nil, nil, nil
}

// keep makes the trial that was tried last part of the base, so that what follows reckons with it.
func (f *Simulation) keep(found *move) {
	f.written, f.openings = len(f.Distribution.Topology.Journal.Entries), nil
	for i := range found.Placements {
		st := f.Simulated[found.Placements[i].Node]
		f.kept = append(f.kept, undoState{st, st.own, st.guests, st.Gone})
		st.guests = append(slices.Clip(st.guests), found.Placements[i].Pod)
	}
	for _, n := range found.nodes {
		st := f.Simulated[n.Key()]
		f.kept = append(f.kept, undoState{st, st.own, st.guests, false})
		st.own, st.guests = nil, nil
	}
	f.finish()
}

// settleHere makes everything final that was kept so far, so that revert comes back to it.
func (f *Simulation) settleHere() {
	f.Rollback()
	f.Distribution.Topology.Journal.Entries, f.written, f.kept, f.openings = nil, 0, nil, nil
}

// revert takes back all that was kept since.
func (f *Simulation) revert() {
	f.Rollback()
	f.bar(false)
	f.Distribution.Topology.Journal.Undo(0)
	f.written, f.openings = 0, nil
	for i := len(f.kept) - 1; i >= 0; i-- {
		k := &f.kept[i]
		k.st.own, k.st.guests, k.st.Gone = k.own, k.guests, k.gone
	}
	f.kept = nil
}

// expects says that a pod is to come to the node, be it that it waits or that its own node goes; nil where none is.
func (st *simulatedNode) expects() *model.Verdict {
	if i := slices.IndexFunc(st.guests, func(pod *model.Pod) bool { return !pod.Virtual }); i >= 0 {
		return stays(model.CauseNominated, "pod %s is to come to it", st.guests[i].Key())
	}
	return nil
}

// names is a list of pods for people.
func names(pods []*model.Pod) string {
	const most = 3
	var list []string
	for i, pod := range pods {
		if i == most {
			list = append(list, fmt.Sprintf("%d more", len(pods)-most))
			break
		}
		list = append(list, pod.Key())
	}
	return strings.Join(list, ", ")
}
