package place

import (
	"iter"
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
)

// Why can a pool not serve a pod? Everything that keeps machines from it is a barrier: a label it asks for, a zone, an
// amount of a resource, a limit. A single barrier lets some machines pass; it takes a few together to stop them all.
// The smallest such set is the reason: nothing else needs to be named, and none of it can be left out.

// barrierKind says what a barrier is about, or what rules out a pool without a closer look. Later kinds are nearer to
// the pod being placed, and further from what it asks for.
type barrierKind int

const (
	unfitPool barrierKind = iota // the pool is closed, and would not do if it were open
	notTolerated
	byLabel
	byZone
	closedPool // the pool will never sell anything as it is
	byRoom
	byPorts  // host ports that DaemonSets take
	byClaims // resource claims
	byDevices
	byBareMetal
	byMinValues
	byAvailability // recently without capacity
	byReservation
	byLimit
	heldPool // the pool will sell again, once it is not paused any more or is Ready
	unexplained
)

// barrier is one thing that keeps machines from a pod group.
type barrier struct {
	kind barrierKind
	// condition is set for byLabel and byZone.
	condition *model.Condition
	// dim is the resource, for byRoom.
	dim int
	// limit is set for byLimit.
	limit *market.Allowance
	// admits are the pool's machines that pass. shut are the zones in which none does.
	admits market.Bitset
	shut   uint64
}

// obstacles are the barriers between a pool's machines and a pod group with one of its terms.
type obstacles struct {
	m  *market.Market
	s  *market.Seller
	it *PodGroup
	// whole says that limits count as if nothing of them had been used.
	whole    bool
	barriers []*barrier
}

// obstaclesFor lists the barriers in order of preference as reasons.
func obstaclesFor(m *market.Market, it *PodGroup, s *market.Seller, t model.Term, whole bool) *obstacles {
	o := &obstacles{m: m, s: s, it: it, whole: whole}
	every := func(*market.Machine) bool { return true }
	for i := range t {
		if c := &t[i]; m.Zonal(c.Key) {
			o.add(barrier{kind: byZone, condition: c, shut: ^m.ZoneMask(model.Term{*c})}, every)
		} else {
			o.barriers = append(o.barriers, &barrier{kind: byLabel, condition: c, admits: m.Admitted(c)})
		}
	}
	for d, amount := range it.Request {
		if amount > 0 && d < m.Dims.Claimed(0) {
			o.add(barrier{kind: byRoom, dim: d}, func(mach *market.Machine) bool { return mach.Usable[d] >= amount })
		}
	}
	if len(it.Class.HostPorts) > 0 {
		o.add(barrier{kind: byPorts}, func(mach *market.Machine) bool { return !market.PortsConflict(mach.DaemonPorts, it.Class.HostPorts) })
	}
	for i := range m.Dims.Claims {
		if dim := m.Dims.Claimed(i); it.Request[dim] > 0 {
			o.add(barrier{kind: byClaims, dim: dim}, func(mach *market.Machine) bool { return mach.Usable[dim] >= it.Request[dim] })
		}
	}
	if asked := model.AsksDevice(it.Class); sparesOdd(m, it, asked) {
		o.add(barrier{kind: byDevices}, func(mach *market.Machine) bool { return mach.Oddity(asked) != market.IdleDevices })
		o.add(barrier{kind: byBareMetal}, func(mach *market.Machine) bool { return mach.Oddity(asked) != market.BareMetal })
	}
	if len(s.Minimums) > 0 && m.Policy != model.MinValuesBestEffort {
		o.add(barrier{kind: byMinValues}, every)
	}
	o.add(barrier{kind: byAvailability}, func(mach *market.Machine) bool { return mach.Zones != 0 })
	o.add(barrier{kind: byReservation}, func(mach *market.Machine) bool {
		return mach.Reservation == market.Unreserved || m.Reservations[mach.Reservation].Left > 0
	})
	for a := range s.Budget {
		limit := &s.Budget[a]
		left := limit.Left
		if whole {
			left = limit.Limit
		}
		o.add(barrier{kind: byLimit, limit: limit}, func(mach *market.Machine) bool {
			n := market.CountOf(limit.Name, mach.Size)
			return n <= 0 || n <= left
		})
	}
	return o
}

// add adds a barrier that lets the pool's machines pass for which holds is true.
func (o *obstacles) add(b barrier, holds func(*market.Machine) bool) {
	b.admits = market.NewBitset(len(o.m.Machines))
	for i := o.s.First; i < o.s.Last; i++ {
		if holds(&o.m.Machines[i]) {
			b.admits.Set(i)
		}
	}
	o.barriers = append(o.barriers, &b)
}

// sparesOdd reports whether a pod group is kept off odd machines because ordinary ones would do.
func sparesOdd(m *market.Market, it *PodGroup, asked bool) bool {
	for i := range it.Allowed.All {
		return m.Machines[i].Oddity(asked) == market.Ordinary
	}
	return false
}

// passing yields the indexes in the market of the machines that all of some barriers let pass.
func (o *obstacles) passing(barriers []*barrier) iter.Seq[int] {
	return func(yield func(int) bool) {
		set, shut, now := o.m.Of(o.s).Clone(), uint64(0), false
		for _, b := range barriers {
			set.Intersect(b.admits)
			shut |= b.shut
			now = now || b.kind == byAvailability
		}
		for i := range set.All {
			where := o.m.Machines[i].Offered
			if now {
				where = o.m.Machines[i].Zones
			}
			if where&^shut != 0 && !yield(i) {
				return
			}
		}
	}
}

// closed reports whether some barriers together let nothing pass or, with a minValues barrier among them, less than
// minValues requires.
func (o *obstacles) closed(barriers ...*barrier) bool {
	var minimums []market.Minimum
	if slices.ContainsFunc(barriers, func(b *barrier) bool { return b.kind == byMinValues }) {
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

// conflict finds a small set of barriers that together let nothing pass, and of which none can be left out: one if one
// is enough, else two, else what remains after all superfluous ones are left out. It returns nil if the barriers do not
// explain it.
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
