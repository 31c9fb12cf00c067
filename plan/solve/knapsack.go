package solve

import "math"

// Steps of the knapsack, which starts where it ended the last time.
const (
	knapsackSteps = 40
	knapsackDecay = 0.85
)

// knapsack works out what a machine's room is worth to those who could use it, and returns the most worth the machine
// could carry were pieces divisible, no more of a demand than there are or than fit a machine to itself. By duality, any
// prices for the room give an upper limit:
//
//	Σ price(d)·room(d) + Σ limit(k)·max(0, worth(k) − Σ price(d)·request(k,d))
//
// It is convex in the prices. Subgradient steps, each shorter than the last by the factor decay, look for the least value,
// from the prices found last time on, the first of the given length. The best prices are kept.
func (f *filler) knapsack(machine int, stride float64, steps int, decay float64) float64 {
	room := f.p.Machines[machine].Room
	if f.prices[machine] == nil {
		f.prices[machine] = make([]float64, len(room))
	}
	prices := f.prices[machine]
	has, at, gradient := f.scratch.knapsack[0], f.scratch.knapsack[1], f.scratch.knapsack[2]
	for d, amount := range room {
		has[d], at[d] = float64(max(0, amount)), prices[d]
	}
	least := math.Inf(1)
	for range steps {
		value := 0.0
		for d := range has {
			gradient[d] = has[d]
			value += at[d] * has[d]
		}
		for j, r := range f.members[machine] {
			row := &f.rows[r]
			surplus := f.worth[r]
			for d, amount := range row.request {
				surplus -= at[d] * float64(amount)
			}
			if surplus <= 0 {
				continue
			}
			most := float64(min(f.left[r], f.fits[machine][j]))
			value += most * surplus
			for d, amount := range row.request {
				gradient[d] -= most * float64(amount)
			}
		}
		if value < least {
			least = value
			copy(prices, at)
		}
		// Each dimension is measured in machines, so that a step means the same in all of them.
		length := 0.0
		for d, amount := range has {
			if amount > 0 {
				gradient[d] /= amount
				length += gradient[d] * gradient[d]
			}
		}
		if length == 0 {
			break
		}
		length = math.Sqrt(length)
		for d, amount := range has {
			if amount > 0 {
				at[d] = max(0, at[d]-stride*gradient[d]/length/amount)
			}
		}
		stride *= decay
	}
	return least
}
