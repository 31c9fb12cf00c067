package plan

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// absent is the value of a label that a node does not have.
const absent = "\x00absent"

// maxCells bounds the choices that are looked at.
const maxCells = 4096

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

// cells are the choices an item has.
func (d *distribution) cells(it *item, keys []string) []*cell {
	known := it.known.cells
	if known == nil || len(it.barred) > 0 {
		known = d.findCells(it, keys)
		if len(it.barred) == 0 && !slices.ContainsFunc(keys, d.m.openAnywhere) {
			it.known.cells = known
		}
	}
	cells, all := make([]*cell, len(known)), slices.Clone(known)
	for i := range all {
		cells[i] = &all[i]
		switch {
		case d.buysNothing:
			cells[i].variants = nil
		case d.buysIn != 0:
			elsewhere := func(v variant) bool { return v.zones&d.buysIn == 0 }
			cells[i].variants = slices.DeleteFunc(slices.Clone(cells[i].variants), elsewhere)
		}
	}
	return cells
}

func (d *distribution) findCells(it *item, keys []string) []cell {
	bound := map[string]bool{} // labels that a node has to have
	for i := range it.rules.spread {
		bound[it.rules.spread[i].key] = true
	}
	for i := range it.rules.near {
		bound[it.rules.near[i].key] = true
	}
	byValue := map[string]int{}
	var cells []cell
	find := func(values []string) *cell {
		id := strings.Join(values, "\x00")
		i, known := byValue[id]
		if !known {
			if i = len(cells); i == maxCells {
				return nil
			}
			byValue[id] = i
			cells = append(cells, cell{values: slices.Clone(values), price: math.Inf(1)})
		}
		return &cells[i]
	}
	d.buyable(it, keys, bound, nil, nil, func(values []string, variants []variant) {
		if c := find(values); c != nil && !it.bars(keys, values) {
			c.variants, c.price = variants, d.m.costOf(it.request, variants)
		}
	})
	for _, p := range d.placesOf(it, keys, bound) {
		if c := find(p.values); c != nil {
			c.known = p.row
		}
	}
	for _, s := range d.openTo(it) {
		if values := d.domainsAt(s, keys, bound); values != nil {
			if c := find(values); c != nil {
				c.open = append(c.open, s)
			}
		}
	}
	return cells
}

// place is the nodes that are in the same domains.
type place struct {
	values []string
	row    *row
}

// placesOf sorts the nodes that let an item in by their domains. Items that ask the same share the work.
func (d *distribution) placesOf(it *item, keys []string, bound map[string]bool) []place {
	id := strings.Join(keys, "\x00")
	for _, key := range keys {
		id += string('0' + flag(bound[key]))
	}
	id += it.kind()
	places, known := d.places[id]
	if known {
		return places
	}
	at := map[string]int{}
	for _, s := range d.lettingIn(it).slots {
		values := d.domainsAt(s, keys, bound)
		if values == nil {
			continue
		}
		key := strings.Join(values, "\x00")
		i, found := at[key]
		if !found {
			i = len(places)
			at[key] = i
			places = append(places, place{values: values, row: &row{}})
		}
		places[i].row.slots = append(places[i].row.slots, s)
	}
	d.places[id] = places
	return places
}

// domainsAt are the domains a slot is in, by keys; nil if it has to be in one and is not, or not for sure.
func (d *distribution) domainsAt(s *slot, keys []string, bound map[string]bool) []string {
	values := make([]string, len(keys))
	for i, key := range keys {
		value, has := d.domainOf(s, key)
		if !has {
			if bound[key] || s.options != nil {
				return nil // what is not settled yet may become any domain
			}
			value = absent
		}
		values[i] = value
	}
	return values
}

// bars says that an attempt to buy for the item in these domains has failed.
func (it *item) bars(keys, values []string) bool {
	return slices.ContainsFunc(it.barred, func(at map[string]string) bool {
		for i, key := range keys {
			if at[key] != values[i] {
				return false
			}
		}
		return true
	})
}

// buyable finds the combinations of domains in which machines for an item can be bought.
func (d *distribution) buyable(it *item, keys []string, bound map[string]bool, chosen []string, conditions term, found func([]string, []variant)) {
	if len(chosen) == len(keys) {
		if variants := d.m.narrow(it.variants, conditions); len(variants) > 0 {
			found(chosen, variants)
		}
		return
	}
	key := keys[len(chosen)]
	for _, value := range d.m.domainsOf(it, key) {
		c := newCondition(normalizedKey(key), "In", []string{value})
		d.buyable(it, keys, bound, append(slices.Clip(chosen), value), append(slices.Clip(conditions), c), found)
	}
	if !bound[key] && !d.m.zonal(key) {
		c := newCondition(normalizedKey(key), "DoesNotExist", nil)
		d.buyable(it, keys, bound, append(slices.Clip(chosen), absent), append(slices.Clip(conditions), c), found)
	}
}

// domainsOf are the values a label can have on machines for an item, ordered.
func (m *market) domainsOf(it *item, key string) []string {
	key = normalizedKey(key)
	values := map[string]bool{}
	if m.zonal(key) {
		var zones uint64
		for i := range it.variants {
			zones |= it.variants[i].zones & m.zonesOf(it.variants[i].machines)
		}
		for z := range m.zones {
			if zones&(1<<z) != 0 {
				values[m.zoneLabels(z)[key]] = true
			}
		}
		delete(values, "")
		return slices.Sorted(maps.Keys(values))
	}
	col := m.column(key)
	open := map[int]bool{}
	for i := range it.allowed.all {
		switch id := col.ids[i]; {
		case id >= 0:
			values[col.values[id]] = true
		case id == openID:
			open[m.machines[i].pool] = true
		}
	}
	for pool := range open {
		for _, candidate := range slices.Concat(m.sellers[pool].open[key].candidates(), it.rules.known(key), it.named(key)) {
			if m.sellers[pool].open[key].allAdmit(candidate, true) && it.wants(key, candidate) {
				values[candidate] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(values))
}

// wants says whether one of the item's alternatives admits a value for a label that pools leave open.
func (it *item) wants(key, value string) bool {
	return slices.ContainsFunc(it.variants, func(v variant) bool {
		return !slices.ContainsFunc(v.custom, func(c condition) bool { return c.key == key && !c.admits(value, true) })
	})
}

// named are the values of a label that the item's pods ask for.
func (it *item) named(key string) []string {
	var values []string
	for i := range it.variants {
		for _, c := range it.variants[i].custom {
			if c.key == key {
				values = append(values, term{c}.candidates()...)
			}
		}
	}
	return values
}

// known are the domains of a label that nodes are in.
func (r *rules) known(key string) []string {
	var values []string
	for i := range r.spread {
		if r.spread[i].key == key {
			values = slices.AppendSeq(values, maps.Keys(r.spread[i].domains))
			values = slices.AppendSeq(values, maps.Keys(r.spread[i].counts))
		}
	}
	for i := range r.near {
		if r.near[i].key == key {
			values = slices.AppendSeq(values, maps.Keys(r.near[i].domains))
		}
	}
	return values
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
		if value := d.m.zoneLabels(z)[g.key]; s.zones&(1<<z) != 0 && value != "" {
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

// least is the number of pods in the emptiest domain of a rule.
func (r *spreadRule) least(domains []string) int {
	if len(domains) < r.minDomains || len(domains) == 0 {
		return 0
	}
	least := math.MaxInt
	for _, domain := range domains {
		least = min(least, r.counts[domain])
	}
	return least
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

// first says that no pod is there yet that the item's pods have to be near, and that they may be the first themselves.
func (r *rules) first() bool {
	for i := range r.near {
		if !r.near[i].self || r.near[i].total > 0 {
			return false
		}
	}
	return true
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
	for i := range r.near {
		if n := &r.near[i]; n.host < 0 {
			return fmt.Sprintf("pod affinity over %s: there is no room near the pods it has to be with", n.key)
		}
	}
	for _, g := range r.apart {
		if g.host < 0 {
			return fmt.Sprintf("pod anti-affinity over %s: every domain has a pod it has to be apart from", g.key)
		}
	}
	return "no domain meets all its rules of topology spread and affinity at once"
}
