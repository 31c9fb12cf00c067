package place

import (
	"cmp"
	"fmt"
	"github.com/tenon-sh/tenon/plan/solve"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
)

// What was decided about domains was decided before anything was bought. A limit may have kept some of it from being
// bought, and nodes for other pods may have made a domain that nobody reckoned with. So the end of a plan is an audit: it
// plays the binding of all planned pods, and those that the kube-scheduler could not bind are given back. Planned nodes are
// claims in flight there: what is not settled of their machines and zones is open.

// assignment is the pods of one pod group that are planned for one node.
type assignment struct {
	it   *PodGroup
	node *ExistingNode
	pods []*model.Pod
	// bound is how many of them are bound.
	bound int
}

// auditor plays the binding of a plan's pods.
type auditor struct {
	*Distribution
	planned []*PlannedNode
	// coming are the nodes that the planned nodes become.
	coming []*ExistingNode
	// assignments are those of each pod group, in the order in which the pod groups were placed.
	assignments [][]*assignment
}

// audit gives back what could not be bound, and returns the planned nodes that still have a purpose.
func audit(d *Distribution, snapshot *model.Snapshot, planned []*PlannedNode) []*PlannedNode {
	if !slices.ContainsFunc(d.PodGroups, func(it *PodGroup) bool { return !it.Required.Empty() }) {
		return planned
	}
	a := &auditor{Distribution: d, planned: planned}
	a.gather()
	// Where a machine comes into a zone in which no other is, it may make a domain of its own.
	a.play(snapshot, true)
	if a.stuck() {
		a.fence()
		a.play(snapshot, false)
	}
	if a.stuck() {
		a.giveUp()
	}
	return a.planned
}

// gather finds out which pods are planned where.
func (a *auditor) gather() {
	type assigned struct {
		it   *PodGroup
		node *ExistingNode
	}
	known, groups := map[assigned]*assignment{}, map[*PodGroup]int{}
	add := func(s *ExistingNode, pod *model.Pod) {
		it := a.Home[pod]
		if _, listed := groups[it]; !listed {
			groups[it] = len(a.assignments)
			a.assignments = append(a.assignments, nil)
		}
		u := known[assigned{it, s}]
		if u == nil {
			u = &assignment{it: it, node: s}
			known[assigned{it, s}] = u
			a.assignments[groups[it]] = append(a.assignments[groups[it]], u)
		}
		u.pods = append(u.pods, pod)
	}
	byKey := map[string]*ExistingNode{}
	for _, s := range a.Existing {
		byKey[s.Node.Key()] = s
	}
	for i := range a.Placements {
		add(byKey[a.Placements[i].Node], a.Placements[i].Pod)
	}
	keys := a.askedLabels()
	for i, b := range a.planned {
		s := comingNode(a.Market, b, fmt.Sprintf("\x00planned-%d", i), keys)
		a.coming = append(a.coming, s)
		for pod := range b.pods {
			add(s, pod)
		}
	}
	// In this order every pod had a domain when it was decided about.
	slices.SortStableFunc(a.assignments, func(x, y []*assignment) int { return cmp.Compare(x[0].it.Turn, y[0].it.Turn) })
}

// askedLabels are the labels of machines that groups look at, those that follow from the zone apart.
func (a *auditor) askedLabels() []string {
	asked := map[string]bool{}
	for _, g := range a.Topology.Groups {
		for _, key := range append(slices.Clip(g.Asks), g.Key) {
			if key != corev1.LabelHostname && !a.Market.Zonal(key) {
				asked[model.NormalizedKey(key)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(asked))
}

// comingNode is the node that a planned node becomes, with those of some labels in which all machines that it may become
// are the same.
func comingNode(m *market.Market, b *PlannedNode, name string, keys []string) *ExistingNode {
	mach := &m.Machines[b.Machine]
	seller := m.Sellers[mach.Pool]
	s := &ExistingNode{options: Holders(m, seller, b), zones: b.Zones & mach.Zones}
	labels := map[string]string{}
	maps.Copy(labels, labelsOf(m, seller, b))
	for _, key := range keys {
		value, present := m.Label(mach, key)
		for i := range s.options.All {
			other, has := m.Label(&m.Machines[i], key)
			present = present && has && other == value
		}
		if present {
			labels[key] = value
		}
	}
	for z := range m.Zones {
		if s.zones == 1<<z {
			maps.Copy(labels, m.ZoneLabels[z])
		}
	}
	market.AddDeprecated(labels)
	s.Node = &model.Node{Claim: name, Pool: seller.Name, Labels: labels, Taints: seller.NodePool.Spec.Template.Spec.Taints}
	return s
}

// play counts the cluster anew and binds what it can until nothing more can be bound. With open, machines that may still
// come to be in several zones are taken to make a domain of each.
func (a *auditor) play(snapshot *model.Snapshot, open bool) {
	for _, g := range a.Topology.Groups {
		clear(g.Counts)
		g.Total = 0
	}
	a.Topology.Survey(snapshot, a.waiting)
	domains := make([][]string, len(a.Topology.Groups))
	for i, g := range a.Topology.Groups {
		possible := maps.Clone(g.Domains)
		for _, s := range a.open {
			a.mayBecome(s, g, possible)
		}
		for _, s := range a.coming {
			if value, has := a.domainOf(s, g.Key); has && (g.Included == nil || g.Included(s.Node)) {
				possible[value] = true
			}
			if open {
				a.mayBecome(s, g, possible)
			}
		}
		domains[i] = slices.Collect(maps.Keys(possible))
	}
	for _, group := range a.assignments {
		for _, u := range group {
			u.bound = 0
		}
	}
	for progress := true; progress; {
		progress = false
		for _, group := range a.assignments {
			progress = a.bindAll(group, domains) || progress
		}
	}
}

// bindAll binds what can be bound of one pod group, in its domains by turns, and says whether that was anything.
func (a *auditor) bindAll(group []*assignment, domains [][]string) bool {
	some := false
	for progress := true; progress; {
		progress = false
		for _, u := range group {
			for u.bound < len(u.pods) && a.permits(u, domains) {
				u.bound++
				a.Counted(u.node, u.it.Required.Joins, 1)
				progress, some = true, true
			}
		}
	}
	return some
}

// permits says whether one more of the assigned pods could be bound now. The distribution and the buyer see to the rules of
// spread over nodes.
func (a *auditor) permits(u *assignment, domains [][]string) bool {
	r := &u.it.Required
	for _, rule := range domainRulesOf(r, func(spread int) []string { return domains[r.Spread[spread].Place] }) {
		here, has := a.domainOf(u.node, rule.Key)
		if !has {
			here = absent
		}
		if !has && (rule.spread != nil || rule.near) || !rule.permits(here) {
			return false
		}
	}
	return true
}

func (a *auditor) stuck() bool {
	return slices.ContainsFunc(a.assignments, func(group []*assignment) bool {
		return slices.ContainsFunc(group, func(u *assignment) bool { return u.bound < len(u.pods) })
	})
}

// fence keeps machines out of zones in which nothing is planned for sure.
func (a *auditor) fence() {
	var settled uint64
	for _, s := range slices.Concat(a.Existing, a.coming) {
		if at, has := a.domainOf(s, corev1.LabelTopologyZone); has {
			if z := slices.Index(a.Market.Zones, at); z >= 0 {
				settled |= 1 << z
			}
		}
	}
	for i, s := range a.coming {
		if s.zones&settled != 0 {
			s.zones &= settled
			a.planned[i].Zones &= settled
		}
	}
}

// giveUp takes the pods that could not be bound out of the plan.
func (a *auditor) giveUp() {
	stuck := map[*model.Pod]bool{}
	for _, u := range slices.Concat(a.assignments...) {
		for _, pod := range u.pods[u.bound:] {
			stuck[pod] = true
			u.it.Pods = append(u.it.Pods, pod)
			u.it.Unmet = "its topology spread or affinity could not be met with what can be bought for the pods around it"
		}
	}
	a.Placements = slices.DeleteFunc(a.Placements, func(p model.Placement) bool { return stuck[p.Pod] })
	a.planned = slices.DeleteFunc(a.planned, func(b *PlannedNode) bool {
		for i := range b.content {
			b.drop(&b.content[i], stuck)
		}
		b.content = slices.DeleteFunc(b.content, func(p portion) bool { return len(p.pods) == 0 })
		return len(b.content) == 0
	})
}

// drop takes pods out of a planned node.
func (b *PlannedNode) drop(p *portion, stuck map[*model.Pod]bool) {
	bundle := len(p.pods) != p.count
	p.pods = slices.DeleteFunc(slices.Clone(p.pods), func(pod *model.Pod) bool { return stuck[pod] })
	left := len(p.pods)
	if bundle && left > 0 {
		left = p.count // a bundle is one piece until its last pod is gone
	}
	solve.Subtract(b.used, p.demand.Request, p.count-left)
	solve.Subtract(b.Free, p.demand.Request, left-p.count)
	p.count = left
}
