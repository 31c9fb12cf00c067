package solve

import (
	"cmp"
	"math"
	"slices"
)

// AlmostEqual is the fraction by which a plan may be dearer than the cheapest one and still count as costing the same.
const AlmostEqual = 0.008

// solver is a problem with everything that the ways to buy share.
type solver struct {
	p *Problem
	// size is the price of a piece of each demand if everything is divisible. options are the machines by price.
	size    []float64
	options []int
	rows    []row
	program *program
}

// Solve buys machines for all demands at the least price it finds. It leaves pieces that no machine or no budget
// allows.
func Solve(p *Problem) []Load {
	options := byPrice(p)
	if len(options) == 0 {
		return nil
	}
	size, _ := sizes(p, options)
	rows := rowsOf(p, size)
	s := &solver{p: p, size: size, options: options, rows: rows, program: programOf(p, rows, size, false)}
	s.program.solve(maxRounds)
	best := s.cheapest(false)
	if p.Without != Shares && concentrated(p, best) {
		spread := s.cheapest(true)
		if spread.rest.pieces <= best.rest.pieces && max(spread.total/best.total, spread.price/best.price) <= 1+AlmostEqual {
			best = spread
		}
	}
	return best.loads
}

// cheapest returns the cheapest packing of all ways to buy. With shared, no machine carries more than its share.
func (s *solver) cheapest(shared bool) *packing {
	all := s.packings(shared)
	best := all[0]
	for _, packed := range all[1:] {
		if packed.better(best) {
			best = packed
		}
	}
	if best = s.improvedOften(best); s.p.Follows || len(s.p.Budgets) > 0 || s.p.Without == Rehearse {
		return best // where a budget is short, nothing is left for a second round of machines
	}
	return s.rehearsed(all, best)
}

// packings returns the packings of all ways to buy, each load on the cheapest machine that holds it.
func (s *solver) packings(shared bool) []*packing {
	var all []*packing
	try := func(strategy Strategy, way func(rest *stock) *packing) {
		if s.p.Without == strategy {
			return
		}
		rest := newStock(s.p, shared)
		made := &packing{rest: rest}
		for _, l := range way(rest).loads {
			made.add(trimmed(rest.p, l, s.options))
		}
		all = append(all, made)
	}
	for _, often := range [...]int{revalued, 0} {
		try(ByWorth, func(rest *stock) *packing { return s.guided(rest, often) })
	}
	try(FirstFit, func(rest *stock) *packing { return firstFit(rest, rest.bySize(s.size), s.options) })
	for _, m := range fleets(s.p, s.options) {
		try(OneType, func(rest *stock) *packing { return firstFit(rest, rest.bySize(s.size), []int{m}) })
		for _, slack := range slacks {
			if !s.p.Follows {
				try(Fleets, func(rest *stock) *packing { return s.fleet(rest, m, slack) })
			}
		}
	}
	return all
}

// maxFleets is the number of machines that are tried as the only one.
const maxFleets = 6

// fleets returns the machines of which a fleet would be cheapest for all demands if pieces were divisible. Each has to
// be large enough for every demand.
func fleets(p *Problem, options []int) []int {
	asked := newStock(p, false).asked()
	price := make([]float64, len(p.Machines))
	var all []int
next:
	for _, m := range options {
		for k := range p.Demands {
			d := &p.Demands[k]
			if d.Pieces > 0 && !slices.ContainsFunc(d.Ways, func(w Way) bool { return w.Machines.Has(m) }) {
				continue next
			}
		}
		machines := 1.0
		for d, amount := range asked {
			if room := p.Machines[m].Room[d]; amount > 0 && room > 0 {
				machines = max(machines, float64(amount)/float64(room))
			}
		}
		price[m] = machines * p.Machines[m].priceIn(math.MaxUint64)
		all = append(all, m)
	}
	slices.SortStableFunc(all, func(x, y int) int { return cmp.Compare(price[x], price[y]) })
	return all[:min(len(all), maxFleets)]
}

// concentrated reports whether some machine carries more than its share.
func concentrated(p *Problem, packed *packing) bool {
	for i := range packed.loads {
		if p.Share > 0 && packed.loads[i].pieces() > p.Share {
			return true
		}
		for _, c := range packed.loads[i].Content {
			if share := p.Demands[c.Demand].Share; share > 0 && packed.loads[i].of(c.Demand) > share {
				return true
			}
		}
	}
	return false
}

// byPrice returns the machines that can be bought, the cheapest first.
func byPrice(p *Problem) []int {
	var options []int
	price := make([]float64, len(p.Machines))
	for m := range p.Machines {
		if price[m] = p.Machines[m].priceIn(math.MaxUint64); !math.IsInf(price[m], 1) {
			options = append(options, m)
		}
	}
	slices.SortStableFunc(options, func(x, y int) int { return cmp.Compare(price[x], price[y]) })
	return options
}

// sizes returns the price of a piece of each demand, in dollars per hour, if everything is divisible: its request at
// the prices that resources have in the cheapest mixture of machines. It also returns these prices.
func sizes(p *Problem, options []int) (size, prices []float64) {
	prices = resourcePrices(p, options, newStock(p, false).asked())
	size = make([]float64, len(p.Demands))
	for k := range p.Demands {
		for d, amount := range p.Demands[k].Request {
			size[k] += prices[d] * float64(amount)
		}
		size[k] = max(size[k], 1e-12)
	}
	return size, prices
}

// resourcePrices returns the duals of the cheapest mixture of machines that has all that is asked for.
func resourcePrices(p *Problem, options []int, asked []int64) []float64 {
	n := len(asked)
	lp := newSimplex(n, n)
	highest := p.Machines[options[len(options)-1]].priceIn(math.MaxUint64)
	// Everything is measured in what is asked for, so that all numbers are of similar size.
	for d := range n {
		if asked[d] > 0 {
			lp.level[d] = 1
			lp.charge(d, 1e6*highest)
		}
	}
	var columns []column
	for _, m := range options {
		c := column{price: p.Machines[m].priceIn(math.MaxUint64)}
		for d, amount := range asked {
			if room := p.Machines[m].Room[d]; amount > 0 && room > 0 {
				c.lines = append(c.lines, entry{d, float64(room) / float64(amount)})
			}
		}
		columns = append(columns, c)
	}
	for range 200 {
		best, gain := -1, 1e-9
		for i := range columns {
			if g := lp.carries(&columns[i])/columns[i].price - 1; g > gain {
				best, gain = i, g
			}
		}
		if best < 0 || !lp.enter(&columns[best]) {
			break
		}
		lp.discard()
	}
	prices := make([]float64, n)
	for d, amount := range asked {
		if amount > 0 {
			prices[d] = max(0, lp.dual[d]) / float64(amount)
		}
	}
	return prices
}
