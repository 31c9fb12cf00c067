package plan

import (
	"cmp"
	"slices"
)

// Rules over hostnames bound how many pods of a group one node takes: one where they are to be apart, maxSkew where they
// are to be spread. For the program that finds the cheapest machines such a bound is one more resource of every machine,
// of which each of the pods takes one.

// mostCaps is how many groups become resources. The largest are worth it; of the others, each item is bounded by itself.
const mostCaps = 6

// hostCap is a bound on the pods of a group on one new node: on those that have this bound or a lower one.
type hostCap struct {
	group *group
	most  int
}

// caps are the bounds that a shape's rules set to its own kind.
func (r *rules) caps() []hostCap {
	var caps []hostCap
	for i := range r.spread {
		if s := &r.spread[i]; s.host >= 0 && s.self == 1 {
			caps = append(caps, hostCap{s.group, s.maxSkew})
		}
	}
	for _, g := range r.apart {
		if g.host >= 0 && slices.Contains(r.joins, g) {
			caps = append(caps, hostCap{g, 1})
		}
	}
	return caps
}

// capsOf chooses the bounds that become resources: those that concern the most pods of several items.
func capsOf(items []*item) []hostCap {
	type concern struct {
		hostCap
		pods, items int
	}
	byCap := map[hostCap]*concern{}
	var concerns []*concern
	for _, it := range items {
		for _, c := range it.rules.caps() {
			known := byCap[c]
			if known == nil {
				known = &concern{hostCap: c}
				byCap[c] = known
				concerns = append(concerns, known)
			}
			known.pods += len(it.pods)
			known.items++
		}
	}
	concerns = slices.DeleteFunc(concerns, func(c *concern) bool { return c.items < 2 })
	slices.SortStableFunc(concerns, func(a, b *concern) int { return -cmp.Compare(a.pods, b.pods) })
	var caps []hostCap
	for _, c := range concerns[:min(len(concerns), mostCaps)] {
		caps = append(caps, c.hostCap)
	}
	return caps
}

// claimCaps writes into a pod's request what it takes of the bounds, and returns the least of those that are no
// resources; zero if there is none.
func (d *dimensions) claimCaps(request []int64, r *rules) int {
	most := 0
	for _, c := range r.caps() {
		for i, known := range d.caps {
			// Who minds less may join those who mind more, but not the other way round.
			if known.group == c.group && known.most >= c.most {
				request[d.cap(i)] = 1
			}
		}
		if !slices.Contains(d.caps, c) && (most == 0 || c.most < most) {
			most = c.most
		}
	}
	return most
}

// capped says that a request is bounded by more than room.
func (d *dimensions) capped(request []int64) bool {
	for i := range d.caps {
		if request[d.cap(i)] > 0 {
			return true
		}
	}
	return false
}

// looseness is how many times more nodes than a bound asks for there have to be in any case for it not to matter.
const looseness = 4

// boundary is what is known of the bounds on groups of pods before machines are bought for some lots: the one that asks
// for the most nodes, and so which of the others these nodes meet anyway.
type boundary struct {
	m *market
	// nodes is how many nodes the widest bound asks for, and reach are the machines these may be.
	nodes int
	reach bitset
	// loose says of each bound that counts as a resource whether it is met anyway.
	loose []bool
}

// boundaryOf finds the widest bound of some lots.
func (m *market) boundaryOf(lots []supplied) boundary {
	e := boundary{m: m, loose: make([]bool, len(m.dims.caps))}
	pods, reach := make([]int, len(m.dims.caps)), make([]bitset, len(m.dims.caps))
	for _, l := range lots {
		n := min(l.left(), l.quota)
		if l.most > 0 && n/l.most > e.nodes {
			e.nodes, e.reach = n/l.most, l.stock
		}
		for i := range pods {
			if l.request[m.dims.cap(i)] == 0 || n == 0 {
				continue
			}
			pods[i] += n
			if reach[i] == nil {
				reach[i] = newBitset(len(m.machines))
			}
			reach[i].unite(l.stock)
		}
	}
	for i := range pods {
		if n := pods[i] / m.dims.caps[i].most; n > e.nodes {
			e.nodes, e.reach = n, reach[i]
		}
	}
	for i := range pods {
		e.loose[i] = pods[i] > 0 && e.meets(pods[i]/m.dims.caps[i].most) && !slices.ContainsFunc(lots, func(l supplied) bool {
			return l.request[m.dims.cap(i)] > 0 && !e.reachedBy(l.lot, l.stock)
		})
	}
	return e
}

// meets says that many times more nodes than this are bought in any case.
func (e *boundary) meets(nodes int) bool { return nodes*looseness <= e.nodes }

// reachedBy says that pieces of a lot may be on all of the nodes that are large enough and in their zones.
func (e *boundary) reachedBy(l *lot, stock bitset) bool {
	var zones uint64
	for i := range l.variants {
		zones |= l.variants[i].zones
	}
	missing := e.reach.clone()
	missing.exclude(stock)
	for i := range missing.all {
		if e.m.machines[i].zones&zones != 0 && fits(l.request, e.m.machines[i].usable) {
			return false
		}
	}
	return true
}

// of is what a piece of a lot takes, and how many of them one machine takes, without the bounds that do not matter.
func (e *boundary) of(l *supplied) (request []int64, most int) {
	request, most = l.request, l.most
	if most > 0 && e.meets(l.left()/most) && e.reachedBy(l.lot, l.stock) {
		most = 0
	}
	for i, loose := range e.loose {
		if d := e.m.dims.cap(i); loose && request[d] > 0 {
			request = slices.Clone(request)
			request[d] = 0
		}
	}
	return request, most
}

// cap is the dimension of a bound.
func (d *dimensions) cap(i int) int { return dimExtended + len(d.extended) + i }
