package place

import (
	"iter"
	"math/bits"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
)

// Why can a pool not serve a pod? Everything that keeps machines from it is a barrier: a label it asks for, a zone, an
// amount of a resource, a limit. Single barriers let some machines pass; it is a few of them together that stop all.
// The fewest that do are the reason: nothing else has to be named, and none of them can be left out.

// barrier is one thing that keeps machines from a pod group.
type barrier struct {
	kind market.BarrierKind
	// condition is that of ByLabel and ByZone.
	condition *model.Condition
	// dim is the resource of ByRoom, or the place of the limit of ByLimit.
	dim int
	// limit is that of ByLimit.
	limit *market.Allowance
	// admits are the machines that pass, as far as they are of the pool; nil if all do.
	admits market.Bitset
	// zones are those that pass.
	zones uint64
}

// obstacles are the barriers between a pool's machines and a pod group with one of its terms. Their bitsets have the
// words of the pool's machines only, and begin with machine base.
type obstacles struct {
	m     *market.Market
	s     *market.Seller
	it    *PodGroup
	base  int
	words int
	own   market.Bitset
	// whole says that limits are taken as if nothing had been used up of them.
	whole    bool
	barriers []barrier
}

// obstaclesFor lists the barriers, in the order in which they are preferred as reasons.
func obstaclesFor(m *market.Market, it *PodGroup, s *market.Seller, t model.Term, whole bool) *obstacles {
	o := &obstacles{m: m, s: s, it: it, base: s.First &^ 63, whole: whole}
	o.words = len(market.NewBitset(s.Last - o.base))
	o.own = o.those(func(int) bool { return true })
	for i := range t {
		if c := &t[i]; m.Zonal(c.Key) {
			o.add(barrier{kind: market.ByZone, condition: c, zones: m.ZoneMask(model.Term{*c})})
		} else {
			o.add(barrier{kind: market.ByLabel, condition: c, zones: market.Everywhere, admits: m.Admitted(c)[o.base>>6:][:o.words]})
		}
	}
	for d, amount := range it.Request {
		if amount > 0 {
			o.addMachines(barrier{kind: market.ByRoom, dim: d}, amount, func(i int) bool { return m.Machines[i].Usable[d] >= amount })
		}
	}
	if len(it.Class.HostPorts) > 0 {
		o.add(barrier{kind: market.ByPorts, zones: market.Everywhere, admits: o.those(func(i int) bool { return !market.PortsConflict(m.Machines[i].DaemonPorts, it.Class.HostPorts) })})
	}
	if spares, asked := sparesOdd(m, it); spares {
		o.addMachines(barrier{kind: market.ByDevices, dim: int(model.Flag(asked))}, 0, func(i int) bool {
			return market.OddityOf(m.Machines[i].Typ, m.Machines[i].Devices, asked) != market.IdleDevices
		})
		o.addMachines(barrier{kind: market.ByBareMetal}, 0, func(i int) bool { return !market.IsBareMetal(m.Machines[i].Typ) })
	}
	if len(s.Minimums) > 0 && m.Policy != model.MinValuesBestEffort {
		o.add(barrier{kind: market.ByMinValues, zones: market.Everywhere})
	}
	o.addMachines(barrier{kind: market.ByAvailability}, 0, func(i int) bool { return m.Machines[i].Zones != 0 })
	if len(m.Reservations) > 0 {
		o.addMachines(barrier{kind: market.ByReservation}, 0, func(i int) bool {
			r := m.Machines[i].Reservation
			return r == market.Unreserved || m.Reservations[r].Left > 0
		})
	}
	for a := range s.Budget {
		limit := &s.Budget[a]
		left := limit.Left
		if whole {
			left = limit.Limit
		}
		o.addMachines(barrier{kind: market.ByLimit, limit: limit, dim: a}, left, func(i int) bool {
			n := market.CountOf(limit.Name, m.Machines[i].Size)
			return n <= 0 || n <= left
		})
	}
	return o
}

// sparesOdd says that a pod group is kept off odd machines, because there are others that would do, and whether it asks
// for a device.
func sparesOdd(m *market.Market, it *PodGroup) (spares, asked bool) {
	asked = model.AsksDevice(it.Class)
	for i := range it.Allowed.All {
		return market.OddityOf(m.Machines[i].Typ, m.Machines[i].Devices, asked) == market.Ordinary, asked
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

// addMachines adds a barrier that is the same for all pod groups to which an amount matters in the same way.
func (o *obstacles) addMachines(b barrier, amount int64, admits func(int) bool) {
	key := market.Passage{Pool: o.s.First, Kind: b.kind, Dim: b.dim, Amount: amount}
	b.zones = market.Everywhere
	b.admits = o.m.Passages.Of(key, func() market.Bitset { return o.those(admits) })
	o.add(b)
}

// those are the pool's machines of which something holds.
func (o *obstacles) those(holds func(int) bool) market.Bitset {
	set := market.NewBitset(o.s.Last - o.base)
	for i := o.s.First; i < o.s.Last; i++ {
		if holds(i) {
			set.Set(i - o.base)
		}
	}
	return set
}

// machines are the places of a set's members in the market.
func (o *obstacles) machines(set market.Bitset) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range set.All {
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
func (o *obstacles) passing(chosen selection) (market.Bitset, uint64) {
	set, zones, now := o.own.Clone(), market.Everywhere, false
	for i := range o.barriers {
		if !chosen.has(i) {
			continue
		}
		b := &o.barriers[i]
		zones &= b.zones
		now = now || b.kind == market.ByAvailability
		if b.admits != nil {
			set.Intersect(b.admits)
		}
	}
	if zones == market.Everywhere {
		return set, zones // every machine is offered somewhere
	}
	for i := range o.machines(set) {
		where := o.m.Machines[i].Offered
		if now {
			where = o.m.Machines[i].Zones
		}
		if where&zones == 0 {
			set.Clear(i - o.base)
		}
	}
	return set, zones
}

// closed says that some barriers together let nothing pass.
func (o *obstacles) closed(chosen selection) bool {
	set, _ := o.passing(chosen)
	if set.Empty() {
		return true
	}
	if !o.includes(chosen, market.ByMinValues) {
		return false
	}
	tally := market.NewTally(o.m, o.s.Minimums)
	for i := range o.machines(set) {
		tally.Add(i)
	}
	return !tally.Met()
}

func (o *obstacles) includes(chosen selection, kind market.BarrierKind) bool {
	return o.find(chosen, kind) != nil
}

// find is the first barrier of a kind among the chosen, or nil.
func (o *obstacles) find(chosen selection, kind market.BarrierKind) *barrier {
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
func (o *obstacles) depth(chosen selection) market.BarrierKind {
	if chosen == 0 {
		return market.ByLabel
	}
	return o.barriers[bits.Len64(uint64(chosen))-1].kind
}

// excluded says that it is the pool's own requirements on a label that keep out what a condition asks for, and returns
// them.
func (o *obstacles) excluded(c *model.Condition) model.Term {
	var own model.Term
	for _, r := range model.ConditionsOf(o.s.NodePool.Spec.Template.Spec.Requirements) {
		if r.Key == c.Key {
			own = append(own, r)
		}
	}
	if len(own) == 0 {
		return nil
	}
	for _, value := range o.valuesSold(c.Key) {
		if c.Admits(value, true) {
			return own
		}
	}
	return nil
}

// valuesSold are the values a label has on what the cloud sells, whatever the pool requires.
func (o *obstacles) valuesSold(key string) []string {
	var values []string
	if o.m.Zonal(key) {
		for z := range o.m.Zones {
			values = append(values, o.m.ZoneLabels[z][key])
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
		values = append(values, market.CapacityTypes[:]...)
	}
	return values
}
