package plan

import (
	"maps"
	"math"
	"slices"
	"strings"
)

// absent is the value of a label that a node does not have.
const absent = "\x00absent"

// maxCells bounds the choices that are looked at.
const maxCells = 4096

// cell is one choice of a domain for each label that an item's rules are about: the nodes there, and what can be bought
// there.
type cell struct {
	// values are the domains, in the order of the keys; a label that the nodes do not have is absent.
	values []string
	// known are the slots there whose machine is known, nil if there are none; open are the others.
	known *row
	open  []*slot
	// next is the first slot that may still have room, as long as the rules' floors are these.
	next     int
	floors   int
	variants []variant
	price    float64
	// fresh are the pods that new nodes are bought for.
	fresh []*Pod
	// closed says that no more pods find room.
	closed bool
}

// size is how many slots there are, at the one in a place.
func (c *cell) size() int {
	if c.known == nil {
		return len(c.open)
	}
	return len(c.known.slots) + len(c.open)
}

func (c *cell) at(place int) *slot {
	if c.known == nil {
		return c.open[place]
	}
	if place < len(c.known.slots) {
		return c.known.slots[place]
	}
	return c.open[place-len(c.known.slots)]
}

// all calls yield for every slot in order.
func (c *cell) all(yield func(*slot) bool) {
	for i := range c.size() {
		if !yield(c.at(i)) {
			return
		}
	}
}

func (c *cell) has(s *slot) bool {
	return c.known != nil && c.known.has(s) || slices.Contains(c.open, s)
}

// advance makes next the first slot that has room for another of the item's pods, and says whether there is one. When
// all hosts have one more of pods that are spread over them, it begins again.
func (c *cell) advance(it *item) bool {
	if c.advanceOnce(it) {
		return true
	}
	floors := it.rules.floors()
	if floors <= c.floors {
		return false
	}
	c.floors, c.next = floors, 0
	return c.advanceOnce(it)
}

func (c *cell) advanceOnce(it *item) bool {
	for c.next < c.size() {
		if c.known != nil && c.next < len(c.known.slots) {
			if c.next = c.known.next(c.next, it.request); c.next == len(c.known.slots) {
				continue
			}
		}
		if c.at(c.next).room(it, 1) > 0 {
			return true
		}
		c.next++
	}
	return false
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
				values[m.zoneLabels[z][key]] = true
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
