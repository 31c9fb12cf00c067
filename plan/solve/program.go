package solve

import (
	"cmp"
	"math"
	"slices"
)

// What is one pod worth? The cheapest way to serve a batch is the solution of
//
//	minimize   Σ price(l)·x(l)              over all loads l that fit a machine
//	subject to Σ count(l,k)·x(l) = n(k)     for every row k
//	           Σ takes(l,b)·x(l) ≤ budget(b) for every budget b
//
// (Gilmore and Gomory, "A linear programming approach to the cutting-stock problem", 1961). There are far too many
// loads to list, so they are generated. The duals of the loads known so far give the worth of a piece of each row, and
// of a unit of each budget. Filling the machines by that worth finds loads that carry more than they cost. These enter
// the program and the worths fall, until no machine can be filled with more worth than its price.
//
// The program starts with a column for each row that serves nothing, at a price no machine comes near, so that there is
// a solution even if a budget is too small for everything.

// program is the linear program: one line for each row, then one for each budget.
type program struct {
	simplex
	f    *filler
	pool []column
	// steps is the number of columns that may still enter.
	steps int
	// converged says that no load is known to be missing.
	converged bool
	// bound is the highest lower bound on the cost that the program has proven; zero while budgets are short.
	bound float64
}

// Limits on the work: rounds of filling all machines, and steps times the square of the lines.
const (
	maxRounds = 60
	maxWork   = 1 << 26
	// Rounds of searching when filling finds nothing more, and branches each search may take.
	maxSearches = 6
	maxBranches = 600
	// enough is how much more than its price a load must carry to be worth another step.
	enough = 1.002
	// smoothing is the weight of the previous round's worths.
	smoothing = 0.5
	// offered is the number of machines filled in one round: those that promise most.
	offered = 12
	// near is how close to the proven bound the program has to come.
	near = 1.004
	// unserved is how many times the price of its cheapest machine it costs to leave a piece unserved.
	unserved = 1000
)

// newProgram returns a program in which nothing is served.
func newProgram(f *filler) *program {
	n := len(f.rows) + len(f.stock.budgets)
	p := &program{simplex: newSimplex(len(f.rows), n), f: f}
	f.count()
	for b, amount := range f.stock.budgets {
		p.level[p.rows+b] = float64(max(0, amount))
	}
	for r := range f.rows {
		p.level[r] = float64(f.left[r])
		if l := p.alone(r); l != nil {
			p.charge(r, unserved*l.Price/float64(l.Content[0].N))
			p.pool = append(p.pool, p.column(l))
		}
	}
	return p
}

// alone returns the load of a row by itself that is cheapest per piece; nil if nothing may be bought for it.
func (p *program) alone(r int) *Load {
	var best *Load
	cheapest := math.Inf(1)
	for m := range p.f.p.Machines {
		if !p.f.rows[r].users.Has(m) {
			continue
		}
		mach := &p.f.p.Machines[m]
		// Room limits the number of pieces. Whether they may be there is worth asking only if the load could be the
		// cheapest.
		n := min(p.f.left[r], Times(p.f.rows[r].request, mach.Room))
		price := mach.priceIn(math.MaxUint64)
		if n == 0 || price/float64(n) >= cheapest || p.f.stock.affordable(m) == 0 {
			continue
		}
		t := p.f.begin(m)
		t.put(p.f.rows[r].members[0], n)
		if l, _ := t.done(); l != nil && l.Price/float64(l.Content[0].N) < cheapest {
			best, cheapest = l, l.Price/float64(l.Content[0].N)
		}
	}
	return best
}

func (p *program) column(l *Load) column {
	c := column{load: l, price: l.Price}
	for _, count := range l.Content {
		c.lines = append(c.lines, entry{p.f.home[count.Demand], float64(count.N)})
	}
	for _, t := range p.f.p.Machines[l.Machine].Takes {
		c.lines = append(c.lines, entry{p.rows + t.Budget, float64(t.Amount)})
	}
	return c
}

// solve generates loads until none is worth its step, or the work becomes too much. The duals swing wildly at first, so
// loads are sought halfway between them and the previous round's worths (Neame, "Nonsmooth dual methods in integer
// programming", 1999).
func (p *program) solve(rounds int) {
	smooth, searches := false, maxSearches
	p.steps = maxWork / max(1, p.lines*p.lines)
	for p.enterAll(p.pool) {
		p.discard()
	}
	for range rounds {
		p.discard()
		for r := range p.rows {
			worth := max(0, p.dual[r])
			if smooth {
				worth = smoothing*p.f.worth[r] + (1-smoothing)*worth
			}
			p.f.worth[r] = worth
		}
		short := p.shadows()
		loads, scale := p.offers()
		if !short {
			p.bound = max(p.bound, scale*p.f.total())
		}
		if !short && p.cost() <= p.bound*near {
			p.converged = true
			return
		}
		p.pool = append(p.pool, loads...)
		stepped := p.enterAll(loads)
		for stepped && p.enterAll(p.pool) {
			// Loads of earlier rounds cost nothing to find.
		}
		if !stepped && !smooth && searches > 0 && p.f.p.Without != Search {
			searches--
			stepped = p.enterAll(p.searched())
		}
		if p.steps == 0 {
			return
		}
		if !stepped && !smooth {
			p.converged = true
			return
		}
		smooth = stepped && !short
	}
}

// shadows reads the worth of a unit of each budget from the duals, and reports whether any budget is short.
func (p *program) shadows() bool {
	short := false
	for b := range p.f.shadow {
		p.f.shadow[b] = max(0, -p.dual[p.rows+b])
		short = short || p.f.shadow[b] > 1e-12
	}
	return short
}

// searched returns loads that simple filling does not find: a few large pieces on a machine have to be combined with
// care.
func (p *program) searched() []column {
	var columns []column
	for m := range p.f.p.Machines {
		_, found := p.f.heaviest(m, knapsackSteps, knapsackDecay, maxBranches)
		if found == nil {
			continue
		}
		// The search looks at room alone; filling knows zones and kinds as well.
		t := p.f.begin(m)
		for _, c := range found {
			t.put(c.Demand, c.N)
		}
		if l, _ := t.done(); l != nil {
			columns = append(columns, p.column(l))
		}
	}
	p.pool = append(p.pool, columns...)
	return columns
}

// enterAll brings the columns that are worth a step into the basis, and reports whether there were any.
func (p *program) enterAll(columns []column) bool {
	entered := false
	for i := range columns {
		c := &columns[i]
		if p.steps > 0 && p.carries(c) > c.price+(enough-1)*c.load.Price && p.enter(c) {
			entered = true
			p.steps--
		}
	}
	return entered
}

// offers fills the machines that promise most at the present worths. It returns the loads, the most profitable first,
// and the factor that scales the worths so that no load of any machine can carry more than its price.
func (p *program) offers() (columns []column, scale float64) {
	f := p.f
	promise, order := make([]float64, len(f.p.Machines)), make([]int, 0, len(f.p.Machines))
	scale = math.Inf(1)
	for m := range f.p.Machines {
		if len(f.members[m]) == 0 || f.stock.affordable(m) == 0 {
			continue
		}
		stride, steps, decay := f.p.Machines[m].priceIn(math.MaxUint64), knapsackSteps, knapsackDecay
		if f.prices[m] != nil {
			stride, steps, decay = stride*0.1, 4, 0.5 // the worths have changed a little
		}
		promise[m] = f.knapsack(m, stride, steps, decay) / f.cost(m, math.MaxUint64)
		order = append(order, m)
		if promise[m] > 0 {
			scale = min(scale, 1/promise[m])
		}
	}
	if math.IsInf(scale, 1) {
		return nil, 0
	}
	slices.SortStableFunc(order, func(x, y int) int { return -cmp.Compare(promise[x], promise[y]) })
	var loads []choice
	for _, m := range order[:min(offered, len(order))] {
		if promise[m] <= 1 {
			break
		}
		var best choice
		best.consider(f.fill(m, priced, nil))
		best.consider(f.fill(m, scarce, nil))
		if best.load != nil {
			loads = append(loads, best)
		}
	}
	slices.SortStableFunc(loads, func(x, y choice) int { return -cmp.Compare(x.merit, y.merit) })
	for _, l := range loads {
		columns = append(columns, p.column(l.load))
	}
	return columns, scale
}

// wanted is a load of the solution, and how often the solution buys it.
type wanted struct {
	load  *Load
	level float64
}

// loads returns the loads of the solution, those bought most often first.
func (p *program) loads() []wanted {
	var all []wanted
	for i, level := range p.level {
		if p.basis[i].load != nil && level > 1e-6 {
			all = append(all, wanted{p.basis[i].load, level})
		}
	}
	slices.SortStableFunc(all, func(x, y wanted) int { return -cmp.Compare(x.level, y.level) })
	return all
}
