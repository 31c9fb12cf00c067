package place

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
	"github.com/tenon-sh/tenon/plan/solve"
)

// Domains are chosen before anything is bought. A limit may since have kept some machines from being bought, and nodes
// for other pods may have made a domain that was not foreseen. A plan therefore ends with an audit: it simulates the
// binding of all planned pods, and gives back those that the kube-scheduler could not bind. In the audit planned nodes
// are like claims in flight: machines and zones that are not settled stay open.

// assignment is the pods of a pod group that are not bound yet, by the nodes planned for them.
type assignment struct {
	it    *PodGroup
	nodes []*ExistingNode
	pods  [][]*model.Pod
	rules []domainRule
}

// auditor simulates the binding of a plan's pods.
type auditor struct {
	*Distribution
	planned []*PlannedNode
	// coming are the nodes that the planned nodes become.
	coming []*ExistingNode
	// assignments are in the order in which the pod groups were placed, so that every pod had a domain when it was
	// decided about.
	assignments []*assignment
}

// audit gives back pods that could not be bound, and returns the planned nodes that still have pods.
func audit(d *Distribution, snapshot *model.Snapshot, planned []*PlannedNode) []*PlannedNode {
	if !slices.ContainsFunc(d.PodGroups, func(it *PodGroup) bool { return !it.Required.Empty() }) {
		return planned
	}
	a := &auditor{Distribution: d, planned: planned}
	// A machine that is the first in its zone may make a new domain.
	unbound := a.play(snapshot, true)
	if len(unbound) > 0 {
		a.fence()
		unbound = a.play(snapshot, false)
	}
	if len(unbound) > 0 {
		a.giveUp(unbound)
	}
	return a.planned
}

// gather collects the pods that are planned for each node.
func (a *auditor) gather() {
	a.assignments, a.coming = nil, nil
	of := map[*PodGroup]*assignment{}
	for _, it := range a.PodGroups {
		of[it] = &assignment{it: it}
		a.assignments = append(a.assignments, of[it])
	}
	add := func(s *ExistingNode, pod *model.Pod) {
		own := of[a.Home[pod]]
		last := len(own.nodes) - 1
		if last < 0 || own.nodes[last] != s {
			own.nodes, own.pods = append(own.nodes, s), append(own.pods, nil)
			last++
		}
		own.pods[last] = append(own.pods[last], pod)
	}
	for i := range a.Placements {
		add(a.byKey[a.Placements[i].Node], a.Placements[i].Pod)
	}
	keys := a.askedLabels()
	for i, b := range a.planned {
		s := comingNode(a.Market, b, fmt.Sprintf("\x00planned-%d", i), keys)
		a.coming = append(a.coming, s)
		for pod := range b.pods {
			add(s, pod)
		}
	}
	slices.SortStableFunc(a.assignments, func(x, y *assignment) int { return cmp.Compare(x.it.Turn, y.it.Turn) })
}

// askedLabels returns the labels of machines that groups look at, except those that follow from the zone.
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

// comingNode returns the node that a planned node will become. Of the given labels it has those for which all machines
// that it may become agree.
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

// play counts the cluster afresh, binds pods until no more can be bound, and returns the rest. With open, a machine
// that may still end up in several zones makes a domain of each.
func (a *auditor) play(snapshot *model.Snapshot, open bool) (unbound []*model.Pod) {
	a.gather()
	for _, g := range a.Topology.Groups {
		clear(g.Counts)
		g.Total = 0
	}
	a.Topology.Survey(snapshot, a.waiting)
	domains := map[*rules.Group][]string{}
	for _, own := range a.assignments {
		own.rules = domainRulesOf(&own.it.Required, func(s *rules.SpreadRule) []string {
			if domains[s.Group] == nil {
				domains[s.Group] = a.possible(s.Group, open)
			}
			return domains[s.Group]
		})
	}
	for progress := true; progress; {
		progress = false
		for _, own := range a.assignments {
			progress = a.bindAll(own) || progress
		}
	}
	for _, own := range a.assignments {
		unbound = append(unbound, slices.Concat(own.pods...)...)
	}
	return unbound
}

// possible returns the domains of a group that nodes make, planned nodes included.
func (a *auditor) possible(g *rules.Group, open bool) []string {
	domains := maps.Clone(g.Domains)
	for _, s := range a.open {
		a.mayBecome(s, g, domains)
	}
	for _, s := range a.coming {
		if value, has := a.domainOf(s, g.Key); has && g.Includes(s.Node) {
			domains[value] = true
		}
		if open {
			a.mayBecome(s, g, domains)
		}
	}
	return slices.Collect(maps.Keys(domains))
}

// bindAll binds as many pods of one pod group as possible, taking its nodes in turn, and reports whether it bound any.
func (a *auditor) bindAll(own *assignment) bool {
	some := false
	for progress := true; progress; {
		progress = false
		for i, s := range own.nodes {
			for len(own.pods[i]) > 0 && a.permits(own, s) {
				own.pods[i] = own.pods[i][1:]
				a.Counted(s, own.it.Required.Joins, 1)
				progress, some = true, true
			}
		}
	}
	return some
}

// permits reports whether one more pod of a pod group could be bound to a node now. Spread over nodes is not checked:
// the distribution and the buyer take care of it.
func (a *auditor) permits(own *assignment, s *ExistingNode) bool {
	updateRules(own.rules, &own.it.Required)
	for i := range own.rules {
		if domain, is := a.domainOf(s, own.rules[i].Key); !own.rules[i].permits(domain, is) {
			return false
		}
	}
	return true
}

// fence keeps machines out of zones in which no node is certain.
func (a *auditor) fence() {
	var settled uint64
	for _, s := range slices.Concat(a.Existing, a.coming) {
		if at, has := a.domainOf(s, corev1.LabelTopologyZone); has {
			if z := slices.Index(a.Market.Zones, at); z >= 0 {
				settled |= 1 << z
			}
		}
	}
	for _, b := range a.planned {
		if b.Zones&settled != 0 {
			b.Zones &= settled
		}
	}
}

// giveUp removes pods that could not be bound from the plan.
func (a *auditor) giveUp(unbound []*model.Pod) {
	stuck := map[*model.Pod]bool{}
	for _, pod := range unbound {
		stuck[pod] = true
		it := a.Home[pod]
		it.Pods = append(it.Pods, pod)
		it.Unmet = "its topology spread or affinity could not be met with what can be launched for the pods around it"
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

// drop removes pods from a portion of a planned node.
func (b *PlannedNode) drop(p *portion, stuck map[*model.Pod]bool) {
	bundle := len(p.pods) != p.count
	p.pods = slices.DeleteFunc(slices.Clone(p.pods), func(pod *model.Pod) bool { return stuck[pod] })
	gone := p.count - len(p.pods)
	if bundle && len(p.pods) > 0 {
		gone = 0 // a bundle is one piece until its last pod is gone
	}
	solve.Subtract(b.used, p.demand.Request, gone)
	solve.Subtract(b.Free, p.demand.Request, -gone)
	p.count -= gone
}
