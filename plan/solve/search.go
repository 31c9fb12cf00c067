package solve

import (
	"cmp"
	"math"
	"slices"
)

// worthASearch is how much more than its price a machine's limit must be for a search to pay.
const worthASearch = 1.002

// search looks for the most valuable content of a machine by branch and bound. Each row is one demand.
type search struct {
	f    *filler
	rows []int // by falling surplus relative to worth
	fits []int // by row
	// surplus is each row's worth beyond the price of the room it takes, at the knapsack's prices.
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

// heaviest returns an upper limit for the worth of any load of a machine, and a content worth more than its price if
// the search found one within a number of branches. The limit is at least the price; whether a lower one is possible
// does not matter.
func (f *filler) heaviest(machine, steps int, decay float64, branches int) (float64, []Count) {
	price := f.cost(machine, math.MaxUint64)
	if len(f.members[machine]) == 0 {
		return price, nil
	}
	limit := f.knapsack(machine, f.p.Machines[machine].priceIn(math.MaxUint64), steps, decay)
	if limit <= price*worthASearch {
		return max(limit, price), nil
	}
	s := &search{f: f, most: branches, prices: f.prices[machine], best: price * enough, rows: slices.Clone(f.members[machine]),
		surplus: make([]float64, len(f.rows)), fits: make([]int, len(f.rows)), counts: make([]int, len(f.rows))}
	for j, r := range f.members[machine] {
		s.fits[r] = min(f.left[r], f.fits[machine][j])
		s.surplus[r] = f.worth[r]
		for d, amount := range f.rows[r].request {
			s.surplus[r] -= s.prices[d] * float64(amount)
		}
	}
	// Rows that are worth their room come first: they are in the best load as often as they fit.
	slices.SortStableFunc(s.rows, func(x, y int) int {
		return -cmp.Compare(s.surplus[x]/f.worth[x], s.surplus[y]/f.worth[y])
	})
	room := f.p.Machines[machine].Room
	all := make([]int64, len(room)*(len(s.rows)+1))
	for i := range len(s.rows) + 1 {
		s.rest = append(s.rest, all[i*len(room):(i+1)*len(room)])
	}
	copy(s.rest[0], room)
	s.branch(0, 0)
	if s.branches > s.most {
		return limit, s.content()
	}
	return s.best, s.content()
}

func (s *search) content() []Count {
	var content []Count
	for r, n := range s.found {
		if n > 0 {
			content = append(content, Count{Demand: s.f.rows[r].members[0], N: n})
		}
	}
	return content
}

// branch decides how often each row from a position on is loaded.
func (s *search) branch(position int, value float64) {
	if value > s.best {
		s.best, s.found = value, append(s.found[:0], s.counts...)
	}
	free := s.rest[position]
	s.branches++
	if position == len(s.rows) || s.branches > s.most {
		return
	}
	limit := value
	for d, price := range s.prices {
		limit += price * float64(max(0, free[d]))
	}
	for _, r := range s.rows[position:] {
		if s.surplus[r] > 0 {
			limit += s.surplus[r] * float64(min(s.fits[r], Times(s.f.rows[r].request, free)))
		}
	}
	if limit <= s.best {
		return
	}
	r := s.rows[position]
	request, rest := s.f.rows[r].request, s.rest[position+1]
	copy(rest, free)
	n := min(s.fits[r], Times(request, free))
	Subtract(rest, request, n)
	for ; n >= 0; n-- {
		s.counts[r] = n
		s.branch(position+1, value+float64(n)*s.f.worth[r])
		Subtract(rest, request, -1)
	}
	s.counts[r] = 0
}
