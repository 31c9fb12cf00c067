package place

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/rules"
	"github.com/tenon-sh/tenon/plan/solve"
)

// Pods that have to share a node with others are gathered: beside running pods, in a bundle for a new node, or with a
// pod that is still to be bought for.

// placeBundle places a pod group with pod affinity over hostnames.
func placeBundle(d *Distribution, it *PodGroup) {
	rule := it.Rules.NearHost()
	r := realmOf(d, it)
	for _, c := range r.choices {
		for _, s := range c.row {
			alone := func(near rules.NearRule) bool { return near.Host >= 0 && s.Tally[near.Host] == 0 }
			if !slices.ContainsFunc(it.Rules.Near, alone) {
				r.putOn(d, s, c)
			}
		}
	}
	for _, l := range d.Chunks {
		if l.bundle && len(it.Pods) > 0 && l.joins(rule.Group) {
			joinBundle(d, l, r)
		}
	}
	for len(it.Pods) > 0 && followOthers(d, rule.Group, r) {
		// Each round bundles one more pod with the pods that can follow it.
	}
	if len(it.Pods) > 0 && it.Rules.First() {
		beginTogether(d, rule.Group, r)
	}
	if len(it.Pods) > 0 {
		it.Unmet = cmp.Or(r.unmet(), "pod affinity over "+rule.Key+": the node of the pods it has to be with takes no more")
	}
}

// permitted returns how many of the pod group's pods, n at most, may go to a domain choice one after another.
func (r *realm) permitted(c *domainChoice, n int) int {
	count := 0
	for count < n && r.best([]*domainChoice{c}) != nil {
		countAt(r.it.Rules.Joins, c.at, 1)
		count++
	}
	countAt(r.it.Rules.Joins, c.at, -count)
	return count
}

// putOn fills an existing node of a domain choice with the pod group's pods.
func (r *realm) putOn(d *Distribution, s *ExistingNode, c *domainChoice) {
	if n := r.permitted(c, s.Room(r.it, len(r.it.Pods))); n > 0 {
		d.Onto(s, r.it, n)
	}
}

// joins reports whether some of the demand chunk's pods belong to the group.
func (l *DemandChunk) joins(g *rules.Group) bool {
	return slices.ContainsFunc(l.Content, func(p part) bool { return len(p.Pods) > 0 && slices.Contains(p.as.Rules.Joins, g) })
}

// joinBundle adds to a bundle as many of a pod group's pods as one node can take and the bundle's domains allow, and
// reports whether it added any. The bundle settles on the best of the domains that are still open to it.
func joinBundle(d *Distribution, l *DemandChunk, r *realm) bool {
	it := r.it
	c := r.best(l.within(r.choices))
	if c == nil || !l.tolerates(it) || market.PortsConflict(l.ports, it.Class.HostPorts) {
		return false
	}
	tally := make([]int32, d.Topology.Hosts)
	for i := range l.Content {
		l.Content[i].as.Rules.Count(tally, len(l.Content[i].Pods))
	}
	n := it.Rules.HostAllows(tally, len(it.Pods))
	if len(it.Class.HostPorts) > 0 {
		n = min(n, 1)
	}
	variants := both(d.Market, l.variants, c.variants)
	room := 0
	for i := range d.Market.UnionOf(variants).All {
		free := slices.Clone(d.Market.Machines[i].Usable)
		solve.Subtract(free, l.Request, 1)
		room = max(room, solve.Times(it.Request, free))
	}
	if n = r.permitted(c, min(n, room)); n == 0 {
		return false
	}
	l.Request = slices.Clone(l.Request)
	solve.Subtract(l.Request, it.Request, -n)
	for i := range variants {
		variants[i].Machines.Intersect(d.Market.Fitting(l.Request))
	}
	l.variants = slices.DeleteFunc(variants, func(v market.Variant) bool { return v.Machines.Empty() })
	l.Allowed = d.Market.UnionOf(l.variants)
	l.ports = append(slices.Clip(l.ports), it.Class.HostPorts...)
	l.settle(c.at)
	l.Content = append(l.Content, part{it, it.shape, it.take(n)})
	countAt(it.Rules.Joins, c.at, n)
	return true
}

// within returns those of some domain choices that agree with the domains chosen for the demand chunk, and in which
// something can be bought.
func (l *DemandChunk) within(choices []*domainChoice) []*domainChoice {
	return slices.DeleteFunc(slices.Clone(choices), func(c *domainChoice) bool {
		for key, domain := range c.at {
			if chosen, settled := l.at[key]; settled && chosen != domain {
				return true
			}
		}
		return len(c.variants) == 0
	})
}

// settle chooses domains for a demand chunk where none are chosen yet, and counts its pods there.
func (l *DemandChunk) settle(at map[string]string) {
	settled := l.at
	l.at = maps.Clone(at)
	maps.Copy(l.at, settled)
	for _, p := range l.Content {
		for _, g := range p.as.Rules.Joins {
			_, before := settled[g.Key]
			if domain, chosen := l.at[g.Key]; chosen && !before {
				g.AddAt(domain, len(p.Pods))
			}
		}
	}
}

// tolerates reports whether the rules of the pods in the bundle admit pods of the pod group.
func (l *DemandChunk) tolerates(it *PodGroup) bool {
	repels := func(g *rules.Group) bool { return g.Host >= 0 && slices.Contains(it.Rules.Joins, g) }
	return !slices.ContainsFunc(l.Content, func(p part) bool { return slices.ContainsFunc(p.it.Required.Apart, repels) })
}

// both returns the variants that meet one of a and one of b.
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

// followOthers bundles one pod of the group that is still to be bought for with the pods of the pod group that can
// share its node. It reports whether it made a bundle.
func followOthers(d *Distribution, g *rules.Group, r *realm) bool {
	for _, l := range d.Chunks {
		if l.bundle || !l.joins(g) {
			continue
		}
		p := &l.Content[0]
		leader := *l
		leader.bundle, leader.Content = true, []part{{p.it, p.as, p.Pods[:1:1]}}
		if joinBundle(d, &leader, r) {
			p.Pods = p.Pods[1:]
			d.Chunks = append(d.Chunks, &leader)
			return true
		}
	}
	return false
}

// beginTogether starts a group on one node: it puts there as many pods of all pod groups that have to be together as
// one node can take.
func beginTogether(d *Distribution, g *rules.Group, r *realm) {
	begin(d, familyOf(d, r, func(other *PodGroup) bool {
		rule := other.Rules.NearHost()
		return rule != nil && rule.Group == g && rule.Self
	}))
}

// familyOf returns a realm and those of the other pod groups whose pods have to be on its node.
func familyOf(d *Distribution, r *realm, belongs func(*PodGroup) bool) []*realm {
	family := []*realm{r}
	for _, other := range d.PodGroups {
		if other != r.it && other.Refusal == "" && other.virtual == r.it.virtual && belongs(other) {
			family = append(family, realmOf(d, other))
		}
	}
	return family
}

// begin puts as many pods of a family as possible on one node. The first of the family chooses it.
func begin(d *Distribution, family []*realm) {
	r, wanted := family[0], 0
	for _, member := range family {
		wanted += len(member.it.Pods)
	}
	c := r.best(r.choices)
	if c == nil {
		return
	}
	var widest *ExistingNode
	most := 0
	for _, s := range c.row {
		if s.Room(r.it, 1) == 0 {
			continue
		}
		if n := holds(s, family); n > most {
			widest, most = s, n
		}
	}
	switch {
	case widest != nil && (most >= wanted || len(c.variants) == 0):
		for _, member := range family {
			for _, c := range member.choices {
				if slices.Contains(c.row, widest) {
					member.putOn(d, widest, c)
				}
			}
		}
	case len(c.variants) > 0:
		l := &DemandChunk{Request: make([]int64, d.Market.Dims.Count()), variants: c.variants, bundle: true}
		l.settle(c.at)
		for _, member := range family {
			joinBundle(d, l, member)
		}
		if len(l.Content) > 0 {
			d.Chunks = append(d.Chunks, l)
		}
	}
}

// holds returns how many pods of a family an existing node has room for.
func holds(s *ExistingNode, family []*realm) int {
	free, n := slices.Clone(s.Free), 0
	for _, r := range family {
		fit := min(s.Room(r.it, len(r.it.Pods)), solve.Times(r.it.Request, free))
		solve.Subtract(free, r.it.Request, fit)
		n += fit
	}
	return n
}
