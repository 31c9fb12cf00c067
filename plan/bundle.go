package plan

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Pods that have to be on one node with others are gathered: beside pods that run, in a bundle for a new node, or behind
// a pod that is about to be bought a place.

// gather places an item with pod affinity over hostnames.
func (d *distribution) gather(it *item, keys []string) {
	rule := it.rules.nearHost()
	cells := d.cells(it, keys)
	eligible := d.eligible(it, keys, cells)
	d.beside(it, keys, cells, eligible)
	for _, l := range d.lots {
		if len(it.pods) > 0 && l.bundle && l.joins(rule.group) {
			d.join(l, it)
		}
	}
	for len(it.pods) > 0 && d.follow(it, rule.group) {
		// One pod after another is found that some of them can follow.
	}
	if len(it.pods) > 0 && it.rules.first() {
		d.found(it, rule.group, keys, cells, eligible)
	}
	switch {
	case len(it.pods) == 0:
	case rule.total == 0:
		it.unmet = "no pod is there that it has to be near by its pod affinity over " + corev1.LabelHostname
	default:
		it.unmet = fmt.Sprintf("pod affinity over %s: the node of the pods it has to be with takes no more", corev1.LabelHostname)
	}
}

// beside fills the nodes that have pods of the group.
func (d *distribution) beside(it *item, keys []string, cells []*cell, eligible [][]string) {
	near := func(s *slot) bool {
		return !slices.ContainsFunc(it.rules.near, func(r nearRule) bool { return r.host >= 0 && s.tally[r.host] == 0 })
	}
	for _, c := range cells {
		for _, s := range c.slots {
			for len(it.pods) > 0 && near(s) && d.best(it, keys, []*cell{c}, eligible) != nil && s.room(it, 1) > 0 {
				d.onto(s, it, 1)
			}
		}
	}
}

// joins says whether some of the lot's pods are of the group.
func (l *lot) joins(g *group) bool {
	return slices.ContainsFunc(l.content, func(p part) bool { return len(p.pods) > 0 && slices.Contains(p.as.rules.joins, g) })
}

// join adds as many of an item's pods to a bundle as one node can take.
func (d *distribution) join(l *lot, it *item) {
	variants := d.m.both(l.variants, it.variants)
	tally := l.tally(d.t)
	n := it.rules.hostAllows(tally, len(it.pods))
	if len(it.ports()) > 0 {
		n = min(n, 1)
		if portsConflict(l.ports, it.ports()) {
			n = 0
		}
	}
	if !l.tolerates(it) {
		n = 0
	}
	room := 0
	for i := range variants {
		for j := range variants[i].machines.all {
			free := slices.Clone(d.m.machines[j].usable)
			take(free, l.request, 1)
			room = max(room, times(it.request, free))
		}
	}
	if n = min(n, room); n == 0 {
		return
	}
	request := slices.Clone(l.request)
	take(request, it.request, -n)
	var large []variant
	for _, v := range variants {
		for j := range v.machines.all {
			if !fits(request, d.m.machines[j].usable) {
				v.machines.clear(j)
			}
		}
		if !v.machines.empty() {
			large = append(large, v)
		}
	}
	l.request, l.variants, l.allowed = request, large, d.m.unionOf(large)
	l.ports = append(slices.Clip(l.ports), it.ports()...)
	l.content = append(l.content, part{it, it.shape, it.take(n)})
	for _, g := range it.rules.joins {
		g.total += n
	}
}

func (it *item) ports() []HostPort { return it.class.HostPorts }

// tolerates says whether the rules of the pods in the bundle let others of the item's kind in.
func (l *lot) tolerates(it *item) bool {
	for i := range l.content {
		for _, g := range l.content[i].as.rules.apart {
			if g.host >= 0 && slices.Contains(it.rules.joins, g) {
				return false
			}
		}
	}
	return true
}

// tally counts the bundle's pods by the groups over hostnames.
func (l *lot) tally(t *topology) []int32 {
	tally := make([]int32, t.hosts)
	for i := range l.content {
		l.content[i].as.rules.count(tally, len(l.content[i].pods))
	}
	return tally
}

// both are the variants that meet one of each.
func (m *market) both(a, b []variant) []variant {
	var result []variant
	for i := range a {
		for j := range b {
			v := variant{machines: a[i].machines.clone(), zones: a[i].zones & b[j].zones, custom: slices.Concat(a[i].custom, b[j].custom)}
			v.machines.intersect(b[j].machines)
			for k := range v.machines.all {
				if m.machines[k].zones&v.zones == 0 {
					v.machines.clear(k)
				}
			}
			if len(v.custom) > 1 {
				m.settleCustom(&v)
			}
			if !v.machines.empty() {
				result = append(result, v)
			}
		}
	}
	return result
}

// follow makes a bundle of one pod of the group that is still to be bought a place, and of those of the item that can be
// on its node. It says whether that helped.
func (d *distribution) follow(it *item, g *group) bool {
	for _, l := range d.lots {
		if l.bundle || l.left() == 0 || !l.joins(g) {
			continue
		}
		p := &l.content[0]
		leader := &lot{class: l.class, request: l.request, ports: l.ports, variants: l.variants, allowed: l.allowed,
			attach: l.attach, bundle: true, place: -1 - len(d.lots), at: l.at, content: []part{{p.it, p.as, p.pods[:1:1]}}}
		before := len(it.pods)
		d.join(leader, it)
		if len(it.pods) == before {
			continue
		}
		p.pods = p.pods[1:]
		d.lots = append(d.lots, leader)
		return true
	}
	return false
}

// found starts a group on one node: of all items that have to be together, as many pods as one node can take.
func (d *distribution) found(it *item, g *group, keys []string, cells []*cell, eligible [][]string) {
	family := []*item{it}
	for _, other := range d.items {
		if rule := other.rules.nearHost(); other != it && rule != nil && rule.group == g && rule.self && other.refusal == "" && other.virtual == it.virtual {
			family = append(family, other)
		}
	}
	c := d.best(it, keys, cells, eligible)
	if c == nil {
		return
	}
	wanted := 0
	for _, member := range family {
		wanted += len(member.pods)
	}
	var widest *slot
	most := 0
	for _, s := range c.slots {
		n := s.room(it, len(it.pods))
		if len(family) == 1 && n > most {
			widest, most = s, n
		} else if len(family) > 1 && n > 0 {
			if held := holds(s, family); held > most {
				widest, most = s, held
			}
		}
	}
	if widest != nil && (most >= wanted || len(c.variants) == 0) {
		d.together(widest, family)
		return
	}
	if len(c.variants) == 0 {
		return
	}
	l := &lot{class: it.class, request: make([]int64, d.m.dims.count()), variants: c.variants, bundle: true, place: -1 - len(d.lots), attach: &it.volumes.attach}
	for _, member := range family {
		d.join(l, member)
	}
	if len(l.content) > 0 {
		d.lots = append(d.lots, l)
	}
}

// holds is how many pods of a family a slot has room for.
func holds(s *slot, family []*item) int {
	free, n := slices.Clone(s.free), 0
	for _, it := range family {
		fit := min(len(it.pods), times(it.request, free))
		take(free, it.request, fit)
		n += fit
	}
	return n
}

// together puts a family on one slot, as far as there is room.
func (d *distribution) together(s *slot, family []*item) {
	for _, it := range family {
		if n := s.room(it, len(it.pods)); n > 0 && slices.Contains(d.admitting(it), s) {
			d.onto(s, it, n)
		}
	}
}
