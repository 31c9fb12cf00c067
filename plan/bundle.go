package plan

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Pods that have to be on one node with others are gathered: beside pods that run, in a bundle for a new node, or behind
// a pod that is about to be bought a place.

// gather places an item with pod affinity over hostnames.
func (d *distribution) gather(it *item, keys []string) {
	rule := it.rules.nearHost()
	r := d.realmOf(it, keys)
	d.beside(it, r)
	for _, l := range d.lots {
		if len(it.pods) > 0 && l.bundle && l.joins(rule.group) {
			d.join(l, it, r)
		}
	}
	for len(it.pods) > 0 && d.follow(it, rule.group, r) {
		// One pod after another is found that some of them can follow.
	}
	if len(it.pods) > 0 && it.rules.first() {
		d.found(it, rule.group, r)
	}
	switch {
	case len(it.pods) == 0:
	case rule.total == 0:
		it.unmet = "no pod is there that it has to be near by its pod affinity over " + corev1.LabelHostname
	default:
		it.unmet = fmt.Sprintf("pod affinity over %s: the node of the pods it has to be with takes no more", corev1.LabelHostname)
	}
}

// realm is where an item can go by its rules about labels other than the hostname.
type realm struct {
	keys     []string
	cells    []*cell
	eligible [][]string
}

func (d *distribution) realmOf(it *item, keys []string) realm {
	cells := d.cells(it, keys)
	return realm{keys, cells, d.eligible(it, keys, cells)}
}

// permitted says how many of the item's pods may go to a cell one after another.
func (d *distribution) permitted(it *item, r realm, c *cell) int {
	n := 0
	for n < len(it.pods) && d.best(it, r.keys, []*cell{c}, r.eligible) != nil {
		d.count(it, r.keys, c, 1)
		n++
	}
	d.count(it, r.keys, c, -n)
	return n
}

// beside fills the nodes that have pods of the group.
func (d *distribution) beside(it *item, r realm) {
	near := func(s *slot) bool {
		return !slices.ContainsFunc(it.rules.near, func(r nearRule) bool { return r.host >= 0 && s.tally[r.host] == 0 })
	}
	for _, c := range r.cells {
		for s := range c.all {
			for len(it.pods) > 0 && near(s) && d.best(it, r.keys, []*cell{c}, r.eligible) != nil && s.room(it, 1) > 0 {
				d.onto(s, it, 1)
			}
		}
	}
}

// joins says whether some of the lot's pods are of the group.
func (l *lot) joins(g *group) bool {
	return slices.ContainsFunc(l.content, func(p part) bool { return len(p.pods) > 0 && slices.Contains(p.as.rules.joins, g) })
}

// join adds as many of an item's pods to a bundle as one node can take and the bundle's domains allow. The bundle settles
// for the best of the domains that are still open to it.
func (d *distribution) join(l *lot, it *item, r realm) {
	c := d.best(it, r.keys, l.within(r), r.eligible)
	if c == nil || !l.tolerates(it) {
		return
	}
	variants := d.m.both(l.variants, c.variants)
	n := it.rules.hostAllows(l.tally(d.t), d.permitted(it, r, c))
	if len(it.ports()) > 0 {
		n = min(n, 1)
		if portsConflict(l.ports, it.ports()) {
			n = 0
		}
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
	l.pin(r.keys, c)
	l.content = append(l.content, part{it, it.shape, it.take(n)})
	d.count(it, r.keys, c, n)
}

// within are the cells of a realm that agree with the domains that are chosen for the lot.
func (l *lot) within(r realm) []*cell {
	return slices.DeleteFunc(slices.Clone(r.cells), func(c *cell) bool {
		for i, key := range r.keys {
			if chosen, settled := l.at[key]; settled && chosen != c.values[i] {
				return true
			}
		}
		return len(c.variants) == 0
	})
}

// pin chooses the domains of a cell for a lot, and counts its pods there.
func (l *lot) pin(keys []string, c *cell) {
	at := maps.Clone(l.at)
	if at == nil {
		at = map[string]string{}
	}
	for i, key := range keys {
		if _, settled := at[key]; settled {
			continue
		}
		at[key] = c.values[i]
		for _, p := range l.content {
			for _, g := range p.as.rules.joins {
				if g.key == key && c.values[i] != absent {
					g.addAt(c.values[i], len(p.pods))
				}
			}
		}
	}
	l.at = at
}

func (it *item) ports() []HostPort { return it.class.HostPorts }

// tolerates says whether the rules of the pods in the bundle let others of the item's kind in.
func (l *lot) tolerates(it *item) bool {
	for i := range l.content {
		for _, g := range l.content[i].it.required.apart {
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
func (d *distribution) follow(it *item, g *group, r realm) bool {
	for _, l := range d.lots {
		if l.bundle || l.left() == 0 || !l.joins(g) {
			continue
		}
		p := &l.content[0]
		leader := &lot{class: l.class, request: l.request, ports: l.ports, variants: l.variants, allowed: l.allowed,
			attach: l.attach, bundle: true, place: -1 - len(d.lots), at: l.at, content: []part{{p.it, p.as, p.pods[:1:1]}}}
		before := len(it.pods)
		d.join(leader, it, r)
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
func (d *distribution) found(it *item, g *group, r realm) {
	family := []*item{it}
	for _, other := range d.items {
		if rule := other.rules.nearHost(); other != it && rule != nil && rule.group == g && rule.self && other.refusal == "" && other.virtual == it.virtual {
			family = append(family, other)
		}
	}
	c := d.best(it, r.keys, r.cells, r.eligible)
	if c == nil {
		return
	}
	wanted := 0
	for _, member := range family {
		wanted += len(member.pods)
	}
	var widest *slot
	most := 0
	for s := range c.all {
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
	l.pin(r.keys, c)
	for _, member := range family {
		d.join(l, member, d.realmOf(member, member.keys()))
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

// together puts a family on one slot, as far as there is room and the rules about its domains allow.
func (d *distribution) together(s *slot, family []*item) {
	for _, it := range family {
		r := d.realmOf(it, it.keys())
		for _, c := range r.cells {
			if !c.has(s) {
				continue
			}
			if n := s.room(it, d.permitted(it, r, c)); n > 0 {
				d.onto(s, it, n)
			}
		}
	}
}
