package solve

import (
	"cmp"
	"math"
	"slices"
)

// worthwhile is the merit that a load of the program has to have when it is made of pieces of their real size and within shares.
const worthwhile = 0.97

// again is the share of the worth that may be bought before what is left is valued anew, and revalued how often that
// is done. The first valuation looks long, for all the others only change the remainder.
const (
	again       = 0.4
	revalued    = 4
	quickRounds = 12
)

// guide buys by what pieces are worth: what the program wants in whole numbers, and then the load of the highest merit, one
// by one.
type guide struct {
	f     *filler
	loads []wanted
	// known is the best load of each machine when it was last looked for: its merit is an upper bound, since pieces only
	// become fewer. order has the machines by that.
	known []choice
	order []int
}

// guided is a packing by worth, with the duals of the program as worths, until so much is bought that the rest is better
// valued anew: few pieces that fill no machine are worth something else than many that do.
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

// guide takes the duals of a program as worths. No piece is worth nothing: it has to go somewhere.
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

// buyWhole buys what the program wants in whole numbers, with pieces of their real size.
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

// content is that of a load of the program with all demands of its rows: of each row, pieces of all sizes that are left.
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

// best is the load of the highest merit that can be made of what is left, or nil if nothing can be bought any more. The
// merit of a machine can only fall while pieces become fewer, so machines are looked at in the order of what they were worth
// last, and only until no other can be better.
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

// fullest is the load of the highest merit of some that a machine is filled with by turns.
func (g *guide) fullest(m int) choice {
	var best choice
	for how := scarce; how <= priced; how++ {
		best.consider(g.f.fill(m, how, nil))
	}
	best.consider(g.f.fill(m, scarce, g.f.fairShare(m)))
	return best
}
