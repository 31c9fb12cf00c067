package solve

import (
	"math"
	"slices"
)

// node is a machine in flight: one of several, which becomes the cheapest of those that hold all that was put on it.
type node struct {
	// options are the machines it may become, the cheapest first.
	options []int
	zones   uint64
	// need is what its content takes. spare is the most that any option has free of each dimension.
	need, spare []int64
	content     []Count
	pieces      int
}

// firstFit puts pieces, in a given order of demands, onto the first machine in flight that takes them, and opens
// another where none does. A plain autoscaler works this way. It does not see what fits together well, but is never far
// from the lowest price.
func firstFit(s *stock, order, options []int) *packing {
	var nodes []*node
	for _, k := range order {
		for _, n := range nodes {
			if s.left[k] == 0 {
				break
			}
			n.take(s, k)
		}
		for s.left[k] > 0 {
			n := open(s.p, options)
			if !n.take(s, k) {
				break
			}
			nodes = append(nodes, n)
		}
	}
	return settled(s, nodes)
}

// settled buys the cheapest machine for each node in flight. The pieces of a node for which no machine can be bought
// are put back.
func settled(s *stock, nodes []*node) *packing {
	result := &packing{rest: s}
	for _, n := range nodes {
		var bought *Load
		for _, m := range n.options {
			if bought == nil && s.affordable(m) > 0 {
				bought = s.p.load(m, n.zones, n.content)
			}
		}
		if bought == nil {
			s.putBack(n.content)
			continue
		}
		s.spend(bought.Machine, 1)
		result.add(*bought)
	}
	return result
}

// open returns an empty node that may become any of some machines.
func open(p *Problem, options []int) *node {
	n := &node{options: options, zones: math.MaxUint64}
	dims := len(p.Machines[options[0]].Room)
	n.need, n.spare = make([]int64, dims), make([]int64, dims)
	n.measure(p)
	return n
}

// measure updates the most that any option has free.
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

// take puts as many pieces of a demand as possible onto the node, and reports whether it put any.
func (n *node) take(s *stock, k int) bool {
	d := &s.p.Demands[k]
	if !Fits(d.Request, n.spare) {
		return false
	}
	most := min(s.most(k), s.share-n.pieces)
	if most <= 0 {
		return false
	}
	for w := range d.Ways {
		way := &d.Ways[w]
		zones, took := way.Zones&n.zones, 0
		var kept []int
		for _, m := range n.options {
			mach := &s.p.Machines[m]
			if !way.Machines.Has(m) || math.IsInf(mach.priceIn(zones), 1) || d.Kind != 0 && !s.p.Joins(m, n.content, k, w) {
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
		n.options = slices.DeleteFunc(kept, func(m int) bool { return !Fits(n.need, s.p.Machines[m].Room) })
		n.zones = zones
		n.pieces += took
		taken := Count{Demand: k, Way: w, N: took}
		s.take(&taken)
		n.content = append(n.content, taken)
		n.measure(s.p)
		return true
	}
	return false
}

// trimmed returns a load on the cheapest machine that holds it. Options are ordered by price.
func trimmed(p *Problem, l Load, options []int) Load {
	need := make([]int64, len(p.Machines[l.Machine].Room))
	zones := uint64(math.MaxUint64)
	for _, c := range l.Content {
		Subtract(need, p.Demands[c.Demand].Request, -c.N)
		zones &= p.Demands[c.Demand].Ways[c.Way].Zones
	}
	dearer := func(t Take) bool { // takes more out of a budget
		return !slices.ContainsFunc(p.Machines[l.Machine].Takes, func(o Take) bool { return o.Budget == t.Budget && o.Amount >= t.Amount })
	}
	for _, m := range options {
		mach := &p.Machines[m]
		if mach.priceIn(math.MaxUint64) >= l.Price-1e-12 {
			break
		}
		if mach.priceIn(zones) >= l.Price-1e-12 || !Fits(need, mach.Room) || slices.ContainsFunc(mach.Takes, dearer) || !joined(p, m, l.Content) {
			continue
		}
		if cheaper := p.load(m, zones, l.Content); cheaper != nil {
			l = *cheaper
		}
	}
	return l
}

// joined reports whether the pieces of a content may be on a machine together, regardless of room.
func joined(p *Problem, m int, content []Count) bool {
	for i, c := range content {
		d := &p.Demands[c.Demand]
		if !d.Ways[c.Way].Machines.Has(m) || d.Kind != 0 && !p.Joins(m, content[:i], c.Demand, c.Way) {
			return false
		}
	}
	return true
}
