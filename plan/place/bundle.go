package place

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
	"github.com/tenon-sh/tenon/plan/solve"
)

// Pods that have to be on one node with others are gathered: beside pods that run, in a bundle for a new node, or behind
// a pod that is about to be bought a place.

// placeBundle places a pod group with pod affinity over hostnames.
func placeBundle(d *Distribution, it *PodGroup) {
	rule := it.Rules.NearHost()
	r := realmOf(d, it)
	putBeside(d, r)
	for _, l := range d.Chunks {
		if len(it.Pods) > 0 && l.bundle && l.joins(rule.Group) {
			joinBundle(d, l, r)
		}
	}
	for len(it.Pods) > 0 && followOthers(d, rule.Group, r) {
		// One pod after another is found that some of them can follow.
	}
	if len(it.Pods) > 0 && it.Rules.First() {
		beginTogether(d, rule.Group, r)
	}
	switch {
	case len(it.Pods) == 0:
	case rule.Total == 0:
		it.Unmet = "no pod is there that it has to be near by its pod affinity over " + corev1.LabelHostname
	default:
		it.Unmet = fmt.Sprintf("pod affinity over %s: the node of the pods it has to be with takes no more", corev1.LabelHostname)
	}
}

// permitted says how many of the pod group's pods may go to a domain choice one after another.
func (r *realm) permitted(c *domainChoice) int {
	n := 0
	for n < len(r.it.Pods) && r.best([]*domainChoice{c}) != nil {
		r.count(c, 1)
		n++
	}
	r.count(c, -n)
	return n
}

// putBeside fills the nodes that have pods of the group.
func putBeside(d *Distribution, r *realm) {
	it := r.it
	alone := func(s *ExistingNode) bool {
		return slices.ContainsFunc(it.Rules.Near, func(near rules.NearRule) bool { return near.Host >= 0 && s.Tally[near.Host] == 0 })
	}
	for _, c := range r.choices {
		for s := range c.all {
			for len(it.Pods) > 0 && !alone(s) && r.best([]*domainChoice{c}) != nil && s.Room(it, 1) > 0 {
				d.Onto(s, it, 1)
			}
		}
	}
}

// joins says whether some of the demand chunk's pods are of the group.
func (l *DemandChunk) joins(g *rules.Group) bool {
	return slices.ContainsFunc(l.Content, func(p part) bool { return len(p.Pods) > 0 && slices.Contains(p.as.Rules.Joins, g) })
}

// joinBundle adds as many of a pod group's pods to a bundle as one node can take and the bundle's domains allow. The
// bundle settles for the best of the domains that are still open to it.
func joinBundle(d *Distribution, l *DemandChunk, r *realm) {
	it := r.it
	c := r.best(l.within(r))
	if c == nil || !l.tolerates(it) || market.PortsConflict(l.ports, it.ports()) {
		return
	}
	variants := both(d.Market, l.variants, c.variants)
	n := it.Rules.HostAllows(l.tally(d.Topology), r.permitted(c))
	if len(it.ports()) > 0 {
		n = min(n, 1)
	}
	room := 0
	for i := range d.Market.UnionOf(variants).All {
		free := slices.Clone(d.Market.Machines[i].Usable)
		solve.Subtract(free, l.Request, 1)
		room = max(room, solve.Times(it.Request, free))
	}
	if n = min(n, room); n == 0 {
		return
	}
	l.Request = slices.Clone(l.Request)
	solve.Subtract(l.Request, it.Request, -n)
	for i := range variants {
		variants[i].Machines.Intersect(d.Market.Fitting(l.Request))
	}
	l.variants = slices.DeleteFunc(variants, func(v market.Variant) bool { return v.Machines.Empty() })
	l.Allowed = d.Market.UnionOf(l.variants)
	l.ports = append(slices.Clip(l.ports), it.ports()...)
	l.pin(r.keys, c)
	l.Content = append(l.Content, part{it, it.shape, it.take(n)})
	r.count(c, n)
}

// within are the domain choices of a realm that agree with the domains that are chosen for the demand chunk.
func (l *DemandChunk) within(r *realm) []*domainChoice {
	return slices.DeleteFunc(slices.Clone(r.choices), func(c *domainChoice) bool {
		for i, key := range r.keys {
			if chosen, settled := l.at[key]; settled && chosen != c.values[i] {
				return true
			}
		}
		return len(c.variants) == 0
	})
}

// pin chooses the domains of a domain choice for a demand chunk, and counts its pods there.
func (l *DemandChunk) pin(keys []string, c *domainChoice) {
	l.at = maps.Collect(maps.All(l.at))
	for i, key := range keys {
		if _, settled := l.at[key]; settled {
			continue
		}
		l.at[key] = c.values[i]
		for _, p := range l.Content {
			for _, g := range p.as.Rules.Joins {
				if g.Key == key && c.values[i] != absent {
					g.AddAt(c.values[i], len(p.Pods))
				}
			}
		}
	}
}

func (it *PodGroup) ports() []model.HostPort { return it.Class.HostPorts }

// tolerates says whether the rules of the pods in the bundle let others of the pod group's kind in.
func (l *DemandChunk) tolerates(it *PodGroup) bool {
	repels := func(g *rules.Group) bool { return g.Host >= 0 && slices.Contains(it.Rules.Joins, g) }
	return !slices.ContainsFunc(l.Content, func(p part) bool { return slices.ContainsFunc(p.it.Required.Apart, repels) })
}

// tally counts the bundle's pods by the groups over hostnames.
func (l *DemandChunk) tally(t *rules.Topology) []int32 {
	tally := make([]int32, t.Hosts)
	for i := range l.Content {
		l.Content[i].as.Rules.Count(tally, len(l.Content[i].Pods))
	}
	return tally
}

// both are the variants that meet one of each.
func both(m *market.Market, a, b []market.Variant) []market.Variant {
	var result []market.Variant
	for i := range a {
		for j := range b {
			v := market.Variant{Machines: a[i].Machines.Clone(), Zones: a[i].Zones & b[j].Zones, Custom: slices.Concat(a[i].Custom, b[j].Custom)}
			v.Machines.Intersect(b[j].Machines)
			result = append(result, m.Narrow([]market.Variant{v}, nil)...)
		}
	}
	return result
}

// followOthers makes a bundle of one pod of the group that is still to be bought a place, and of those of the pod group
// that can be on its node. It says whether that helped.
func followOthers(d *Distribution, g *rules.Group, r *realm) bool {
	for _, l := range d.Chunks {
		if l.bundle || l.Left() == 0 || !l.joins(g) {
			continue
		}
		p := &l.Content[0]
		leader := *l
		leader.bundle, leader.Content = true, []part{{p.it, p.as, p.Pods[:1:1]}}
		before := len(r.it.Pods)
		joinBundle(d, &leader, r)
		if len(r.it.Pods) == before {
			continue
		}
		p.Pods = p.Pods[1:]
		d.Chunks = append(d.Chunks, &leader)
		return true
	}
	return false
}

// beginTogether starts a group on one node: of all pod groups that have to be together, as many pods as one node can
// take.
func beginTogether(d *Distribution, g *rules.Group, r *realm) {
	it := r.it
	family, wanted := []*PodGroup{it}, len(it.Pods)
	for _, other := range d.PodGroups {
		if rule := other.Rules.NearHost(); other != it && rule != nil && rule.Group == g && rule.Self && other.Refusal == "" && other.virtual == it.virtual {
			family, wanted = append(family, other), wanted+len(other.Pods)
		}
	}
	c := r.best(r.choices)
	if c == nil {
		return
	}
	var widest *ExistingNode
	most := 0
	for s := range c.all {
		n := s.Room(it, len(it.Pods))
		if len(family) > 1 && n > 0 {
			n = holds(s, family)
		}
		if n > most {
			widest, most = s, n
		}
	}
	if widest != nil && (most >= wanted || len(c.variants) == 0) {
		putTogether(d, widest, family)
		return
	}
	if len(c.variants) == 0 {
		return
	}
	l := &DemandChunk{Request: make([]int64, d.Market.Dims.Count()), variants: c.variants, bundle: true}
	l.pin(r.keys, c)
	for _, member := range family {
		joinBundle(d, l, realmOf(d, member))
	}
	if len(l.Content) > 0 {
		d.Chunks = append(d.Chunks, l)
	}
}

// holds is how many pods of a family an existing node has room for.
func holds(s *ExistingNode, family []*PodGroup) int {
	free, n := slices.Clone(s.Free), 0
	for _, it := range family {
		fit := min(len(it.Pods), solve.Times(it.Request, free))
		solve.Subtract(free, it.Request, fit)
		n += fit
	}
	return n
}

// putTogether puts a family on one existing node, as far as there is room and the rules about its domains allow.
func putTogether(d *Distribution, s *ExistingNode, family []*PodGroup) {
	for _, it := range family {
		r := realmOf(d, it)
		for _, c := range r.choices {
			if !slices.Contains(slices.Collect(c.all), s) {
				continue
			}
			if n := s.Room(it, r.permitted(c)); n > 0 {
				d.Onto(s, it, n)
			}
		}
	}
}
