package plan

import (
	"math"
	"slices"
)

// growth is a group that was grown from a node, and what that depends on: the bulks before a place of their order, and what
// was found to be worth it at what the cluster cost.
type growth struct {
	nodes []*Node
	seen  int
	worth []worth
}

// worth is whether a saving was worth taking away nodes of this price, whose pods cost so much to evict.
type worth struct {
	price, cost, saves float64
	is                 bool
}

// growths remembers what groups were grown from which nodes, where budgets are no matter. The
// partners that are tried are the first of an order, so that most of the cluster has no part in it.
type growths struct {
	known map[*Node]*growth
	// order are the bulks that groups were grown of, same how many of the first are what they were before.
	order []grown
	same  int
	// recalls says that what is known may be used, and is to be kept: nothing was decided since there were so many commands.
	recalls  bool
	commands int
	// recalled is how many groups were taken from memory.
	recalled int
	// of are the bulks by their nodes, and seen and worth what the group depends on that is being grown.
	of    map[*Node]*bulk
	seen  int
	worth []worth
}

// grown is a bulk as groups were grown of it; without a node if it is not what it was.
type grown struct {
	node     *Node
	price    float64
	expected bool
}

// renew forgets what depends on nodes that have changed.
func (g *growths) renew(c *change) {
	for n := range g.known {
		if !c.keeps(n) {
			delete(g.known, n)
		}
	}
	for i := range g.order {
		if n := g.order[i].node; n != nil && !c.keeps(n) {
			g.order[i].node = nil
		}
	}
}

// beginGrowing compares the bulks with those before.
func (c *consolidation) beginGrowing(bulks []*bulk) *growths {
	g := &growths{}
	if c.answers != nil {
		g = c.answers.growths
	}
	spare := func(b *bulk) bool { return c.book.left(b.sources[0].node.Pool, underutilized) >= mostTogether }
	g.commands, g.recalled = len(c.commands), 0
	g.recalls = c.answers != nil && !slices.ContainsFunc(bulks, func(b *bulk) bool { return !spare(b) })
	if !g.recalls {
		return g
	}
	order := make([]grown, len(bulks))
	g.of, g.same = make(map[*Node]*bulk, len(bulks)), 0
	for i, b := range bulks {
		_, expected := b.stand.expects()
		order[i] = grown{b.sources[0].node, b.price, expected}
		g.of[b.sources[0].node] = b
		if g.same == i && i < len(g.order) && g.order[i] == order[i] {
			g.same++
		}
	}
	if g.same == len(order) && len(order) == len(g.order) {
		g.same++ // nor does another follow
	}
	if g.known == nil {
		g.known = map[*Node]*growth{}
	}
	for n, known := range g.known {
		if known.seen > g.same {
			delete(g.known, n)
		}
	}
	g.order = order
	return g
}

// groupFrom is the group that is grown from a bulk, be it from memory.
func (c *consolidation) groupFrom(seed *bulk, bulks []*bulk, shelf []int, g *growths) *bulk {
	g.recalls = g.recalls && len(c.commands) == g.commands
	if !g.recalls {
		return c.grow(seed, bulks, shelf, g)
	}
	n := seed.sources[0].node
	if known := g.known[n]; known != nil && !slices.ContainsFunc(known.worth, func(w worth) bool { return c.pays(w.price, w.cost, w.saves) != w.is }) {
		g.recalled++
		group := &bulk{sources: seed.sources, price: seed.price}
		for _, other := range known.nodes[1:] {
			b := g.of[other]
			group.sources, group.price = append(slices.Clip(group.sources), b.sources...), group.price+b.price
		}
		return group
	}
	g.seen, g.worth = 0, nil
	group := c.grow(seed, bulks, shelf, g)
	known := &growth{seen: g.seen, worth: g.worth}
	for _, source := range group.sources {
		known.nodes = append(known.nodes, source.node)
	}
	g.known[n] = known
	return group
}

// asksWorth is worth, and remembers what was asked.
func (c *consolidation) asksWorth(group *bulk, g *growths) bool {
	price, cost := measure(group.sources)
	is := c.pays(price, cost, group.saves)
	if g.recalls {
		g.worth = append(g.worth, worth{price, cost, group.saves, is})
	}
	return is
}

// looked notes that the bulks before a place were looked at; all of them, and that there are no more, at the end.
func (g *growths) looked(place, all int) {
	if place == all {
		place = math.MaxInt
	}
	g.seen = max(g.seen, min(place, all+1))
}
