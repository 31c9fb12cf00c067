package solve

import (
	"cmp"
	"math"
	"slices"
)

// guide buys by what pieces are worth: what the program wants in whole numbers, and then the load of the highest merit, one
// by one.
type guide struct {
	f       *filler
	program *program
	// known is the best load of each machine when it was last looked for: its merit is an upper bound, since pieces only
	// become fewer. order has the machines by that.
	known []choice
	order []int
}

// guided is a packing by worth.
func (s *solver) guided(rest *stock) *packing {
	g := &guide{f: newFiller(rest, s.rows, s.size), program: s.program, known: make([]choice, len(s.p.Machines))}
	g.value()
	result := &packing{rest: rest}
	loads := s.program.loads()
	for _, w := range loads {
		for range int(w.level + 1e-6) {
			l, _ := g.f.fill(w.load.Machine, biases[0], g.content(w.load))
			if l == nil {
				break
			}
			g.f.buy(result, l)
		}
	}
	for m := range g.known {
		g.known[m].merit = math.Inf(1)
		g.order = append(g.order, m)
	}
	for l := g.best(loads); l != nil; l = g.best(loads) {
		g.f.buy(result, l)
	}
	return result
}

// value takes the duals of the program as worths. No piece is worth nothing: it has to go somewhere.
func (g *guide) value() {
	least := math.Inf(1)
	for m := range g.f.p.Machines {
		least = min(least, g.f.p.Machines[m].priceIn(math.MaxUint64))
	}
	for r := range g.f.rows {
		g.f.worth[r] = max(g.program.dual[r], least*1e-4)
	}
	g.f.prices = g.program.f.prices
	copy(g.f.shadow, g.program.f.shadow)
	g.f.count()
}

// content is that of a load of the program with demands in place of rows: of each row, pieces of all sizes that are left.
func (g *guide) content(l *Load) []Count {
	var content []Count
	for _, c := range l.Content {
		var left []int
		for _, k := range g.f.rows[c.Demand].members {
			if g.f.stock.left[k] > 0 {
				left = append(left, k)
			}
		}
		used := min(c.N, len(left))
		for i := range used {
			content = append(content, Count{Demand: left[i*len(left)/used], N: (c.N + i) / used})
		}
	}
	return content
}

// best is the load of the highest merit that can be made of what is left, or nil if nothing can be bought any more. The
// merit of a machine can only fall while pieces become fewer, so machines are looked at in the order of what they were worth
// last, and only until no other can be better.
func (g *guide) best(loads []wanted) *Load {
	var best choice
	for _, w := range loads {
		if w.level-math.Floor(w.level+1e-6) > 1e-3 {
			best.consider(g.f.fill(w.load.Machine, biases[0], g.content(w.load)))
		}
	}
	slices.SortStableFunc(g.order, func(x, y int) int { return -cmp.Compare(g.known[x].merit, g.known[y].merit) })
	for _, m := range g.order {
		known := &g.known[m]
		if best.load != nil && known.merit <= best.merit*(1+1e-9) {
			break
		}
		if known.merit > 0 && (known.load == nil || !g.f.stock.covers(known.load)) {
			*known = g.fullest(m)
		}
		best.consider(known.load, known.merit)
	}
	return best.load
}

// fullest is the load of the highest merit of some that a machine is filled with by turns.
func (g *guide) fullest(m int) choice {
	var best choice
	for _, bias := range biases {
		best.consider(g.f.fill(m, bias, nil))
	}
	best.consider(g.f.fillPriced(m))
	best.consider(g.f.fill(m, biases[0], g.f.fairShare(m)))
	return best
}
