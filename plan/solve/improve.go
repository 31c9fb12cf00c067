package solve

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// A packing is improved by taking a few machines out of it, those that carry the least for their price more often than
// others, and buying anew for what was on them, until that has not helped for long (Schrimpf et al., "Record breaking
// optimization results using the ruin and recreate principle", 2000). The generator's seed is fixed: the same problem has
// the same solution.

// Bounds of the work.
const (
	// improvements is how many attempts there are for a small packing; effort bounds attempts times the pieces and demands.
	improvements = 300
	effort       = 400_000
	// ruined is how many machines are taken out at most.
	ruined = 5
)

// improved is the packing after many attempts. The stock is what the packing leaves.
func improved(p *Problem, s *stock, best *packing, size []float64, options []int) *packing {
	pieces := s.pieces
	for k := range p.Demands {
		pieces += p.Demands[k].Pieces
	}
	attempts := min(improvements, effort/max(1, pieces+len(p.Demands)))
	if len(best.loads) == 0 || attempts < 8 {
		return best
	}
	random := rand.New(rand.NewPCG(1, uint64(pieces)))
	for range attempts {
		if next := attempt(p, s, best, size, options, random); next != nil {
			best = next
		}
	}
	return best
}

// attempt ruins and recreates a part of a packing; nil if that did not make it better.
func attempt(p *Problem, s *stock, best *packing, size []float64, options []int, random *rand.Rand) *packing {
	victims := chosen(p, best, size, random)
	before := s.clone()
	price, kept := 0.0, make([]Load, 0, len(best.loads))
	for i := range best.loads {
		if !slices.Contains(victims, i) {
			kept = append(kept, best.loads[i])
			continue
		}
		l := best.loads[i]
		l.Content = slices.Clone(l.Content)
		price += l.Price
		s.giveBack(&l)
	}
	next := &packing{loads: kept}
	if p.Accepts == nil && random.IntN(2) == 0 {
		next.loads = stuffed(p, s, kept, size)
	}
	after := s.clone()
	var recreated *packing
	var rest *stock
	for range 3 {
		trial := after.clone()
		made := firstFit(p, trial, shuffled(p, trial, size, random), some(p, options, random))
		made.total = made.price
		if recreated == nil || made.better(recreated) {
			recreated, rest = made, trial
		}
	}
	if recreated.left > best.left || recreated.left == best.left && recreated.price >= price-1e-9 {
		*s = *before
		return nil
	}
	*s = *rest
	for i := range next.loads {
		next.price += next.loads[i].Price
	}
	for i := range recreated.loads {
		next.add(recreated.loads[i])
	}
	next.left, next.total = recreated.left, next.price
	return next
}

// chosen are the places of the loads to be ruined.
func chosen(p *Problem, best *packing, size []float64, random *rand.Rand) []int {
	order, rate := make([]int, len(best.loads)), make([]float64, len(best.loads))
	for i := range best.loads {
		order[i] = i
		for _, c := range best.loads[i].Content {
			rate[i] += size[c.Demand] * float64(c.N)
		}
		rate[i] /= best.loads[i].Price
		rate[i] *= 1 + 0.2*random.Float64()
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(rate[a], rate[b]), cmp.Compare(a, b)) })
	n := min(len(order), 1+random.IntN(ruined))
	first := 0
	if random.IntN(2) == 0 {
		first = random.IntN(len(order) - n + 1)
	}
	return order[first : first+n]
}

// stuffed puts what is in stock into the room that is free on some loads, the largest first. Loads that change are copies.
func stuffed(p *Problem, s *stock, loads []Load, size []float64) []Load {
	order := bySize(p, s, size)
	loads = slices.Clone(loads)
	for i := range loads {
		l := &loads[i]
		var free []int64
		pieces := 0
		for _, k := range order {
			d := &p.Demands[k]
			if s.left[k] == 0 || d.Kind != 0 || len(d.Ways) != 1 || d.Most > 0 || s.shared && (d.Share > 0 || p.Share > 0) ||
				!d.Ways[0].Machines.Has(l.Machine) || l.Zones&^d.Ways[0].Zones != 0 {
				continue
			}
			if free == nil {
				free = slices.Clone(p.Machines[l.Machine].Room)
				for _, c := range l.Content {
					take(free, p.Demands[c.Demand].Request, c.N)
				}
			}
			n := min(s.left[k], times(d.Request, free))
			if n == 0 {
				continue
			}
			if pieces == 0 {
				l.Content = slices.Clone(l.Content)
			}
			take(free, d.Request, n)
			pieces += n
			s.left[k] -= n
			s.pieces -= n
			l.Content = append(l.Content, Count{Demand: k, N: n})
		}
	}
	return loads
}

// bySize are the demands in stock, the largest first.
func bySize(p *Problem, s *stock, size []float64) []int {
	var order []int
	for k, left := range s.left {
		if left > 0 {
			order = append(order, k)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(-cmp.Compare(size[a], size[b]), cmp.Compare(a, b)) })
	return order
}

// shuffled are the demands in stock, the large ones more or less before the small ones.
func shuffled(p *Problem, s *stock, size []float64, random *rand.Rand) []int {
	order := bySize(p, s, size)
	key := make(map[int]float64, len(order))
	for _, k := range order {
		key[k] = size[k] * (0.6 + 0.8*random.Float64())
	}
	slices.SortStableFunc(order, func(a, b int) int { return -cmp.Compare(key[a], key[b]) })
	return order
}

// some are all of the machines, or those up to a size that is drawn, so that content is divided differently.
func some(p *Problem, options []int, random *rand.Rand) []int {
	if random.IntN(3) == 0 {
		return options
	}
	price := p.Machines[options[random.IntN(len(options))]].priceIn(^uint64(0))
	cut := slices.IndexFunc(options, func(m int) bool { return p.Machines[m].priceIn(^uint64(0)) > price })
	if cut < 0 {
		return options
	}
	return options[:cut]
}
