package place

import (
	"iter"
	"slices"

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

// obstacles are the barriers between a pool's machines and a pod group with one of its terms.
type obstacles struct {
	m  *market.Market
	s  *market.Seller
	it *PodGroup
	// own are the pool's machines.
	own market.Bitset
	// whole says that limits are taken as if nothing had been used up of them.
	whole    bool
	barriers []*barrier
}

// obstaclesFor lists the barriers, in the order in which they are preferred as reasons.
func obstaclesFor(m *market.Market, it *PodGroup, s *market.Seller, t model.Term, whole bool) *obstacles {
	o := &obstacles{m: m, s: s, it: it, whole: whole}
	o.own = o.those(func(int) bool { return true })
	for i := range t {
		if c := &t[i]; m.Zonal(c.Key) {
			o.add(barrier{kind: market.ByZone, condition: c, zones: m.ZoneMask(model.Term{*c})})
		} else {
			o.add(barrier{kind: market.ByLabel, condition: c, zones: market.Everywhere, admits: m.Admitted(c)})
		}
	}
	for d, amount := range it.Request {
		if amount > 0 {
			o.addMachines(barrier{kind: market.ByRoom, dim: d}, amount, func(i int) bool { return m.Machines[i].Usable[d] >= amount })
		}
	}
	if len(it.Class.HostPorts) > 0 {
		free := o.those(func(i int) bool { return !market.PortsConflict(m.Machines[i].DaemonPorts, it.Class.HostPorts) })
		o.add(barrier{kind: market.ByPorts, zones: market.Everywhere, admits: free})
	}
	if asked := model.AsksDevice(it.Class); sparesOdd(m, it, asked) {
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

// sparesOdd says that a pod group is kept off odd machines, because there are others that would do.
func sparesOdd(m *market.Market, it *PodGroup, asked bool) bool {
	for i := range it.Allowed.All {
		return market.OddityOf(m.Machines[i].Typ, m.Machines[i].Devices, asked) == market.Ordinary
	}
	return false
}

func (o *obstacles) add(b barrier) { o.barriers = append(o.barriers, &b) }

// addMachines adds a barrier that is the same for all pod groups to which an amount matters in the same way.
func (o *obstacles) addMachines(b barrier, amount int64, admits func(int) bool) {
	key := market.Passage{Pool: o.s.First, Kind: b.kind, Dim: b.dim, Amount: amount}
	b.zones = market.Everywhere
	b.admits = o.m.Passages.Of(key, func() market.Bitset { return o.those(admits) })
	o.add(b)
}

// those are the pool's machines of which something holds.
func (o *obstacles) those(holds func(int) bool) market.Bitset {
	set := market.NewBitset(len(o.m.Machines))
	for i := o.s.First; i < o.s.Last; i++ {
		if holds(i) {
			set.Set(i)
		}
	}
	return set
}

// passing are the machines that some barriers all let pass, by their places in the market.
func (o *obstacles) passing(barriers []*barrier) iter.Seq[int] {
	return func(yield func(int) bool) {
		set, zones, now := o.own.Clone(), market.Everywhere, false
		for _, b := range barriers {
			zones &= b.zones
			now = now || b.kind == market.ByAvailability
			if b.admits != nil {
				set.Intersect(b.admits)
			}
		}
		for i := range set.All {
			where := o.m.Machines[i].Offered
			if now {
				where = o.m.Machines[i].Zones
			}
			if where&zones != 0 && !yield(i) {
				return
			}
		}
	}
}

// closed says that some barriers together let nothing pass, or less than minValues demands where that is among them.
func (o *obstacles) closed(barriers ...*barrier) bool {
	var minimums []market.Minimum
	if slices.ContainsFunc(barriers, func(b *barrier) bool { return b.kind == market.ByMinValues }) {
		minimums = o.s.Minimums
	}
	tally := market.NewTally(o.m, minimums)
	for i := range o.passing(barriers) {
		if tally.Add(i); tally.Met() {
			return false
		}
	}
	return true
}

// conflict finds few barriers that together let nothing pass and of which none can be left out: one if one is enough,
// else two, else what is left when all that can be left out is. There are none if the barriers do not explain it.
func (o *obstacles) conflict() []*barrier {
	if !o.closed(o.barriers...) {
		return nil
	}
	for _, b := range o.barriers {
		if o.closed(b) {
			return []*barrier{b}
		}
	}
	for i, a := range o.barriers {
		for _, b := range o.barriers[i+1:] {
			if o.closed(a, b) {
				return []*barrier{a, b}
			}
		}
	}
	left := o.barriers
	for i := len(left) - 1; i >= 0; i-- {
		if others := slices.Delete(slices.Clone(left), i, i+1); o.closed(others...) {
			left = others
		}
	}
	return left
}
