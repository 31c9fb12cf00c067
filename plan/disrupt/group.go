package disrupt

import (
	"math"
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
)

// Groups of nodes that one cheaper machine replaces are found by growth: from each remaining node, adding the other node
// that increases the savings the most, as long as the two together save more than each by itself. The needs of a group are
// computed as one sum and one set of machines, which is quick; a trial then shows whether the replacement works. So pairs
// and groups are found wherever they are in any ordering.

// Bounds of the search.
const (
	// maxPartners is how many nodes are tried as the next of a group, the most wasteful first.
	maxPartners = 48
	// maxTogether is how many nodes one claim replaces: they all wait for it.
	maxTogether = 8
	// maxVain is how many groups may turn out not to work before the search is given up.
	maxVain = 128
)

// candidateGroup is a group of candidates, and what their pods need together.
type candidateGroup struct {
	need
	sources []*candidate
	price   float64
	// shelf is the most preferred shelf with a machine that the first source allows. at is the place on it of the cheapest
	// machine for the whole group, and saves is what that machine would save.
	shelf []int
	at    int
	saves float64
	// alone is what replacing each of the sources by itself would save, if anything.
	alone float64
}

// groupOf returns a group of one candidate; nil if no machine would do for all of its pods.
func groupOf(f *Simulation, one *candidate) *candidateGroup {
	all := f.needOf(f.Simulated[one.node.Key()].own)
	if all == nil || all.allowed.Empty() || all.zones == 0 {
		return nil
	}
	b := &candidateGroup{sources: []*candidate{one}, need: *all, price: one.price}
	first := slices.IndexFunc(f.shelves, func(machines []int) bool { return slices.ContainsFunc(machines, b.allowed.Has) })
	if first >= 0 {
		b.shelf = f.shelves[first]
	}
	if b.value(f.Distribution.Market, math.Inf(-1)) {
		b.alone = max(0, b.saves)
	}
	return b
}

// value finds the cheapest machine for a group, beginning at its place on the shelf, and says whether it saves more than a
// bound and costs no more than half as much again as the nodes.
func (b *candidateGroup) value(m *market.Market, least float64) bool {
	least = max(least, -b.price/2)
	for ; b.at < len(b.shelf); b.at++ {
		if b.saves = b.price - m.Machines[b.shelf[b.at]].Price; b.saves <= least {
			return false
		}
		if b.metBy(m, b.shelf[b.at]) {
			return true
		}
	}
	return false
}

// gather replaces groups of nodes with single cheaper ones.
func (c *consolidation) gather(staying []*candidate) {
	var seeds []*candidateGroup
	for _, one := range staying {
		if !one.known || one.kept.Cause != model.CauseRoom {
			continue
		}
		if seed := groupOf(c.f, one); seed != nil {
			seeds = append(seeds, seed)
		}
	}
	vain := 0
	for _, seed := range seeds {
		if c.replaced == maxReplacements || vain == maxVain {
			return
		}
		if !c.mayGo(seed.sources[0]) {
			continue
		}
		if group := c.grow(seed, seeds); len(group.sources) > 1 && c.replace(group.sources) != nil {
			vain++
		}
	}
}

// grow adds to a group, one by one, the nodes with which it saves the most, and returns the best group on the way. A second
// node may save nothing where a third does. What each node saves by itself does not count as a gain of the group.
func (c *consolidation) grow(group *candidateGroup, others []*candidateGroup) *candidateGroup {
	m := c.f.Distribution.Market
	found, most := group, 0.0
	for vain := 0; vain < 2 && len(group.sources) < maxTogether; vain++ {
		best, gain := (*candidateGroup)(nil), math.Inf(-1)
		next, tried := &candidateGroup{}, 0
		for _, other := range others {
			if tried == maxPartners {
				break
			}
			if !c.joins(group, other) {
				continue
			}
			tried++
			// A machine for both is no cheaper than one for the group.
			next.request, next.allowed, next.zones = append(next.request[:0], group.request...), append(next.allowed[:0], group.allowed...), group.zones
			next.add(other.request, 1, other.allowed, other.zones)
			next.sources = append(append(next.sources[:0], group.sources...), other.sources...)
			next.price, next.alone, next.shelf, next.at = group.price+other.price, group.alone+other.alone, group.shelf, group.at
			if next.value(m, next.alone+gain) {
				best, gain = next, next.saves-next.alone
				next = &candidateGroup{}
			}
		}
		if best == nil {
			break
		}
		group = best
		if gain > most*(1+1e-9)+1e-9 && c.scores.worth(group.sources, group.saves) {
			found, most, vain = group, gain, -1
		}
	}
	return found
}

// joins says whether a node may join a group: one machine may do for all, the budgets allow it, and no pod is expected on
// the node.
func (c *consolidation) joins(group, other *candidateGroup) bool {
	one := other.sources[0]
	if other.zones&group.zones == 0 || !other.allowed.Intersects(group.allowed) || slices.Contains(group.sources, one) || c.going[one.node.Key()] {
		return false
	}
	n := 1
	for _, source := range group.sources {
		if source.node.Pool == one.node.Pool {
			n++
		}
	}
	return c.book.left(one.node.Pool, underutilized) >= n && c.f.expects(one.node) == nil
}
