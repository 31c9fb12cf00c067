package byhand

import "slices"

// divisible returns a price that no plan can undercut. It looks for prices of a core, a byte, a pod's place and a GPU at
// which no machine is worth more than it costs; what the batch is worth at such prices is a bound. The best of them solve a
// linear program with a row for each of the four.
func divisible(machines []*machine, pods []*pod) float64 {
	total := amounts{}
	for _, p := range pods {
		total = total.plus(p.asks)
	}
	var rows []int
	for i, amount := range total {
		if amount > 0 {
			rows = append(rows, i)
		}
	}
	// A column is what a dollar buys of each row, as a fraction of the whole batch.
	var columns [][]float64
	for _, m := range machines {
		column := make([]float64, len(rows))
		for i, row := range rows {
			column[i] = float64(max(0, m.free[row])) / float64(total[row]) / m.price
		}
		if slices.Max(column) > 0 {
			columns = append(columns, column)
		}
	}
	return worth(columns, len(rows))
}

// worth returns the greatest sum of non-negative prices for which no column is worth more than one. It repeatedly lowers the
// prices of the column that is worth the most (multiplicative weights). Every set of prices it tries gives a bound once it
// is scaled down to what is allowed.
func worth(columns [][]float64, rows int) float64 {
	prices := make([]float64, rows)
	for i := range prices {
		prices[i] = 1 / float64(rows)
	}
	best := 0.0
	for step := range 20_000 {
		dearest, value := 0, 0.0
		for c, column := range columns {
			sum := 0.0
			for i := range column {
				sum += prices[i] * column[i]
			}
			if sum > value {
				dearest, value = c, sum
			}
		}
		best = max(best, 1/value)
		rate, sum := 0.5/float64(step+10), 0.0
		for i := range prices {
			prices[i] = max(1e-12, prices[i]*(1-rate*columns[dearest][i]/value))
			sum += prices[i]
		}
		for i := range prices {
			prices[i] /= sum
		}
	}
	return best
}
