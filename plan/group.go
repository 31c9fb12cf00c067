package plan

import (
	"fmt"
	"math"
	"slices"
)

// Several nodes that one cheaper machine replaces are found by growth: from each node that is left, with the other node
// that adds the most to what is saved, as long as the two together save more than each by itself. What a group needs is
// reckoned as one sum and one set of machines, which is quick; whether it works out is then asked of a fork. So pairs and
// groups are found wherever they are in any ordering.

// Bounds of the search.
const (
	// mostPartners is how many nodes are tried as the next of a group, the most wasteful first.
	mostPartners = 48
	// mostTogether is how many nodes one claim replaces: they all wait for it.
	mostTogether = 8
	// mostVain is how many groups may turn out not to work before the search is given up.
	mostVain = 128
)

// bulk is what the pods of some candidates need together.
type bulk struct {
	sources []*candidate
	// stand is that of the first source.
	stand   *stand
	need    []int64
	allowed bitset
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

// bulkOf is what a candidate's pods need; nil if no machine would do for all of them.
func (f *field) bulkOf(one *candidate) *bulk {
	m := f.d.m
	b := &bulk{sources: []*candidate{one}, stand: f.stands[one.node.Key()], need: make([]int64, m.dims.count()), zones: ^uint64(0), price: one.price, pods: len(one.pods)}
	var last *item
	for _, pod := range b.stand.own {
		it := f.d.home[pod]
		m.weigh(it)
		if it.refusal != "" || it.allowed.empty() {
			return nil
		}
		take(b.need, it.request, -1)
		if it == last {
			continue
		}
		last = it
		if b.allowed == nil {
			b.allowed = it.allowed.clone()
		}
		b.allowed.intersect(it.allowed)
		zones := uint64(0)
		for i := range it.variants {
			zones |= it.variants[i].zones
		}
		b.zones &= zones
	}
	if b.allowed == nil || b.allowed.empty() || b.zones == 0 {
		return nil
	}
	return b
}

// shelfFor is what the market prefers of what a group may have, by rising price.
func (f *field) shelfFor(b *bulk) []int {
	for _, shelf := range f.shelves {
		for _, machines := range shelf {
			if slices.ContainsFunc(machines, b.allowed.has) {
				return machines
			}
		}
	}
	return nil
}

// value finds the cheapest machine for a bulk from a place of the shelf on.
func (b *bulk) value(m *market, shelf []int, from int) {
	b.saves = math.Inf(-1)
	for b.at = from; b.at < len(shelf); b.at++ {
		mach := &m.machines[shelf[b.at]]
		if mach.price > 1.5*b.price {
			return
		}
		if b.allowed.has(shelf[b.at]) && mach.zones&b.zones != 0 && fits(b.need, mach.usable) {
			b.saves = b.price - mach.price
			return
		}
	}
}

// weighAlone finds out what the bulk saves by itself on a shelf, unless that is known.
func (b *bulk) weighAlone(m *market, shelf []int) {
	if len(shelf) == 0 || b.shelf == &shelf[0] {
		return
	}
	again := *b
	again.value(m, shelf, 0)
	b.alone, b.shelf = max(0, again.saves), &shelf[0]
}

// joint values two bulks together, of which only a gain that is higher than a given one is of interest: what they save
// less what each saves without the other.
func (b *bulk) joint(m *market, other *bulk, shelf []int, apart, least float64) (gain, saves float64, at int) {
	price, zones := b.price+other.price, b.zones&other.zones
	for at = b.at; at < len(shelf); at++ {
		i := shelf[at]
		mach := &m.machines[i]
		saves = price - mach.price
		if gain = saves - apart - other.alone; gain <= least || mach.price > 1.5*price {
			break
		}
		if b.allowed.has(i) && other.allowed.has(i) && mach.zones&zones != 0 && fitTogether(b.need, other.need, mach.usable) {
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
func (b *bulk) with(other *bulk) *bulk {
	sum := &bulk{sources: append(slices.Clip(b.sources), other.sources...), stand: b.stand, need: slices.Clone(b.need), allowed: b.allowed.clone(),
		zones: b.zones & other.zones, price: b.price + other.price, pods: b.pods + other.pods}
	take(sum.need, other.need, -1)
	sum.allowed.intersect(other.allowed)
	return sum
}

// gather replaces groups of nodes by single cheaper ones.
func (c *consolidation) gather(order []*candidate) {
	m := c.f.d.m
	var bulks []*bulk
	of := map[*candidate]*bulk{}
	for _, one := range order {
		if c.gone[one] || !one.known || c.verdicts[one].Cause != CauseRoom {
			continue
		}
		if b := c.f.bulkOf(one); b != nil {
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
		shelf := c.f.shelfFor(seed)
		seed.value(m, shelf, 0)
		if group := c.grow(seed, bulks, shelf); len(group.sources) > 1 && !c.merge(group) {
			vain++
		}
	}
}

// grow adds to a group, one by one, the nodes with which it saves the most, and returns the best group there was on the
// way. A second node may save nothing where a third does.
func (c *consolidation) grow(group *bulk, bulks []*bulk, shelf []int) *bulk {
	m := c.f.d.m
	found, most, apart := group, 0.0, max(0, group.saves)
	for vain := 0; vain < 2 && len(group.sources) < mostTogether; vain++ {
		var best *bulk
		gain, saves, at, tried := math.Inf(-1), 0.0, 0, 0
		for _, other := range bulks {
			one := other.sources[0]
			if tried == mostPartners {
				break
			}
			if c.gone[one] || slices.Contains(group.sources, one) || other.zones&group.zones == 0 || !other.allowed.intersects(group.allowed) || !c.affords(group, one) {
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
func (c *consolidation) affords(group *bulk, one *candidate) bool {
	n := 1
	for _, source := range group.sources {
		if source.node.Pool == one.node.Pool {
			n++
		}
	}
	return c.book.left(one.node.Pool, underutilized) >= n
}

// merge asks a fork whether a group works out, and says whether it does.
func (c *consolidation) merge(group *bulk) bool {
	nodes := make([]*Node, len(group.sources))
	for i, source := range group.sources {
		nodes[i] = source.node
	}
	found, _, _ := c.f.relocate(nodes, purchase{most: 1, terms: c.termsFor(group.sources)})
	if found == nil || len(found.claims) == 0 {
		return false
	}
	saves := group.price - found.price
	if why, _ := c.unworthy(group.sources, found, saves); why != "" {
		return false
	}
	claim := &found.claims[0]
	c.decide(group.sources, found, saves, fmt.Sprintf("one %s %s at $%.4f an hour takes the pods of %d nodes for $%.4f an hour less",
		claim.InstanceTypes[0], claim.CapacityType, claim.PricePerHour, len(group.sources), saves))
	return true
}
