package plan

import (
	"iter"
	"math/bits"

	corev1 "k8s.io/api/core/v1"
)

// Why can a pool not serve a pod? Everything that keeps machines from it is a barrier: a label it asks for, a zone, an
// amount of a resource, a limit. Single barriers let some machines pass; it is a few of them together that stop all.
// The fewest that do are the reason: nothing else has to be named, and none of them can be left out.

// barrier is one thing that keeps machines from an item.
type barrier struct {
	kind barrierKind
	// condition is that of byLabel and byZone.
	condition *condition
	// dim is the resource of byRoom, or the place of the limit of byLimit.
	dim int
	// limit is that of byLimit.
	limit *allowance
	// admits are the machines that pass, as far as they are of the pool; nil if all do.
	admits bitset
	// zones are those that pass.
	zones uint64
}

// barrierKind says what a barrier is about. The later ones are nearer to the pod being placed, and further from what it
// asks for.
type barrierKind int

const (
	byLabel barrierKind = iota
	byZone
	byRoom
	byPorts
	byDevices
	byBareMetal
	byMinValues
	byAvailability
	byReservation
	byLimit
)

const everywhere = ^uint64(0)

// obstacles are the barriers between a pool's machines and an item with one of its terms. Their bitsets have the words of
// the pool's machines only, and begin with machine base.
type obstacles struct {
	m     *market
	s     *seller
	it    *item
	base  int
	words int
	own   bitset
	// whole says that limits are taken as if nothing had been used up of them.
	whole    bool
	barriers []barrier
}

// obstaclesFor lists the barriers, in the order in which they are preferred as reasons.
func (m *market) obstaclesFor(it *item, s *seller, t term, whole bool) *obstacles {
	o := &obstacles{m: m, s: s, it: it, base: s.first &^ 63, whole: whole}
	o.words = len(newBitset(s.last - o.base))
	o.own = o.those(func(int) bool { return true })
	for i := range t {
		if c := &t[i]; m.zonal(c.key) {
			o.add(barrier{kind: byZone, condition: c, zones: m.zoneMask(term{*c})})
		} else {
			o.add(barrier{kind: byLabel, condition: c, zones: everywhere, admits: m.admitted(c)[o.base>>6:][:o.words]})
		}
	}
	for d, amount := range it.request {
		if amount > 0 {
			o.addMachines(barrier{kind: byRoom, dim: d}, amount, func(i int) bool { return m.machines[i].usable[d] >= amount })
		}
	}
	if len(it.class.HostPorts) > 0 {
		o.add(barrier{kind: byPorts, zones: everywhere, admits: o.those(func(i int) bool { return !portsConflict(m.daemonPorts[i], it.class.HostPorts) })})
	}
	if spares, asked := m.sparesOdd(it); spares {
		o.addMachines(barrier{kind: byDevices, dim: int(flag(asked))}, 0, func(i int) bool { return oddityOf(m.machines[i].typ, m.machines[i].devices, asked) != idleDevices })
		o.addMachines(barrier{kind: byBareMetal}, 0, func(i int) bool { return !isBareMetal(m.machines[i].typ) })
	}
	if len(s.minimums) > 0 && m.policy != MinValuesBestEffort {
		o.add(barrier{kind: byMinValues, zones: everywhere})
	}
	o.addMachines(barrier{kind: byAvailability}, 0, func(i int) bool { return m.machines[i].zones != 0 })
	if len(m.reservations) > 0 {
		o.addMachines(barrier{kind: byReservation}, 0, func(i int) bool {
			r := m.machines[i].reservation
			return r == unreserved || m.reservations[r].left > 0
		})
	}
	for a := range s.budget {
		limit := &s.budget[a]
		left := limit.left
		if whole {
			left = limit.limit
		}
		o.addMachines(barrier{kind: byLimit, limit: limit, dim: a}, left, func(i int) bool {
			n := countOf(limit.name, m.machines[i].size)
			return n <= 0 || n <= left
		})
	}
	return o
}

// sparesOdd says that an item is kept off odd machines, because there are others that would do, and whether it asks for a
// device.
func (m *market) sparesOdd(it *item) (spares, asked bool) {
	asked = asksDevice(it.class)
	for i := range it.allowed.all {
		return oddityOf(m.machines[i].typ, m.machines[i].devices, asked) == ordinary, asked
	}
	return false, asked
}

// maxBarriers is how many barriers are looked at. No pod comes near it.
const maxBarriers = 64

func (o *obstacles) add(b barrier) {
	if len(o.barriers) < maxBarriers {
		o.barriers = append(o.barriers, b)
	}
}

// addMachines adds a barrier that is the same for all items to which an amount matters in the same way.
func (o *obstacles) addMachines(b barrier, amount int64, admits func(int) bool) {
	key := passage{o.s.first, b.kind, b.dim, amount}
	known, ok := o.m.passages[key]
	if !ok {
		known = o.those(admits)
		o.m.passages[key] = known
	}
	b.zones, b.admits = everywhere, known
	o.add(b)
}

// passage names the machines of a pool that a barrier lets pass. Reasons are looked for when nothing is bought any more.
type passage struct {
	pool   int
	kind   barrierKind
	dim    int
	amount int64
}

// those are the pool's machines of which something holds.
func (o *obstacles) those(holds func(int) bool) bitset {
	set := newBitset(o.s.last - o.base)
	for i := o.s.first; i < o.s.last; i++ {
		if holds(i) {
			set.set(i - o.base)
		}
	}
	return set
}

// machines are the places of a set's members in the market.
func (o *obstacles) machines(set bitset) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range set.all {
			if !yield(o.base + i) {
				return
			}
		}
	}
}

// selection is a set of barriers, by their places.
type selection uint64

func (s selection) has(i int) bool { return s&(1<<i) != 0 }

// passing are the machines that some barriers let pass, and the zones they do so in.
func (o *obstacles) passing(chosen selection) (bitset, uint64) {
	set, zones, now := o.own.clone(), everywhere, false
	for i := range o.barriers {
		if !chosen.has(i) {
			continue
		}
		b := &o.barriers[i]
		zones &= b.zones
		now = now || b.kind == byAvailability
		if b.admits != nil {
			set.intersect(b.admits)
		}
	}
	if zones == everywhere {
		return set, zones // every machine is offered somewhere
	}
	for i := range o.machines(set) {
		where := o.m.machines[i].offered
		if now {
			where = o.m.machines[i].zones
		}
		if where&zones == 0 {
			set.clear(i - o.base)
		}
	}
	return set, zones
}

// closed says that some barriers together let nothing pass.
func (o *obstacles) closed(chosen selection) bool {
	set, _ := o.passing(chosen)
	if set.empty() {
		return true
	}
	if !o.includes(chosen, byMinValues) {
		return false
	}
	tally := o.m.newTally(o.s.minimums)
	for i := range o.machines(set) {
		tally.add(i)
	}
	return !tally.met()
}

func (o *obstacles) includes(chosen selection, kind barrierKind) bool {
	return o.find(chosen, kind) != nil
}

// find is the first barrier of a kind among the chosen, or nil.
func (o *obstacles) find(chosen selection, kind barrierKind) *barrier {
	for i := range o.barriers {
		if chosen.has(i) && o.barriers[i].kind == kind {
			return &o.barriers[i]
		}
	}
	return nil
}

// conflict finds few barriers that together let nothing pass and of which none can be left out: one if one is enough,
// else two, else what is left when all that can be left out is. There is none if the barriers do not explain it.
func (o *obstacles) conflict() (selection, bool) {
	n := len(o.barriers)
	all := selection(1)<<n - 1
	if !o.closed(all) {
		return 0, false
	}
	for i := range n {
		if o.closed(1 << i) {
			return 1 << i, true
		}
	}
	for i := range n {
		for j := i + 1; j < n; j++ {
			if o.closed(1<<i | 1<<j) {
				return 1<<i | 1<<j, true
			}
		}
	}
	for i := n - 1; i >= 0; i-- {
		if without := all &^ (1 << i); o.closed(without) {
			all = without
		}
	}
	return all, true
}

// depth is the last kind of barrier in a conflict: how near the pod came to being placed.
func (o *obstacles) depth(chosen selection) barrierKind {
	if chosen == 0 {
		return byLabel
	}
	return o.barriers[bits.Len64(uint64(chosen))-1].kind
}

// excluded says that it is the pool's own requirements on a label that keep out what a condition asks for, and returns
// them.
func (o *obstacles) excluded(c *condition) term {
	var own term
	for _, r := range conditionsOf(o.s.NodePool.Spec.Template.Spec.Requirements) {
		if r.key == c.key {
			own = append(own, r)
		}
	}
	if len(own) == 0 {
		return nil
	}
	for _, value := range o.valuesSold(c.key) {
		if c.admits(value, true) {
			return own
		}
	}
	return nil
}

// valuesSold are the values a label has on what the cloud sells, whatever the pool requires.
func (o *obstacles) valuesSold(key string) []string {
	var values []string
	if o.m.zonal(key) {
		for z := range o.m.zones {
			values = append(values, o.m.zoneLabels[z][key])
		}
		return values
	}
	for _, typ := range o.s.Types {
		if value, ok := typ.Labels[key]; ok {
			values = append(values, value)
		} else if key == corev1.LabelInstanceTypeStable {
			values = append(values, typ.Name)
		}
	}
	if key == capacityTypeKey {
		values = append(values, capacityTypes[:]...)
	}
	return values
}
