package plan

import (
	"cmp"
	"slices"
)

// worthASearch is how much more than its price a machine's limit has to be for a search to pay.
const worthASearch = 1.002

// search looks for the most valuable load of a good by branch and bound.
type search struct {
	b     *buyer
	g     *good
	items []int // by falling surplus
	// surplus is each item's worth beyond the price of the room it takes, at the knapsack's prices.
	surplus  []float64
	prices   []float64
	best     float64
	found    []int
	counts   []int
	branches int
	most     int
	// rest is what is free at each position.
	rest [][]int64
}

// heaviest returns an upper limit for the worth of any load of the good, and a load worth more than its price if the
// search found one within a number of branches. The limit is at least the price: whether less is possible does not matter.
func (b *buyer) heaviest(g *good, steps int, decay float64, branches int) (float64, *load) {
	limit := b.knapsack(g, steps, decay)
	prices := g.prices
	if limit <= g.price*worthASearch {
		return max(limit, g.price), nil
	}
	s := &search{b: b, most: branches, g: g, prices: prices, best: g.price * enough, items: slices.Clone(g.members), surplus: make([]float64, len(b.items))}
	for _, k := range s.items {
		s.surplus[k] = b.worth[k]
		for d, amount := range b.items[k].request {
			s.surplus[k] -= prices[d] * float64(amount)
		}
	}
	// What is worth its room comes first: it is in the best load as often as it fits.
	slices.SortStableFunc(s.items, func(x, y int) int {
		return -cmp.Compare(s.surplus[x]/b.worth[x], s.surplus[y]/b.worth[y])
	})
	s.counts = make([]int, len(b.items))
	dims := len(g.room)
	all := make([]int64, dims*(len(s.items)+1))
	for i := range len(s.items) + 1 {
		s.rest = append(s.rest, all[i*dims:(i+1)*dims])
	}
	copy(s.rest[0], g.room)
	s.branch(0, 0)
	if s.branches > s.most {
		return limit, s.load()
	}
	return s.best, s.load()
}

func (s *search) load() *load {
	if s.found == nil {
		return nil
	}
	l := &load{good: s.g, price: s.g.price, value: s.best}
	for k, n := range s.found {
		if n > 0 {
			l.counts = append(l.counts, count{item: k, n: n})
		}
	}
	return l
}

// branch decides how often each item from a position on is loaded.
func (s *search) branch(position int, value float64) {
	if value > s.best {
		s.best, s.found = value, append(s.found[:0], s.counts...)
	}
	free := s.rest[position]
	s.branches++
	if position == len(s.items) || s.branches > s.most {
		return
	}
	limit := value
	for d, price := range s.prices {
		limit += price * float64(max(0, free[d]))
	}
	for _, k := range s.items[position:] {
		if s.surplus[k] > 0 {
			limit += s.surplus[k] * float64(min(s.b.left[k], s.b.items[k].times(free)))
		}
	}
	if limit <= s.best {
		return
	}
	k := s.items[position]
	request := s.b.items[k].request
	rest := s.rest[position+1]
	copy(rest, free)
	n := min(s.b.left[k], s.b.items[k].times(free))
	take(rest, request, n)
	for ; n >= 0; n-- {
		s.counts[k] = n
		s.branch(position+1, value+float64(n)*s.b.worth[k])
		take(rest, request, -1)
	}
	s.counts[k] = 0
}
