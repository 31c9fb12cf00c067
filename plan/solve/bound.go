package solve

import "math"

// LowerBound returns a price that no purchase for all demands can undercut, in dollars per hour, as long as the budgets
// do not matter.
//
// The worths of the linear program would be such a bound if no load at all were worth more than its machine costs. That
// is true of the loads that were tried, but there are others. So each machine gets a limit that no load can exceed: the
// value of its knapsack when pieces are divisible, or that of the best load if a search completes. The worths are
// scaled down until every limit is within its price (Farley, "A note on bounding a class of linear programming
// problems", 1990).
//
// Where demands are grouped into rows, each counts as if it were its row's smallest.
func LowerBound(p *Problem) float64 {
	options := byPrice(p)
	if len(options) == 0 {
		return 0
	}
	size, prices := sizes(p, options)
	highest := divisible(p, size, prices)
	relaxed := *p
	relaxed.Budgets = nil
	relaxed.Machines = append([]Machine(nil), p.Machines...)
	for m := range relaxed.Machines {
		relaxed.Machines[m].Takes = nil
	}
	rows := rowsOf(&relaxed, size)
	for i := range rows {
		rows[i].request = rows[i].least
	}
	program := programOf(&relaxed, rows, size, false)
	f := program.f
	for range maxProofs {
		program.solve(provingRounds)
		for r := range f.rows {
			f.worth[r] = max(0, program.dual[r])
		}
		scale := 1.0
		improved := false
		var better []column
		for m := range relaxed.Machines {
			price := relaxed.Machines[m].priceIn(math.MaxUint64)
			limit, found := f.heaviest(m, 3000, 0.997, provingBranches)
			if limit > 0 && !math.IsInf(price, 1) {
				scale = min(scale, price/limit)
			}
			if found != nil {
				l := Load{Machine: m, Zones: relaxed.Machines[m].zones(), Content: found, Price: price}
				better = append(better, program.column(&l))
			}
		}
		if highest = max(highest, scale*f.total()); program.cost() <= highest*closeEnough {
			break
		}
		for i := range better {
			improved = program.carries(&better[i]) > better[i].price*enough && program.enter(&better[i]) || improved
		}
		if !improved {
			break
		}
	}
	return highest
}

// divisible returns the bound for divisible pieces: the cost of all of them at resource prices at which no machine's
// room is worth more than the machine costs.
func divisible(p *Problem, size, prices []float64) float64 {
	sum, scale := 0.0, 1.0
	for m := range p.Machines {
		worth := 0.0
		for d, amount := range p.Machines[m].Room {
			worth += prices[d] * float64(max(0, amount))
		}
		if worth > 0 {
			scale = min(scale, p.Machines[m].priceIn(math.MaxUint64)/worth)
		}
	}
	for k := range p.Demands {
		sum += size[k] * float64(p.Demands[k].Pieces)
	}
	return sum * scale
}

// Limits on the effort that a proof is worth.
const (
	provingRounds = 100
	maxProofs     = 60
	// closeEnough is how near the bound has to come to the cost of the program.
	closeEnough     = 1.002
	provingBranches = 400_000
)
