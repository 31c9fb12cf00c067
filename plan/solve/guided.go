package solve

import (
	"cmp"
	"math"
	"slices"
)

// packing is machines that are bought, and what could not be bought for.
type packing struct {
	loads []Load
	// left is how many pieces have no machine.
	left int
	// price is the sum of the loads', total what is expected in the end.
	price, total float64
}

func (p *packing) add(l Load) {
	p.loads = append(p.loads, l)
	p.price += l.Price
}

// better says that a packing serves more, or costs less in the end, or as much on fewer machines.
func (p *packing) better(other *packing) bool {
	if p.left != other.left {
		return p.left < other.left
	}
	if p.total < other.total-1e-9 || p.total > other.total+1e-9 {
		return p.total < other.total
	}
	return len(p.loads) < len(other.loads)
}

// again is the share of the worth that may be bought before what is left is valued anew, and revaluations how often that
// is done. The first valuation looks long, for all the others only change the remainder.
const (
	again        = 0.4
	revaluations = 4
	quickRounds  = 12
	// representative is how much a load is preferred that leaves the rest in the same proportions as before.
	representative = 1.004
	// worthwhile is the part of its price that a load of the program has to carry, filled with pieces of their real size.
	worthwhile = 0.97
)

// guide buys by what pieces are worth: what the program wants in whole numbers, and then the load of the highest merit, one
// by one, until so much is gone that the rest is better valued anew: few pieces that fill no machine are worth something else
// than many that do.
type guide struct {
	p    *Problem
	size []float64
	// whole is the program for all there is to buy; the others follow from it.
	whole *program
	rows  []row
	f     *filler
	// known is the best load of each machine by the present worths, when it was last looked for, and merit its worth for
	// each dollar: an upper bound for as long as pieces only become fewer.
	known []*Load
	merit []float64
	order []int
}

// valued solves the program for what is in stock.
func valued(p *Problem, s *stock, size []float64, rounds int) (*program, []row) {
	program, rows := programFor(p, s, size)
	program.solve(rounds)
	return program, rows
}

// revalued solves the program for what is left in stock, quickly: where each row is one demand, it begins with the loads that
// the program before has found.
func (g *guide) revalued(before *program, s *stock) *program {
	program, rows := programFor(g.p, s, g.size)
	if !g.condensed() {
		place := map[int]int{}
		for r := range rows {
			place[rows[r].members[0]] = r
		}
		for i := range before.pool {
			l := *before.pool[i].load
			var content []Count
			for _, c := range l.Content {
				if r, left := place[g.rows[c.Demand].members[0]]; left {
					content = append(content, Count{Demand: r, Way: c.Way, N: min(c.N, rows[r].pieces)})
				}
			}
			if l.Content = content; len(content) > 0 {
				program.pool = append(program.pool, program.column(&l))
			}
		}
	}
	program.solve(quickRounds)
	g.rows = rows
	return program
}

// programFor is the program for what is in stock, not solved yet, and its rows.
func programFor(p *Problem, s *stock, size []float64) (*program, []row) {
	rest := remainder(p, s)
	rows := rowsOf(rest, size)
	q := condensed(rest, rows)
	single, ones := singles(q)
	own := newStock(q)
	copy(own.budgets, s.budgets)
	own.shared = s.shared
	return newProgram(newFiller(q, single, own, ones)), rows
}

// remainder is the problem with what is left in stock.
func remainder(p *Problem, s *stock) *Problem {
	rest := *p
	rest.Demands = slices.Clone(p.Demands)
	for k := range rest.Demands {
		rest.Demands[k].Pieces = s.left[k]
		if s.lots[k] != nil {
			rest.Demands[k].Lots = s.lots[k]
		}
	}
	return &rest
}

// guided is a packing by worth.
func guided(p *Problem, s *stock, size []float64, first *program, rows []row) *packing {
	g := &guide{p: p, size: size, whole: first, rows: rows}
	result := &packing{}
	program, valuedAt := first, 0.0
	for valuations := 0; ; valuations++ {
		if valuations > 0 {
			program = g.revalued(program, s)
		}
		g.f = newFiller(p, g.rows, s, size)
		g.value(program)
		valuedAt = g.f.total()
		loads := program.loads()
		g.buyWhole(result, loads)
		g.known = nil
		for {
			if valuations < revaluations && g.f.total() < (1-again)*valuedAt && s.pieces > 0 {
				break
			}
			l := g.best(loads)
			if l == nil {
				result.left = s.pieces
				return result
			}
			g.buy(result, l, math.MaxInt32)
		}
	}
}

// value takes the duals of a program as worths. No piece is worth nothing: it has to go somewhere.
func (g *guide) value(program *program) {
	least := math.Inf(1)
	for m := range g.p.Machines {
		least = min(least, g.p.Machines[m].priceIn(math.MaxUint64))
	}
	for r := range g.rows {
		g.f.worth[r] = max(program.dual[r], least*1e-4)
		g.f.prices = program.f.prices
	}
	copy(g.f.shadow, program.f.shadow)
	g.f.count()
}

// buyWhole buys what the program wants in whole numbers, with pieces of their real size.
func (g *guide) buyWhole(result *packing, loads []wanted) {
	for _, w := range loads {
		copies := int(w.level + 1e-6)
		if !g.condensed() {
			l := *w.load
			l.Content = slices.Clone(l.Content)
			for i := range l.Content {
				l.Content[i].Demand = g.rows[l.Content[i].Demand].members[0]
			}
			g.buy(result, &l, copies)
			continue
		}
		for range copies {
			l, value := g.f.fill(w.load.Machine, biases[0], g.typical(w.load))
			if l == nil || g.f.stock.affordable(w.load.Machine) == 0 || value < worthwhile*g.f.cost(l.Machine, l.Zones) {
				break
			}
			g.buy(result, l, 1)
		}
	}
}

// condensed says that some row is more than one demand.
func (g *guide) condensed() bool {
	return slices.ContainsFunc(g.rows, func(r row) bool { return len(r.members) > 1 })
}

// typical is the content of a load of the program with demands in place of rows: of each row, pieces of all sizes.
func (g *guide) typical(l *Load) []Count {
	var content []Count
	for _, c := range l.Content {
		r := &g.rows[c.Demand]
		var left []int
		for _, k := range r.members {
			if g.f.stock.left[k] > 0 {
				left = append(left, k)
			}
		}
		for i := range min(c.N, len(left)) {
			content = append(content, Count{Demand: left[i*len(left)/min(c.N, len(left))], N: 1})
		}
	}
	return content
}

// buy decides for a load as often as wanted, as its content is there and as the budgets allow.
func (g *guide) buy(result *packing, l *Load, copies int) {
	s := g.f.stock
	for range copies {
		if s.affordable(l.Machine) == 0 || slices.ContainsFunc(l.Content, func(c Count) bool { return c.N > s.most(c.Demand) }) {
			break
		}
		one := *l
		one.Content = slices.Clone(l.Content)
		s.buy(&one)
		result.add(one)
	}
	g.f.count()
}

// tooMuch says that a load holds more of a demand than one machine may take of what is left.
func (g *guide) tooMuch(l *Load) bool {
	return slices.ContainsFunc(l.Content, func(c Count) bool { return c.N > g.f.stock.most(c.Demand) })
}

// best is the load of the highest merit that can be made of what is left, or nil if nothing can be bought any more. The
// merit of a machine can only fall while the worths stay and pieces become fewer, so machines are looked at in the order of
// what they were worth last, and only until no other can be better.
func (g *guide) best(loads []wanted) *Load {
	f := g.f
	var best *Load
	highest := 0.0
	consider := func(l *Load, merit float64) {
		if l != nil && (best == nil || merit > highest*(1+1e-9)) {
			best, highest = l, merit
		}
	}
	if g.known == nil {
		g.known, g.merit, g.order = make([]*Load, len(g.p.Machines)), make([]float64, len(g.p.Machines)), nil
		for m := range g.merit {
			g.merit[m] = math.Inf(1)
			g.order = append(g.order, m)
		}
	}
	if !g.condensed() {
		for _, w := range loads {
			if m := w.load.Machine; w.level-math.Floor(w.level+1e-6) > 1e-3 && g.open(m) {
				content := slices.Clone(w.load.Content)
				for i := range content {
					content[i].Demand = g.rows[content[i].Demand].members[0]
				}
				consider(g.rated(f.fill(m, biases[0], content)))
			}
		}
	}
	slices.SortStableFunc(g.order, func(x, y int) int { return -cmp.Compare(g.merit[x], g.merit[y]) })
	for _, m := range g.order {
		if best != nil && g.merit[m] <= highest*(1+1e-9) {
			break
		}
		if !g.open(m) {
			continue
		}
		if g.known[m] == nil && g.merit[m] > 0 || g.known[m] != nil && g.tooMuch(g.known[m]) {
			g.known[m], g.merit[m] = g.fullest(m)
		}
		consider(g.known[m], g.merit[m])
	}
	return best
}

// open says that a machine can be bought, and that somebody is left who could use it.
func (g *guide) open(m int) bool {
	return g.f.stock.affordable(m) > 0 && slices.ContainsFunc(g.f.members[m], func(r int) bool { return g.f.left[r] > 0 })
}

// rated weighs what a load carries against its cost.
func (g *guide) rated(l *Load, value float64) (*Load, float64) {
	if l == nil {
		return nil, 0
	}
	return l, value / g.f.cost(l.Machine, l.Zones)
}

// fullest fills a machine by turns and returns the load of the highest merit.
func (g *guide) fullest(m int) (*Load, float64) {
	var best *Load
	highest := 0.0
	consider := func(l *Load, merit float64) {
		if l != nil && (best == nil || merit > highest) {
			best, highest = l, merit
		}
	}
	for _, bias := range biases {
		consider(g.rated(g.f.fill(m, bias, nil)))
	}
	if !g.condensed() {
		g.f.knapsack(m, knapsackSteps, knapsackDecay)
	}
	if g.f.prices[m] != nil {
		consider(g.rated(g.f.fillPriced(m)))
	}
	l, merit := g.rated(g.f.fill(m, biases[0], g.f.fairShare(m)))
	consider(l, merit*representative)
	return best, highest
}
