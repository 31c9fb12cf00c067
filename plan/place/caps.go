package place

import (
	"cmp"
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/rules"
	"github.com/tenon-sh/tenon/plan/solve"
)

// Rules over hostnames bound how many pods of a group one node takes: one where they are to be apart, MaxSkew where they
// are to be spread. For the program that finds the cheapest machines such a bound is one more resource of every machine,
// of which each of the pods takes one.

// mostCaps is how many groups become resources. The largest are worth it; of the others, each pod group is bounded by
// itself.
const mostCaps = 6

// hostCapsOf chooses the bounds that become resources: those that concern the most pods of several pod groups.
func hostCapsOf(podGroups []*PodGroup) []rules.HostCap {
	type concern struct {
		rules.HostCap
		pods, items int
	}
	byCap := map[rules.HostCap]*concern{}
	var concerns []*concern
	for _, it := range podGroups {
		for _, c := range it.Rules.Caps() {
			known := byCap[c]
			if known == nil {
				known = &concern{HostCap: c}
				byCap[c] = known
				concerns = append(concerns, known)
			}
			known.pods += len(it.Pods)
			known.items++
		}
	}
	concerns = slices.DeleteFunc(concerns, func(c *concern) bool { return c.items < 2 })
	slices.SortStableFunc(concerns, func(a, b *concern) int { return -cmp.Compare(a.pods, b.pods) })
	var caps []rules.HostCap
	for _, c := range concerns[:min(len(concerns), mostCaps)] {
		caps = append(caps, c.HostCap)
	}
	return caps
}

// looseness is how many times more nodes than a bound asks for there have to be in any case for it not to matter.
const looseness = 4

// boundary is what is known of the bounds on groups of pods before machines are bought for some demand chunks: the one
// that asks for the most nodes, and so which of the others these nodes meet anyway.
type boundary struct {
	m *market.Market
	// nodes is how many nodes the widest bound asks for, and reach are the machines these may be.
	nodes          int
	reach, offered market.Bitset
	// loose says of each bound that counts as a resource whether it is met anyway.
	loose []bool
}

// boundaryOf finds the widest bound of some demand chunks.
func boundaryOf(m *market.Market, chunks []*DemandChunk, offered market.Bitset) boundary {
	e := boundary{m: m, offered: offered, loose: make([]bool, len(m.Dims.Caps))}
	pods, reach := make([]int, len(m.Dims.Caps)), make([]market.Bitset, len(m.Dims.Caps))
	for _, l := range chunks {
		n := l.Left()
		if most := l.most(); most > 0 && n/most > e.nodes {
			e.nodes, e.reach = n/most, l.Allowed
		}
		for i := range pods {
			if l.Request[m.Dims.Cap(i)] == 0 || n == 0 {
				continue
			}
			pods[i] += n
			if reach[i] == nil {
				reach[i] = market.NewBitset(len(m.Machines))
			}
			reach[i].Unite(l.Allowed)
		}
	}
	for i := range pods {
		if n := pods[i] / m.Dims.Caps[i].Most; n > e.nodes {
			e.nodes, e.reach = n, reach[i]
		}
	}
	for i := range pods {
		e.loose[i] = pods[i] > 0 && e.meets(pods[i]/m.Dims.Caps[i].Most) && !slices.ContainsFunc(chunks, func(l *DemandChunk) bool {
			return l.Request[m.Dims.Cap(i)] > 0 && !e.reachedBy(l)
		})
	}
	return e
}

// meets says that many times more nodes than this are bought in any case.
func (e *boundary) meets(nodes int) bool { return nodes*looseness <= e.nodes }

// reachedBy says that pieces of a demand chunk may be on all of the nodes that are large enough and in their zones.
func (e *boundary) reachedBy(l *DemandChunk) bool {
	zones := l.ZonesOfChunk()
	missing := e.reach.Clone()
	missing.Intersect(e.offered)
	missing.Exclude(l.Allowed)
	for i := range missing.All {
		if e.m.Machines[i].Zones&zones != 0 && solve.Fits(l.Request, e.m.Machines[i].Usable) {
			return false
		}
	}
	return true
}

// of is what a piece of a demand chunk takes, and how many of them one machine takes, without the bounds that do not
// matter.
func (e *boundary) of(l *DemandChunk) (request []int64, most int) {
	request, most = l.Request, l.most()
	if most > 0 && e.meets(l.Left()/most) && e.reachedBy(l) {
		most = 0
	}
	for i, loose := range e.loose {
		if d := e.m.Dims.Cap(i); loose && request[d] > 0 {
			request = slices.Clone(request)
			request[d] = 0
		}
	}
	return request, most
}
