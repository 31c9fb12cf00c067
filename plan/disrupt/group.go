package disrupt

import (
	"fmt"
	"math"
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
)

// Several nodes that one cheaper machine replaces are found by growth: from each node that is left, with the other node
// that adds the most to what is saved, as long as the two together save more than each by itself. What a group needs is
// reckoned as one sum and one set of machines, which is quick; whether it works out is then asked of a trial. So pairs
// and groups are found wherever they are in any ordering.

// Bounds of the search.
const (
	// mostPartners is how many nodes are tried as the next of a group, the most wasteful first.
	mostPartners = 48
	// mostTogether is how many nodes one claim replaces: they all wait for it.
	mostTogether = 8
	// mostVain is how many groups may turn out not to work before the search is given up.
	mostVain = 128
)

// candidateGroup is some candidates, and what their pods need together.
type candidateGroup struct {
	need
	sources []*candidate
	price   float64
	// shelf is what the market prefers of what the first source may have, by rising price. The cheapest machine for all is
	// at this place of it, and would save so much.
	shelf []int
	at    int
	saves float64
	// valued says that this has been looked for.
	valued bool
}

// groupOf is a candidate alone; nil if no machine would do for all of its pods.
func groupOf(f *Simulation, one *candidate) *candidateGroup {
	m := f.Distribution.Market
	b := &candidateGroup{sources: []*candidate{one}, need: newNeed(m), price: one.price}
	for _, pod := range f.Simulated[one.node.Key()].own {
		it := f.Distribution.Home[pod]
		if it.Refusal != "" || it.Allowed.Empty() {
			return nil
		}
		b.add(it.Request, 1, it.Allowed, zonesOfGroup(it))
	}
	if b.allowed == nil || b.allowed.Empty() || b.zones == 0 {
		return nil
	}
	for _, shelf := range f.shelves {
		for _, machines := range shelf {
			if b.shelf == nil && slices.ContainsFunc(machines, b.allowed.Has) {
				b.shelf = machines
			}
		}
	}
	return b
}

// value finds the cheapest machine for a group from its place of the shelf on, and says whether there is one that saves
// more than a bound and costs no more than half as much again as the nodes.
func (b *candidateGroup) value(m *market.Market, least float64) bool {
	least = max(least, -b.price/2)
	for ; b.at < len(b.shelf); b.at++ {
		if b.saves = b.price - m.Machines[b.shelf[b.at]].Price; b.saves <= least {
			break
		}
		if b.metBy(m, b.shelf[b.at]) {
			return true
		}
	}
	b.saves = math.Inf(-1)
	return false
}

// alone is what replacing a group by itself saves; not below zero.
func (b *candidateGroup) alone(m *market.Market) float64 {
	if !b.valued {
		b.value(m, math.Inf(-1))
		b.valued = true
	}
	return max(0, b.saves)
}

// join makes a group of two others. A machine for both is no cheaper than one for the first.
func (b *candidateGroup) join(one, other *candidateGroup) {
	b.request, b.allowed, b.zones = append(b.request[:0], one.request...), append(b.allowed[:0], one.allowed...), one.zones
	b.add(other.request, 1, other.allowed, other.zones)
	b.sources = append(append(b.sources[:0], one.sources...), other.sources...)
	b.price, b.shelf, b.at = one.price+other.price, one.shelf, one.at
}

// gather replaces groups of nodes by single cheaper ones.
func (c *consolidation) gather(order []*candidate) {
	var seeds []*candidateGroup
	for _, one := range order {
		if c.gone[one] || !one.known || c.kept[one].Cause != model.CauseRoom {
			continue
		}
		if seed := groupOf(c.f, one); seed != nil {
			seeds = append(seeds, seed)
		}
	}
	vain := 0
	for _, seed := range seeds {
		if len(c.commands)-c.removed >= replacementsMost || vain == mostVain {
			return
		}
		if !c.open(seed.sources[0]) {
			continue
		}
		if group := c.grow(seed, seeds); len(group.sources) > 1 && !c.merge(group) {
			vain++
		}
	}
}

// grow adds to a group, one by one, the nodes with which it saves the most, and returns the best group there was on the
// way. A second node may save nothing where a third does. What each saves by itself is no reason to wait for the others.
func (c *consolidation) grow(group *candidateGroup, others []*candidateGroup) *candidateGroup {
	m := c.f.Distribution.Market
	found, most, apart := group, 0.0, group.alone(m)
	for vain := 0; vain < 2 && len(group.sources) < mostTogether; vain++ {
		best, gain, bestApart := (*candidateGroup)(nil), math.Inf(-1), 0.0
		next, tried := &candidateGroup{}, 0
		for _, other := range others {
			if tried == mostPartners {
				break
			}
			if !c.joins(group, other) {
				continue
			}
			tried++
			next.join(group, other)
			if both := apart + other.alone(m); next.value(m, both+gain) {
				best, gain, bestApart = next, next.saves-both, both
				next = &candidateGroup{}
			}
		}
		if best == nil {
			break
		}
		group, apart = best, bestApart
		if gain > most*(1+1e-9)+1e-9 && c.worth(group.sources, group.saves) {
			found, most, vain = group, gain, -1
		}
	}
	return found
}

// joins says whether a node may go together with those of a group: one machine may do for all, and the budgets let it go.
func (c *consolidation) joins(group, other *candidateGroup) bool {
	one := other.sources[0]
	if c.gone[one] || slices.Contains(group.sources, one) || other.zones&group.zones == 0 || !other.allowed.Intersects(group.allowed) {
		return false
	}
	n := 1
	for _, source := range group.sources {
		if source.node.Pool == one.node.Pool {
			n++
		}
	}
	return c.book.left(one.node.Pool, underutilized) >= n && c.f.Simulated[one.node.Key()].expects() == nil
}

// merge asks a trial whether a group works out, and says whether it does.
func (c *consolidation) merge(group *candidateGroup) bool {
	found, _ := c.f.Relocate(nodesOf(group.sources), Purchase{Most: 1, terms: c.termsFor(group.sources)})
	if found == nil || len(found.Claims) == 0 {
		return false
	}
	saves := group.price - found.price
	if c.unworthy(group.sources, found, saves) != nil {
		return false
	}
	claim := &found.Claims[0]
	c.decide(group.sources, found, saves, fmt.Sprintf("one %s %s at $%.4f an hour takes the pods of %d nodes for $%.4f an hour less",
		claim.InstanceTypes[0], claim.CapacityType, claim.PricePerHour, len(group.sources), saves))
	return true
}
