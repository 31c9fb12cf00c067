package solve

import "math"

// simplex is a linear program in revised simplex form: lines that have to be met, by columns at the least price. The first
// lines are amounts that are asked for, the others amounts that must not be exceeded.
type simplex struct {
	// rows is how many lines are asked for.
	rows, lines int
	basis       []column
	level       []float64 // how often each column of the basis is bought
	inverse     []float64 // of the basis: lines × lines
	dual        []float64
	direction   []float64
}

// newSimplex starts with nothing bought.
func newSimplex(rows, lines int) simplex {
	s := simplex{rows: rows, lines: lines, basis: make([]column, lines), level: make([]float64, lines), inverse: make([]float64, lines*lines),
		dual: make([]float64, lines), direction: make([]float64, lines)}
	for k := range lines {
		s.inverse[k*lines+k] = 1
		s.basis[k].lines = []entry{{k, 1}}
	}
	return s
}

// charge says what it costs to leave a line unmet.
func (s *simplex) charge(line int, price float64) {
	s.basis[line].price, s.dual[line] = price, price
}

// column is a load as the program sees it. Without one it is the slack of a row or budget, or serves nobody.
type column struct {
	load  *Load
	price float64
	lines []entry
}

type entry struct {
	line   int
	amount float64
}

// cost is that of the solution so far.
func (s *simplex) cost() float64 {
	cost := 0.0
	for i, level := range s.level {
		cost += level * s.basis[i].price
	}
	return cost
}

// discard brings slack into the basis: of rows with a negative worth, since to have one piece less is never dearer, and of
// budgets with a positive one.
func (s *simplex) discard() {
	for range s.lines {
		entered := false
		for k := 0; k < s.lines && !entered; k++ {
			slack := 1.0
			if k < s.rows {
				slack = -1
			}
			entered = slack*s.dual[k] > 1e-12 && s.enter(&column{lines: []entry{{k, slack}}})
		}
		if !entered {
			return
		}
	}
}

// carries is what a column is worth by the present duals.
func (s *simplex) carries(c *column) float64 {
	value := 0.0
	for _, e := range c.lines {
		value += e.amount * s.dual[e.line]
	}
	return value
}

// enter brings a column into the basis.
func (s *simplex) enter(c *column) bool {
	n, direction := s.lines, s.direction
	for i := range n {
		direction[i] = 0
		row := s.inverse[i*n : (i+1)*n]
		for _, e := range c.lines {
			direction[i] += row[e.line] * e.amount
		}
	}
	leaving, ratio := -1, math.Inf(1)
	for i, d := range direction {
		if d > 1e-9 && s.level[i]/d < ratio {
			leaving, ratio = i, s.level[i]/d
		}
	}
	if leaving < 0 {
		return false
	}
	gain := c.price - s.carries(c)
	pivot := s.inverse[leaving*n : (leaving+1)*n]
	for r := range pivot {
		pivot[r] /= direction[leaving]
	}
	s.level[leaving] = ratio
	for i, d := range direction {
		if i == leaving || d == 0 {
			continue
		}
		row := s.inverse[i*n : (i+1)*n]
		for r := range row {
			row[r] -= d * pivot[r]
		}
		s.level[i] = max(0, s.level[i]-d*ratio)
	}
	for r := range s.dual {
		s.dual[r] += gain * pivot[r]
	}
	s.basis[leaving] = *c
	return true
}
