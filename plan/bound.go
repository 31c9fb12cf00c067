package plan

import (
	"cmp"
	"slices"
)

// LowerBound is what no plan for the pods that wait can undercut, in US dollars per hour, given that pods take the
// capacity types they would be planned for and existing nodes take none of them. It is what plans are measured against.
//
// The worths of program.go would be such a bound if no load at all carried more than its machine costs. The loads that
// were tried do not, but there are others. So each machine is given a limit that no load can exceed, the value of its
// knapsack when pods are divisible, and the worths are scaled down until every limit is within its price (Farley, "A note
// on bounding a class of linear programming problems", 1990).
func LowerBound(in Input) float64 {
	items := itemsOf(waiting(in.Snapshot))
	m := marketFor(&in, items)
	all := newBitset(len(m.machines))
	for i := range m.machines {
		all.set(i)
	}
	for _, it := range items {
		m.weigh(it)
	}
	bound := 0.0
	stocks := m.preferred(items, all)
	for c := range stocks {
		for _, group := range m.components(stocks[c]) {
			b := newBuyer(m, group)
			for k, it := range group {
				b.left[k] = it.left
			}
			bound += b.lowerBound()
		}
	}
	return bound
}

// lowerBound solves the program with exact knapsacks where they are small enough, and scales its value by what is not
// proven.
func (b *buyer) lowerBound() float64 {
	p := b.newProgram()
	scale := 1.0
	for range maxProofs {
		p.solve(provingRounds)
		copy(b.worth, p.dual)
		scale = 1.0
		var better []load
		for i := range b.goods {
			g := &b.goods[i]
			limit, l := b.heaviest(g)
			if l != nil {
				better = append(better, *l)
			}
			if limit > 0 {
				scale = min(scale, g.price/limit)
			}
		}
		improved := false
		for i := range better {
			improved = p.carries(&better[i]) > better[i].price*enough && p.enter(&better[i]) || improved
		}
		if !improved {
			break
		}
	}
	total := 0.0
	for k, worth := range b.worth {
		total += worth * float64(b.left[k])
	}
	println("LP", int(1000*total), "scale", int(scale*10000))
	return scale * total
}

// Bounds of the effort a proof is worth.
const (
	provingRounds = 100
	maxProofs     = 60
	maxBranches   = 30_000
)

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
}

// heaviest returns an upper limit for the worth of any load of the good, and a load worth more than its price if the
// search found one. The limit is at least the price: whether less is possible does not matter.
func (b *buyer) heaviest(g *good) (float64, *load) {
	limit := b.knapsack(g, 3000, 0.997)
	prices := g.prices
	if limit <= g.price*enough {
		return max(limit, g.price), nil
	}
	s := &search{b: b, g: g, prices: prices, best: g.price * enough, items: slices.Clone(g.members), surplus: make([]float64, len(b.items))}
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
	s.branch(0, slices.Clone(g.room), 0)
	if s.branches > maxBranches {
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
func (s *search) branch(position int, free []int64, value float64) {
	if value > s.best {
		s.best, s.found = value, slices.Clone(s.counts)
	}
	s.branches++
	if position == len(s.items) || s.branches > maxBranches {
		return
	}
	limit := value
	for d, price := range s.prices {
		limit += price * float64(max(0, free[d]))
	}
	for _, k := range s.items[position:] {
		if s.surplus[k] > 0 {
			limit += s.surplus[k] * float64(min(s.b.left[k], times(s.b.items[k].request, free)))
		}
	}
	if limit <= s.best {
		return
	}
	k := s.items[position]
	request := s.b.items[k].request
	rest := slices.Clone(free)
	n := min(s.b.left[k], times(request, free))
	take(rest, request, n)
	for ; n >= 0; n-- {
		s.counts[k] = n
		s.branch(position+1, rest, value+float64(n)*s.b.worth[k])
		take(rest, request, -1)
	}
	s.counts[k] = 0
}
