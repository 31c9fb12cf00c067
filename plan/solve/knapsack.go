package solve

import "math"

// The steps of the knapsack, which starts where it ended last time.
const (
	knapsackSteps = 40
	knapsackDecay = 0.85
)

// knapsack finds what a machine's room is worth to the rows that may use it. It returns the most worth that the machine
// could carry if pieces were divisible, with no more of a row than there is or than fits an empty machine. By duality,
// any prices for the room give an upper limit:
//
//	Σ price(d)·room(d) + Σ limit(k)·max(0, worth(k) − Σ price(d)·request(k,d))
//
// The limit is convex in the prices. Subgradient steps look for its minimum, starting from the prices found last time.
// The first step has the length stride, and each is shorter than the last by the factor decay. The best prices are
// kept.
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
