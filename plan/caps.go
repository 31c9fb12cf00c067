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

// hostCap is a bound on the pods of a group on one new node.
type hostCap struct {
	group *group
	most  int
}

// capsOf are the bounds that a shape's rules set to its own kind.
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
	byGroup := map[*group]*concern{}
	var concerns []*concern
	for _, it := range items {
		for _, c := range it.rules.caps() {
			known := byGroup[c.group]
			if known == nil {
				known = &concern{hostCap: c}
				byGroup[c.group] = known
				concerns = append(concerns, known)
			}
			known.most = min(known.most, c.most)
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
		i := slices.IndexFunc(d.caps, func(known hostCap) bool { return known.group == c.group })
		switch {
		case i >= 0:
			request[dimExtended+len(d.extended)+i] = 1
		case most == 0 || c.most < most:
			most = c.most
		}
	}
	return most
}

// capped says that a request is bounded by more than room.
func (d *dimensions) capped(request []int64) bool {
	for i := range d.caps {
		if request[dimExtended+len(d.extended)+i] > 0 {
			return true
		}
	}
	return false
}
