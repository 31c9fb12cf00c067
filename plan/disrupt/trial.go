package disrupt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/place"
	"github.com/tenon-sh/tenon/plan/rules"
)

// Relocate finds a place for all pods of some nodes, which are gone. A trial that succeeds stays as it is until the next
// one is tried: keep makes it part of the base. Where there is no place, why is a sentence for people.
func (f *Simulation) Relocate(nodes []*model.Node, may Purchase) (found *move, why string, cause model.Cause) {
	// What is bought for pods that are spread is best bought where they were: there they are within the rules in any case.
	if zone := f.zoneOf(nodes); zone != 0 && may.Most == 1 {
		found, why, cause = f.try(nodes, may, zone)
		if found != nil || cause == model.CausePrice {
			return found, why, cause
		}
	}
	return f.try(nodes, may, 0)
}

// zoneOf is the mask of the zone that nodes are all in; zero where there is none.
func (f *Simulation) zoneOf(nodes []*model.Node) uint64 {
	if len(nodes) == 0 {
		return 0
	}
	zone, known := f.Distribution.Market.ZoneIndex[nodes[0].Zone]
	if !known || slices.ContainsFunc(nodes, func(n *model.Node) bool { return n.Zone != nodes[0].Zone }) {
		return 0
	}
	return 1 << zone
}

// try is one trial, which buys for pods that are spread in some zones only, if any are given.
func (f *Simulation) try(nodes []*model.Node, may Purchase, zones uint64) (found *move, why string, cause model.Cause) {
	f.Rollback()
	d := f.Distribution
	d.Topology.Journal.Keeps, d.BuysIn = true, zones
	f.purse = d.Market.Purse()
	f.tried = &move{nodes: nodes}
	var pods []*model.Pod
	for _, n := range nodes {
		pods = append(pods, f.remove(f.Simulated[n.Key()])...)
	}
	podGroups := f.copies(pods)
	d.PodGroups = podGroups
	f.vanish(nodes, podGroups)
	why, cause = f.replace(podGroups, may)
	if why != "" {
		f.Rollback()
		return nil, why, cause
	}
	found = f.tried
	found.Placements = d.Placements
	for _, claim := range found.Claims {
		found.price += claim.PricePerHour
	}
	return found, "", ""
}

// replace places the pod groups of a trial.
func (f *Simulation) replace(podGroups []*place.PodGroup, may Purchase) (why string, cause model.Cause) {
	d := f.Distribution
	f.bar(true)
	d.BuysNothing = true
	if may.Most == 0 {
		if hopeless := slices.IndexFunc(podGroups, f.fitsNowhere); hopeless >= 0 {
			return noRoomFor(podGroups[hopeless])
		}
	}
	for _, virtual := range [...]bool{false, true} {
		order := place.InOrder(podGroups, virtual)
		for _, it := range order {
			if d.Place(it); len(it.Pods) > 0 && may.Most == 0 && it.Rules.Empty() {
				return noRoomFor(it)
			}
		}
		for place.Retry(d, order) {
			// Others may have made way.
		}
	}
	left := slices.IndexFunc(podGroups, func(it *place.PodGroup) bool { return len(it.Pods) > 0 })
	if left < 0 {
		return "", ""
	}
	if may.Most == 0 {
		return noRoomFor(podGroups[left])
	}
	f.bar(false)
	d.BuysNothing = false
	before := len(d.Placements)
	for _, virtual := range [...]bool{false, true} {
		order := place.InOrder(podGroups, virtual)
		for _, it := range order {
			d.Place(it)
		}
		for place.Retry(d, order) {
			// Others may have made way.
		}
	}
	for i := before; i < len(d.Placements); i++ {
		if p := d.Placements[i]; !f.Simulated[p.Node].node.Initialized {
			return fmt.Sprintf("pod %s would go to %s, which is not initialized yet", p.Pod.Key(), p.Node), model.CauseRoom
		}
	}
	return buyFor(f, podGroups, may)
}

func noRoomFor(it *place.PodGroup) (string, model.Cause) {
	pod := it.Pods[0]
	why := fmt.Sprintf("pod %s would find no room on the other nodes", pod.Key())
	switch {
	case pod.Virtual:
		return "it keeps room free for " + pod.Key(), model.CauseBuffer
	case it.Refusal != "":
		why = fmt.Sprintf("pod %s cannot be planned for: %s", pod.Key(), it.Refusal)
	case it.Unmet != "":
		why += ": " + it.Unmet
	}
	return why, model.CauseRoom
}

// remove takes a node away and returns the pods that need another place.
func (f *Simulation) remove(st *simulatedNode) []*model.Pod {
	st.Gone = true
	if s := st.slot; s != nil && !s.Closed {
		f.Distribution.Topology.Journal.Write(rules.Entry{Other: place.NodeClosing{Node: s}})
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
				f.Distribution.Topology.Journal.Write(rules.Entry{Group: g, Domain: value, Vanished: true})
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
	f.Distribution.Topology.Journal.Keeps, f.Distribution.BuysIn = false, 0
	f.Distribution.PodGroups, f.Distribution.Chunks, f.Distribution.Placements = nil, nil, nil
}

// keep makes the trial that was tried last part of the base, so that what follows reckons with it. It says whether the
// move was that trial.
func (f *Simulation) keep(found *move) bool {
	if found == nil || found != f.tried {
		return false
	}
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
	return true
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

// expects says whether pods are to come to a node, be it that they wait or that their own nodes go, and names one.
func (f *Simulation) expects(n *model.Node) (*model.Pod, bool) { return f.Simulated[n.Key()].expects() }

func (st *simulatedNode) expects() (*model.Pod, bool) {
	for _, pod := range st.guests {
		if !pod.Virtual {
			return pod, true
		}
	}
	return nil, false
}

// names is a list of pods for people.
func names(pods []*model.Pod) string {
	var list []string
	for _, pod := range pods[:min(len(pods), 3)] {
		list = append(list, pod.Key())
	}
	if len(pods) > 3 {
		list = append(list, fmt.Sprintf("%d more", len(pods)-3))
	}
	return strings.Join(list, ", ")
}
