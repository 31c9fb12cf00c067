package plan

import (
	"cmp"
	"math"
	"slices"
)

// knapsack works out what a good's room is worth to those who could use it, and returns the most worth the good could
// carry were pods divisible, no more of an item than there are or than fit a machine to itself. By duality, any prices
// for the room give an upper limit:
//
//	Σ price(d)·room(d) + Σ limit(k)·max(0, worth(k) − Σ price(d)·request(k,d))
//
// It is convex in the prices. Subgradient steps, each shorter than the last by the factor decay, look for the least
// value, from the prices found last time on. The best prices are left in the good.
func (b *buyer) knapsack(g *good, steps int, decay float64) float64 {
	return b.descend(g, g.price, steps, decay)
}

// limit is knapsack in little time, for worths that have changed a little: it goes on from the prices found last, which
// for a new good are those of the good looked at before.
func (b *buyer) limit(g *good) float64 {
	if g.prices != nil {
		return b.descend(g, g.price*0.1, 4, 0.5)
	}
	return b.descend(g, g.price, knapsackSteps, knapsackDecay)
}

// descend takes the steps, the first of the given length.
func (b *buyer) descend(g *good, stride float64, steps int, decay float64) float64 {
	if g.prices == nil {
		g.prices = make([]float64, len(g.room))
	}
	room, at, gradient := b.scratch.room, b.scratch.at, b.scratch.gradient
	for i, d := range b.dims {
		room[i] = float64(max(0, g.room[d]))
		at[i] = g.prices[d]
	}
	least := math.Inf(1)
	for range steps {
		value := 0.0
		for d := range room {
			gradient[d] = room[d]
			value += at[d] * room[d]
		}
		for j, k := range g.members {
			surplus := b.worth[k]
			request := b.request(k)
			for d, amount := range request {
				surplus -= at[d] * amount
			}
			if surplus <= 0 {
				continue
			}
			limit := float64(min(b.left[k], g.fit[j]))
			value += limit * surplus
			for d, amount := range request {
				gradient[d] -= limit * amount
			}
		}
		if value < least {
			least = value
			for i, d := range b.dims {
				g.prices[d] = at[i]
			}
		}
		// Each dimension is measured in machines, so that a step means the same in all of them.
		length := 0.0
		for d := range room {
			if room[d] > 0 {
				gradient[d] /= room[d]
				length += gradient[d] * gradient[d]
			}
		}
		if length == 0 {
			break
		}
		length = math.Sqrt(length)
		for d := range room {
			if room[d] > 0 {
				at[d] = max(0, at[d]-stride*gradient[d]/length/room[d])
			}
		}
		stride *= decay
	}
	return least
}

// fillPriced loads one good in a single pass: items in the order of what they are worth for the room they take at the
// knapsack's prices, as many of each as fit.
func (b *buyer) fillPriced(g *good) *load {
	f := b.newFilling(g)
	order, ratio := b.scratch.candidates[:0], b.scratch.factors
	for _, k := range g.members {
		if b.left[k] == 0 {
			continue
		}
		cost := 0.0
		for i, amount := range b.request(k) {
			cost += g.prices[b.dims[i]] * amount
		}
		ratio[k] = b.worth[k] / (cost + 1e-12)
		order = append(order, k)
	}
	b.scratch.candidates = order
	slices.SortStableFunc(order, func(x, y int) int { return -cmp.Compare(ratio[x], ratio[y]) })
	for _, k := range order {
		f.put(k, b.left[k])
	}
	return f.done()
}
