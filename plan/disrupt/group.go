package disrupt

import (
	"fmt"
	"math"
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/place"
	"github.com/tenon-sh/tenon/plan/solve"
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

// candidateGroup is what the pods of some candidates need together.
type candidateGroup struct {
	sources []*candidate
	// stand is that of the first source.
	stand   *simulatedNode
	need    []int64
	allowed market.Bitset
	zones   uint64
	price   float64
	pods    int
	// saves is what the cheapest machine for all of it would save; it is at this place of the shelf.
	saves float64
	at    int
	// alone is what replacing the first source alone by the cheapest machine of a shelf would save, which begins with this
	// machine; not below zero.
	alone float64
	shelf *int
}

// groupOf is what a candidate's pods need; nil if no machine would do for all of them.
func groupOf(f *Simulation, one *candidate) *candidateGroup {
	m := f.Distribution.Market
	b := &candidateGroup{sources: []*candidate{one}, stand: f.Simulated[one.node.Key()], need: make([]int64, m.Dims.Count()), zones: ^uint64(0), price: one.price, pods: len(one.pods)}
	var last *place.PodGroup
	for _, pod := range b.stand.own {
		it := f.Distribution.Home[pod]
		place.Weigh(m, it)
		if it.Refusal != "" || it.Allowed.Empty() {
			return nil
		}
		solve.Subtract(b.need, it.Request, -1)
		if it == last {
			continue
		}
		last = it
		if b.allowed == nil {
			b.allowed = it.Allowed.Clone()
		}
		b.allowed.Intersect(it.Allowed)
		zones := uint64(0)
		for i := range it.Variants {
			zones |= it.Variants[i].Zones
		}
		b.zones &= zones
	}
	if b.allowed == nil || b.allowed.Empty() || b.zones == 0 {
		return nil
	}
	return b
}

// shelfFor is what the market prefers of what a group may have, by rising price.
func shelfFor(f *Simulation, b *candidateGroup) []int {
	for _, shelf := range f.shelves {
		for _, machines := range shelf {
			if slices.ContainsFunc(machines, b.allowed.Has) {
				return machines
			}
		}
	}
	return nil
}

// value finds the cheapest machine for a bulk from a place of the shelf on.
func (b *candidateGroup) value(m *market.Market, shelf []int, from int) {
	b.saves = math.Inf(-1)
	for b.at = from; b.at < len(shelf); b.at++ {
		mach := &m.Machines[shelf[b.at]]
		if mach.Price > 1.5*b.price {
			return
		}
		if b.allowed.Has(shelf[b.at]) && mach.Zones&b.zones != 0 && solve.Fits(b.need, mach.Usable) {
			b.saves = b.price - mach.Price
			return
		}
	}
}

// weighAlone finds out what the bulk saves by itself on a shelf, unless that is known.
func (b *candidateGroup) weighAlone(m *market.Market, shelf []int) {
	if len(shelf) == 0 || b.shelf == &shelf[0] {
		return
	}
	again := *b
	again.value(m, shelf, 0)
	b.alone, b.shelf = max(0, again.saves), &shelf[0]
}

// joint values two bulks together, of which only a gain that is higher than a given one is of interest: what they save
// less what each saves without the other.
func (b *candidateGroup) joint(m *market.Market, other *candidateGroup, shelf []int, apart, least float64) (gain, saves float64, at int) {
	price, zones := b.price+other.price, b.zones&other.zones
	for at = b.at; at < len(shelf); at++ {
		i := shelf[at]
		mach := &m.Machines[i]
		saves = price - mach.Price
		if gain = saves - apart - other.alone; gain <= least || mach.Price > 1.5*price {
			break
		}
		if b.allowed.Has(i) && other.allowed.Has(i) && mach.Zones&zones != 0 && fitTogether(b.need, other.need, mach.Usable) {
			return gain, saves, at
		}
	}
	return math.Inf(-1), math.Inf(-1), at
}

// fitTogether says whether two needs fit into what is free.
func fitTogether(a, b, free []int64) bool {
	for d := range free {
		if amount := a[d] + b[d]; amount > 0 && amount > free[d] {
			return false
		}
	}
	return true
}

// with is two bulks in one.
func (b *candidateGroup) with(other *candidateGroup) *candidateGroup {
	sum := &candidateGroup{sources: append(slices.Clip(b.sources), other.sources...), stand: b.stand, need: slices.Clone(b.need), allowed: b.allowed.Clone(),
		zones: b.zones & other.zones, price: b.price + other.price, pods: b.pods + other.pods}
	solve.Subtract(sum.need, other.need, -1)
	sum.allowed.Intersect(other.allowed)
	return sum
}

// gather replaces groups of nodes by single cheaper ones.
func (c *consolidation) gather(order []*candidate) {
	m := c.f.Distribution.Market
	var bulks []*candidateGroup
	of := map[*candidate]*candidateGroup{}
	for _, one := range order {
		if c.gone[one] || !one.known || c.verdicts[one].Cause != model.CauseRoom {
			continue
		}
		if b := groupOf(c.f, one); b != nil {
			bulks = append(bulks, b)
			of[one] = b
		}
	}
	vain := 0
	for _, seed := range bulks {
		if len(c.commands)-c.removed >= replacementsMost || vain == mostVain {
			return
		}
		one := seed.sources[0]
		if c.gone[one] || !c.open(one) {
			continue
		}
		shelf := shelfFor(c.f, seed)
		seed.value(m, shelf, 0)
		if group := c.grow(seed, bulks, shelf); len(group.sources) > 1 && !c.merge(group) {
			vain++
		}
	}
}

// grow adds to a group, one by one, the nodes with which it saves the most, and returns the best group there was on the
// way. A second node may save nothing where a third does.
func (c *consolidation) grow(group *candidateGroup, bulks []*candidateGroup, shelf []int) *candidateGroup {
	m := c.f.Distribution.Market
	found, most, apart := group, 0.0, max(0, group.saves)
	for vain := 0; vain < 2 && len(group.sources) < mostTogether; vain++ {
		var best *candidateGroup
		gain, saves, at, tried := math.Inf(-1), 0.0, 0, 0
		for _, other := range bulks {
			one := other.sources[0]
			if tried == mostPartners {
				break
			}
			if c.gone[one] || slices.Contains(group.sources, one) || other.zones&group.zones == 0 || !other.allowed.Intersects(group.allowed) || !c.affords(group, one) {
				continue
			}
			if _, expected := other.stand.expects(); expected {
				continue
			}
			tried++
			// What each saves by itself is no reason to wait for the others.
			other.weighAlone(m, shelf)
			if more, all, place := group.joint(m, other, shelf, apart, gain); more > gain {
				best, gain, saves, at = other, more, all, place
			}
		}
		if best == nil {
			break
		}
		group, apart = group.with(best), apart+best.alone
		group.saves, group.at = saves, at
		if gain > most*(1+1e-9)+1e-9 && c.worth(group.sources, group.saves) {
			found, most, vain = group, gain, -1
		}
	}
	return found
}

// affords says whether the budgets let a node go beside those of a group.
func (c *consolidation) affords(group *candidateGroup, one *candidate) bool {
	n := 1
	for _, source := range group.sources {
		if source.node.Pool == one.node.Pool {
			n++
		}
	}
	return c.book.left(one.node.Pool, underutilized) >= n
}

// merge asks a trial whether a group works out, and says whether it does.
func (c *consolidation) merge(group *candidateGroup) bool {
	nodes := make([]*model.Node, len(group.sources))
	for i, source := range group.sources {
		nodes[i] = source.node
	}
	found, _, _ := c.f.Relocate(nodes, Purchase{Most: 1, terms: c.termsFor(group.sources)})
	if found == nil || len(found.Claims) == 0 {
		return false
	}
	saves := group.price - found.price
	if why, _ := c.unworthy(group.sources, found, saves); why != "" {
		return false
	}
	claim := &found.Claims[0]
	c.decide(group.sources, found, saves, fmt.Sprintf("one %s %s at $%.4f an hour takes the pods of %d nodes for $%.4f an hour less",
		claim.InstanceTypes[0], claim.CapacityType, claim.PricePerHour, len(group.sources), saves))
	return true
}
