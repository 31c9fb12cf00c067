package solve

import (
	"cmp"
	"math"
	"slices"
)

// worthwhile is the merit that a load of the program must still have when it is made of pieces of their real size and
// within shares.
const worthwhile = 0.97

// again is the share of the total worth that is bought before what is left is valued anew, and revalued is how often
// that happens. The first valuation takes long, because all others only change the remainder.
const (
	again       = 0.4
	revalued    = 4
	quickRounds = 12
)

// guide buys by the worth of pieces: first the whole-number part of what the program wants, then the load of the
// highest merit, one at a time.
type guide struct {
	f     *filler
	loads []wanted
	// known is the best load of each machine when it was last computed. Its merit is an upper bound, because pieces
	// only become fewer. order lists the machines by that bound.
	known []choice
	order []int
}

// guided returns a packing by worth, with the duals of the program as worths. When a share of the worth is bought, it
// values the rest anew, up to revaluations times: a few pieces that fill no machine are not worth the same as many that
// do.
func (s *solver) guided(rest *stock, revaluations int) *packing {
	result := &packing{rest: rest}
	program, rows := s.program, s.rows
	for valued := 0; ; valued++ {
		g := s.guide(program, newFiller(rest, rows, s.size))
		enough := 0.0
		if valued < revaluations {
			enough = (1 - again) * g.f.total()
		}
		g.buyWhole(result)
		for rest.pieces > 0 && g.f.total() >= enough {
			l := g.best()
			if l == nil {
				return result
			}
			g.f.buy(result, l)
		}
		if rest.pieces == 0 {
			return result
		}
		remainder := rest.problem()
		rows = rowsOf(remainder, s.size)
		program = programOf(remainder, rows, s.size, rest.shared)
		program.solve(quickRounds)
	}
}

// guide takes the duals of a program as worths. No piece is worth nothing, because it has to go somewhere.
func (s *solver) guide(program *program, f *filler) *guide {
	least := s.p.Machines[s.options[0]].priceIn(math.MaxUint64)
	for r := range f.rows {
		f.worth[r] = max(program.dual[r], least*1e-4)
	}
	f.prices, f.shadow = program.f.prices, program.f.shadow
	f.count()
	g := &guide{f: f, loads: program.loads(), known: make([]choice, len(s.p.Machines))}
	for m := range g.known {
		g.known[m].merit = math.Inf(1)
		g.order = append(g.order, m)
	}
	return g
}

// buyWhole buys the whole-number part of what the program wants, with pieces of their real size.
func (g *guide) buyWhole(result *packing) {
	for _, w := range g.loads {
		for range int(w.level + 1e-6) {
			l, merit := g.f.fill(w.load.Machine, scarce, g.content(w.load))
			if l == nil || merit < worthwhile {
				break
			}
			g.f.buy(result, l)
		}
	}
}

// content returns the content of a load of the program, spread over the demands of its rows that are left, so that each
// row contributes pieces of all sizes.
func (g *guide) content(l *Load) []Count {
	var content []Count
	for _, c := range l.Content {
		var left []int
		for _, k := range g.f.rows[g.f.home[c.Demand]].members {
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

// best returns the load of the highest merit that can be made of what is left, or nil if nothing can be bought. The
// merit of a machine can only fall as pieces become fewer. So machines are tried in the order of their last merit, and
// only until no other can be better.
func (g *guide) best() *Load {
	var best choice
	for _, w := range g.loads {
		if w.level-math.Floor(w.level+1e-6) > 1e-3 {
			best.consider(g.f.fill(w.load.Machine, scarce, g.content(w.load)))
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

// fullest returns the load of the highest merit among those that the different manners make for a machine.
func (g *guide) fullest(m int) choice {
	var best choice
	for how := scarce; how <= priced; how++ {
		best.consider(g.f.fill(m, how, nil))
	}
	best.consider(g.f.fill(m, scarce, g.f.fairShare(m)))
	return best
}
