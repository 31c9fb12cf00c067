package solve

import (
	"cmp"
	"math"
	"slices"
)

// node is a machine in flight: one of several, which becomes the cheapest of those that hold all it was given.
type node struct {
	// options are the machines it may become, the cheapest first.
	options []int
	zones   uint64
	// need is what its content takes, spare the most that any option has free of each dimension.
	need, spare []int64
	content     []Count
	pieces      int
}

// firstFit puts pieces, in an order of demands, onto the first machine in flight that takes them, and opens another where
// none does. It is what a plain autoscaler does: slow to see what fits together, but never far off.
func firstFit(p *Problem, s *stock, order, options []int) *packing {
	var nodes []*node
	for _, k := range order {
		left := s.left[k]
		if left == 0 {
			continue
		}
		placed := 0
		// Each machine takes one share of a demand that is bounded, so that the bound is counted in lots as they are drawn.
		draws := newDraws(s, k)
		for _, n := range nodes {
			if placed == left {
				break
			}
			placed += n.take(p, s, k, draws.most(left-placed), draws)
		}
		for placed < left {
			n := open(p, options)
			took := n.take(p, s, k, draws.most(left-placed), draws)
			if took == 0 {
				break
			}
			placed += took
			nodes = append(nodes, n)
		}
	}
	return settled(p, s, nodes)
}

// settled buys the cheapest machine of each node in flight.
func settled(p *Problem, s *stock, nodes []*node) *packing {
	result := &packing{}
	for _, n := range nodes {
		for _, m := range n.options {
			if s.affordable(m) == 0 || p.Accepts != nil && !p.Accepts(m, n.zones&p.Machines[m].zones(), n.content) {
				continue
			}
			l := Load{Machine: m, Zones: n.zones & p.Machines[m].zones(), Content: n.content}
			l.Price = p.Machines[m].priceIn(l.Zones)
			s.buy(&l)
			result.add(l)
			break
		}
	}
	result.left = s.pieces
	return result
}

// draws counts what is left of a demand's lots while its pieces are put onto one machine after another.
type draws struct {
	lots []int
	each int
	most func(left int) int
}

func newDraws(s *stock, k int) *draws {
	d := &draws{each: s.p.Demands[k].Most}
	most := s.p.Demands[k].Share
	if !s.shared || most == 0 {
		most = math.MaxInt
	}
	if s.lots[k] == nil {
		if d.each > 0 {
			most = min(most, d.each)
		}
		d.most = func(left int) int { return min(left, most) }
		return d
	}
	d.lots = slices.Clone(s.lots[k])
	d.most = func(left int) int {
		n := 0
		for _, lot := range d.lots {
			n += min(lot, d.each)
		}
		return min(left, n, most)
	}
	return d
}

// drawn takes n pieces of the lots that have the most left.
func (d *draws) drawn(n int) {
	if d.lots == nil {
		return
	}
	slices.SortFunc(d.lots, func(a, b int) int { return -cmp.Compare(a, b) })
	for i := 0; n > 0 && i < len(d.lots); i++ {
		took := min(n, d.each, d.lots[i])
		d.lots[i] -= took
		n -= took
	}
}

// open is an empty node that may become any of some machines.
func open(p *Problem, options []int) *node {
	n := &node{options: options, zones: math.MaxUint64}
	dims := len(p.Machines[options[0]].Room)
	n.need, n.spare = make([]int64, dims), make([]int64, dims)
	n.measure(p)
	return n
}

// measure finds the most that any option has free.
func (n *node) measure(p *Problem) {
	for d := range n.spare {
		n.spare[d] = math.MinInt64
	}
	for _, m := range n.options {
		for d, amount := range p.Machines[m].Room {
			n.spare[d] = max(n.spare[d], amount-n.need[d])
		}
	}
}

// take puts up to most pieces of a demand onto the node and returns how many there was room for.
func (n *node) take(p *Problem, s *stock, k, most int, draws *draws) int {
	d := &p.Demands[k]
	most = min(most, s.share()-n.pieces)
	if most <= 0 || !Fits(d.Request, n.spare) {
		return 0
	}
	for w := range d.Ways {
		way := &d.Ways[w]
		if way.Zones&n.zones == 0 {
			continue
		}
		zones, took := way.Zones&n.zones, 0
		var kept []int
		for _, m := range n.options {
			mach := &p.Machines[m]
			if !way.Machines.Has(m) || math.IsInf(mach.priceIn(zones), 1) || d.Kind != 0 && !p.Joins(m, n.content, k, w) {
				continue
			}
			fit := most
			for dim, amount := range d.Request {
				if amount > 0 {
					fit = min(fit, int(max(0, mach.Room[dim]-n.need[dim])/amount))
				}
			}
			if fit > 0 {
				kept = append(kept, m)
				took = max(took, fit)
			}
		}
		if took == 0 {
			continue
		}
		Subtract(n.need, d.Request, -took)
		n.options = slices.DeleteFunc(kept, func(m int) bool { return !holds(p.Machines[m].Room, n.need) })
		n.zones = zones
		n.pieces += took
		n.content = append(n.content, Count{Demand: k, Way: w, N: took})
		n.measure(p)
		draws.drawn(took)
		return took
	}
	return 0
}

// holds says whether a room holds a need.
func holds(room, need []int64) bool {
	for d, amount := range need {
		if amount > 0 && amount > room[d] {
			return false
		}
	}
	return true
}

// trimmed is a load on the cheapest machine that holds it. Options are ordered by price.
func trimmed(p *Problem, s *stock, l Load, options []int) Load {
	need := make([]int64, len(p.Machines[l.Machine].Room))
	zones := uint64(math.MaxUint64)
	for _, c := range l.Content {
		Subtract(need, p.Demands[c.Demand].Request, -c.N)
		zones &= p.Demands[c.Demand].Ways[c.Way].Zones
	}
	if l.Need != nil {
		need = l.Need
	}
	for _, m := range options {
		mach := &p.Machines[m]
		if mach.priceIn(math.MaxUint64) >= l.Price-1e-12 {
			break
		}
		price := mach.priceIn(zones)
		if price >= l.Price-1e-12 || !holds(mach.Room, need) || s.affordable(m) == 0 || !samePurse(mach, &p.Machines[l.Machine]) {
			continue
		}
		if slices.ContainsFunc(l.Content, func(c Count) bool { return !p.Demands[c.Demand].Ways[c.Way].Machines.Has(m) }) {
			continue
		}
		if p.Accepts != nil && !p.Accepts(m, zones&mach.zones(), l.Content) || !joined(p, m, l.Content) {
			continue
		}
		l.Machine, l.Zones, l.Price = m, zones&mach.zones(), price
	}
	return l
}

// samePurse says that a machine takes no more out of any budget than another.
func samePurse(m, other *Machine) bool {
	for _, t := range m.Takes {
		if !slices.ContainsFunc(other.Takes, func(o Take) bool { return o.Budget == t.Budget && o.Amount >= t.Amount }) {
			return false
		}
	}
	return true
}

// joined says that a content may be on a machine for all that no number tells.
func joined(p *Problem, m int, content []Count) bool {
	for i, c := range content {
		if p.Demands[c.Demand].Kind != 0 && !p.Joins(m, content[:i], c.Demand, c.Way) {
			return false
		}
	}
	return true
}
