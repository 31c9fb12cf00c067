package solve

import (
	"cmp"
	"math"
	"slices"
)

// stock is what is left to buy for, and what is left to spend.
type stock struct {
	p *Problem
	// left is the number of pieces of each demand that have no machine. lots is the same by lot, where lots matter.
	left    []int
	lots    [][]int
	budgets []int64
	// pieces is the sum of left.
	pieces int
	// shared says that Problem.Share and Demand.Share apply. share is the number of pieces that one machine takes.
	shared bool
	share  int
}

func newStock(p *Problem, shared bool) *stock {
	s := &stock{p: p, left: make([]int, len(p.Demands)), lots: make([][]int, len(p.Demands)), budgets: slices.Clone(p.Budgets),
		shared: shared, share: math.MaxInt}
	if shared && p.Share > 0 {
		s.share = p.Share
	}
	for k := range p.Demands {
		d := &p.Demands[k]
		s.left[k] = d.Pieces
		s.pieces += d.Pieces
		if d.Most > 0 && len(d.Lots) > 0 {
			s.lots[k] = slices.Clone(d.Lots)
		}
	}
	return s
}

// clone returns a copy of the stock.
func (s *stock) clone() *stock {
	other := *s
	other.left, other.budgets, other.lots = slices.Clone(s.left), slices.Clone(s.budgets), slices.Clone(s.lots)
	for k, lots := range other.lots {
		other.lots[k] = slices.Clone(lots)
	}
	return &other
}

// problem returns the problem of buying for what is left.
func (s *stock) problem() *Problem {
	rest := *s.p
	rest.Demands, rest.Budgets = slices.Clone(s.p.Demands), s.budgets
	for k := range rest.Demands {
		rest.Demands[k].Pieces, rest.Demands[k].Lots = s.left[k], s.lots[k]
	}
	return &rest
}

// most returns the number of a demand's pieces that one machine takes for reasons other than room.
func (s *stock) most(k int) int {
	d, n := &s.p.Demands[k], s.left[k]
	switch {
	case d.Most == 0:
	case s.lots[k] == nil:
		n = min(n, d.Most)
	default:
		n = 0
		for _, left := range s.lots[k] {
			n += min(d.Most, left)
		}
	}
	if s.shared && d.Share > 0 {
		n = min(n, d.Share)
	}
	return n
}

// affordable returns how many of a machine the budgets allow.
func (s *stock) affordable(machine int) int {
	n := int64(math.MaxInt32)
	for _, t := range s.p.Machines[machine].Takes {
		if t.Amount > 0 {
			n = min(n, max(0, s.budgets[t.Budget])/t.Amount)
		}
	}
	return int(n)
}

// covers reports whether a load can be bought for what is left.
func (s *stock) covers(l *Load) bool {
	return s.affordable(l.Machine) > 0 && !slices.ContainsFunc(l.Content, func(c Count) bool { return c.N > s.most(c.Demand) })
}

// asked returns the total request of what is left.
func (s *stock) asked() []int64 {
	asked := make([]int64, len(s.p.Machines[0].Room))
	for k, left := range s.left {
		Subtract(asked, s.p.Demands[k].Request, -left)
	}
	return asked
}

// bySize returns the demands that have pieces left, the largest first.
func (s *stock) bySize(size []float64) []int {
	var order []int
	for k, left := range s.left {
		if left > 0 {
			order = append(order, k)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return -cmp.Compare(size[a], size[b]) })
	return order
}

// buy takes a load's content and its part of the budgets out of the stock.
func (s *stock) buy(l *Load) {
	for i := range l.Content {
		s.take(&l.Content[i])
	}
	s.spend(l.Machine, 1)
}

// spend charges n machines to the budgets.
func (s *stock) spend(machine, n int) {
	for _, t := range s.p.Machines[machine].Takes {
		s.budgets[t.Budget] -= t.Amount * int64(n)
	}
}

// take takes pieces out of the stock, and records the lots they belong to.
func (s *stock) take(c *Count) {
	s.left[c.Demand] -= c.N
	s.pieces -= c.N
	if s.lots[c.Demand] != nil {
		c.lots = s.draw(c.Demand, c.N)
	}
}

// draw takes pieces from the lots that have the most left, so that no lot ends up needing more machines than necessary.
func (s *stock) draw(k, n int) []int32 {
	lots, most := s.lots[k], s.p.Demands[k].Most
	drawn := make([]int32, 0, n)
	used := make([]int, len(lots))
	for range n {
		best := -1
		for l, left := range lots {
			if left > 0 && used[l] < most && (best < 0 || left > lots[best]) {
				best = l
			}
		}
		lots[best]--
		used[best]++
		drawn = append(drawn, int32(best))
	}
	return drawn
}

// putBack undoes take.
func (s *stock) putBack(content []Count) {
	for _, c := range content {
		s.left[c.Demand] += c.N
		s.pieces += c.N
		for _, lot := range c.lots {
			s.lots[c.Demand][lot]++
		}
	}
}
