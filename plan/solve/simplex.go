package solve

import "math"

// simplex is a linear program in revised simplex form: lines that columns have to satisfy at the least price. The first
// lines are amounts that are required, the others amounts that must not be exceeded.
type simplex struct {
	// rows is the number of lines that are required.
	rows, lines int
	basis       []column
	level       []float64 // how often each column of the basis is bought
	inverse     []float64 // of the basis: lines × lines
	dual        []float64
	direction   []float64
}

// newSimplex returns a program in which nothing is bought.
func newSimplex(rows, lines int) simplex {
	s := simplex{rows: rows, lines: lines, basis: make([]column, lines), level: make([]float64, lines), inverse: make([]float64, lines*lines),
		dual: make([]float64, lines), direction: make([]float64, lines)}
	for k := range lines {
		s.inverse[k*lines+k] = 1
		s.basis[k].lines = []entry{{k, 1}}
	}
	return s
}

// charge sets the price of leaving a line unmet.
func (s *simplex) charge(line int, price float64) {
	s.basis[line].price, s.dual[line] = price, price
}

// column is a load as the program sees it. Without a load it is the slack of a row or budget, or serves nothing.
type column struct {
	load  *Load
	price float64
	lines []entry
}

type entry struct {
	line   int
	amount float64
}

// cost returns the cost of the solution so far.
func (s *simplex) cost() float64 {
	cost := 0.0
	for i, level := range s.level {
		cost += level * s.basis[i].price
	}
	return cost
}

// discard brings slack into the basis: for rows with a negative worth, because having one piece less is never dearer,
// and for budgets with a positive one.
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

// carries returns the worth of a column at the present duals.
func (s *simplex) carries(c *column) float64 {
	value := 0.0
	for _, e := range c.lines {
		value += e.amount * s.dual[e.line]
	}
	return value
}

// enter brings a column into the basis. It returns false if no column can leave it.
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
