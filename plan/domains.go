package plan

import (
	"fmt"
	"maps"
	"slices"
)

// acrossDomains places the item's pods one by one, each in the domain that suits it best at that moment.
func (d *distribution) acrossDomains(it *item, keys []string) {
	cells := d.cells(it, keys)
	eligible := d.eligible(it, keys, cells)
	for len(it.pods) > 0 {
		c := d.best(it, keys, cells, eligible)
		if c == nil {
			break
		}
		switch {
		case d.intoSlot(it, c):
		case len(c.variants) > 0:
			c.fresh = append(c.fresh, it.take(1)...)
			d.count(it, keys, c, 1)
		default:
			c.closed = true
		}
	}
	for _, c := range cells {
		if len(c.fresh) > 0 {
			l := newLot(it, c.variants, d.m.unionOf(c.variants), c.fresh)
			l.at = map[string]string{}
			for i, key := range keys {
				l.at[key] = c.values[i]
			}
			d.lots = append(d.lots, l)
		}
	}
	if len(it.pods) > 0 {
		it.unmet = d.unmet(it, keys, cells, eligible)
	}
}

// intoSlot puts the item's next pod on a node in the cell that has room.
func (d *distribution) intoSlot(it *item, c *cell) bool {
	if c.advance(it) {
		d.onto(c.at(c.next), it, 1)
		return true
	}
	return false
}

// count notes pods that will be on new nodes in a cell.
func (d *distribution) count(it *item, keys []string, c *cell, n int) {
	for _, g := range it.rules.joins {
		g.add(n)
		if i := slices.Index(keys, g.key); i >= 0 && c.values[i] != absent {
			g.addAt(c.values[i], n)
		}
	}
}

// eligible are, for each rule of spread that is not about hostnames, the domains among which the item's pods are spread:
// those that nodes make, and those in which nodes can be bought.
func (d *distribution) eligible(it *item, keys []string, cells []*cell) [][]string {
	result := make([][]string, len(it.rules.spread))
	for r := range it.rules.spread {
		rule := &it.rules.spread[r]
		at := slices.Index(keys, rule.key)
		if at < 0 {
			continue
		}
		domains := maps.Clone(rule.domains)
		for domain, n := range rule.counts {
			domains[domain] = domains[domain] || n > 0
		}
		closed := map[string]bool{}
		for _, at := range it.barred {
			closed[at[rule.key]] = true
		}
		for _, c := range cells {
			if c.size() > 0 || len(c.variants) > 0 {
				domains[c.values[at]] = true
			}
		}
		for _, domain := range d.reachOf(it, r) {
			domains[domain] = domains[domain] || !closed[domain]
		}
		for _, s := range d.open {
			d.mayBecome(s, rule.group, domains)
		}
		maps.DeleteFunc(domains, func(_ string, possible bool) bool { return !possible })
		result[r] = slices.Sorted(maps.Keys(domains))
	}
	return result
}

// reachOf are the domains of one of the item's rules of spread in which machines for it are sold.
func (d *distribution) reachOf(it *item, rule int) []string {
	key := it.rules.spread[rule].key
	if d.m.openAnywhere(key) {
		return d.m.domainsOf(d.bare(it), key)
	}
	if it.known.reach == nil {
		it.known.reach = make([][]string, len(it.rules.spread))
	}
	if it.known.reach[rule] == nil {
		it.known.reach[rule] = d.m.domainsOf(d.bare(it), key)
	}
	return it.known.reach[rule]
}

// mayBecome notes the domains that a claim without machine may come to be in.
func (d *distribution) mayBecome(s *slot, g *group, domains map[string]bool) {
	if s.options == nil || !d.m.zonal(g.key) || g.included != nil && !g.included(s.node) {
		return
	}
	for z := range d.m.zones {
		if value := d.m.zoneLabels[z][g.key]; s.zones&(1<<z) != 0 && value != "" {
			domains[value] = true
		}
	}
}

// bare is the item without the preferences for nodes that it still has: the kube-scheduler does not mind these when it
// counts domains.
func (d *distribution) bare(it *item) *item {
	if !slices.ContainsFunc(it.preferences[it.step:], func(p preference) bool { return p.node != nil || p.wary }) {
		return it
	}
	bare := *it
	bare.step = len(it.preferences)
	bare.shapeUp()
	d.m.weigh(&bare)
	return &bare
}

// best is the cell that the item's next pod goes to: where the fewest are, then where a node has room, then where
// machines are cheapest. There is none if the rules allow none.
func (d *distribution) best(it *item, keys []string, cells []*cell, eligible [][]string) *cell {
	r := &it.rules
	least := make([]int, len(r.spread))
	for i := range r.spread {
		if eligible[i] != nil {
			least[i] = r.spread[i].least(eligible[i])
		}
	}
	first := r.first()
	var best *cell
	fewest, roomy := 0, false
	for _, c := range cells {
		if c.closed || !r.permits(keys, c, least, eligible, first) {
			continue
		}
		pods := 0
		for i := range r.spread {
			if eligible[i] != nil && r.spread[i].self == 1 {
				pods += r.spread[i].counts[c.values[slices.Index(keys, r.spread[i].key)]]
			}
		}
		room := c.advance(it)
		if best == nil || pods < fewest || pods == fewest && (room && !roomy || room == roomy && c.price < best.price*0.999) {
			best, fewest, roomy = c, pods, room
		}
	}
	return best
}

// permits says whether the rules let one more pod into a cell.
func (r *rules) permits(keys []string, c *cell, least []int, eligible [][]string, first bool) bool {
	value := func(key string) (string, bool) {
		i := slices.Index(keys, key)
		if i < 0 {
			return "", false
		}
		return c.values[i], true
	}
	for i := range r.spread {
		s := &r.spread[i]
		if at, ok := value(s.key); ok && s.counts[at]+s.self-least[i] > s.maxSkew {
			return false
		}
	}
	for i := range r.near {
		if at, ok := value(r.near[i].key); ok && !first && r.near[i].counts[at] == 0 {
			return false
		}
	}
	for _, g := range r.apart {
		if at, ok := value(g.key); ok && at != absent && g.counts[at] > 0 {
			return false
		}
	}
	return true
}

// unmet says which rule keeps the item's next pod from every domain.
func (d *distribution) unmet(it *item, keys []string, cells []*cell, eligible [][]string) string {
	if len(cells) == 0 {
		return ""
	}
	r := &it.rules
	for i := range r.near {
		if n := &r.near[i]; !r.first() && n.total == 0 {
			return "no pod is there that it has to be near by its pod affinity over " + n.key
		}
	}
	binding := r.binding(keys, cells, eligible)
	for i := range binding {
		if binding[i].closes == len(cells) && binding[i].alone != "" {
			return binding[i].alone
		}
	}
	for i := range r.spread {
		s := &r.spread[i]
		if eligible[i] == nil {
			continue
		}
		at, least := slices.Index(keys, s.key), s.least(eligible[i])
		for _, domain := range eligible[i] {
			open := slices.ContainsFunc(cells, func(c *cell) bool { return c.values[at] == domain && !c.closed })
			if s.counts[domain] == least && !open {
				return fmt.Sprintf("topology spread over %s (maxSkew %d): %s, where the fewest are, takes no more", s.key, s.maxSkew, domain)
			}
		}
	}
	return unmetTogether(binding)
}
