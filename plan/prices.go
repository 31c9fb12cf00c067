package plan

import "math"

// What is a core worth, and a gibibyte? On a market where machines of many shapes are sold, a batch of pods needs
//
//	minimize   Σ price(t)·x(t)   over machines t
//	subject to Σ usable(t,d)·x(t) ≥ demand(d)   for every resource d
//
// machines, were they divisible. The dual of this linear program gives each resource d a worth λ(d) such that no
// machine carries more worth than it costs, and the worth of the whole demand is as large as it can be: it is a lower
// bound of what any plan can cost. A machine is well used when the worth of what it carries comes near its price.

// offer is a machine as the linear program sees it.
type offer struct {
	usable []int64
	price  float64
}

// worths solves the program by the revised simplex method and returns λ, in dollars per hour and unit of each
// dimension. Demand that no offer meets makes its dimension very dear, but the result stays finite. There are as many
// rows as resources, so a step costs little more than one look at every offer.
func worths(offers []offer, demand []int64) []float64 {
	dims := len(demand)
	lambda := make([]float64, dims)
	scale, rows := activeRows(offers, demand)
	if len(rows) == 0 || len(offers) == 0 {
		return lambda
	}
	s := newSimplex(offers, demand, rows, scale)
	for range 50 + 20*len(rows) {
		if !s.step() {
			break
		}
	}
	for r, d := range rows {
		lambda[d] = max(0, s.dual[r]) / scale[d]
	}
	shrink(lambda, offers)
	return lambda
}

// activeRows are the dimensions that are asked for, and the unit each is measured in: the largest machine's amount.
func activeRows(offers []offer, demand []int64) (scale []float64, rows []int) {
	scale = make([]float64, len(demand))
	for d := range demand {
		scale[d] = 1
		if demand[d] <= 0 {
			continue
		}
		for i := range offers {
			scale[d] = max(scale[d], float64(offers[i].usable[d]))
		}
		rows = append(rows, d)
	}
	return scale, rows
}

// shrink makes λ feasible where rounding has left it slightly too large, so that it is a true lower bound.
func shrink(lambda []float64, offers []offer) {
	worst := 1.0
	for i := range offers {
		if offers[i].price > 0 {
			worst = max(worst, worth(lambda, offers[i].usable)/offers[i].price)
		}
	}
	for d := range lambda {
		lambda[d] /= worst
	}
}

// worth is the value of an amount.
func worth(lambda []float64, amount []int64) float64 {
	sum := 0.0
	for d, l := range lambda {
		if l > 0 && amount[d] > 0 {
			sum += l * float64(amount[d])
		}
	}
	return sum
}

// simplex holds the basis of the program. Columns are numbered: offers, then one surplus and one artificial per row.
type simplex struct {
	offers  []offer
	rows    []int
	columns [][]float64 // scaled, by offer
	penalty float64     // price of an artificial unit: far more than any machine
	basis   []int
	inverse [][]float64
	level   []float64 // values of the basic variables
	dual    []float64
}

func newSimplex(offers []offer, demand []int64, rows []int, scale []float64) *simplex {
	n := len(rows)
	s := &simplex{offers: offers, rows: rows, dual: make([]float64, n)}
	flat := make([]float64, len(offers)*n)
	for i := range offers {
		column := flat[i*n : (i+1)*n]
		for r, d := range rows {
			column[r] = float64(max(0, offers[i].usable[d])) / scale[d]
		}
		s.columns = append(s.columns, column)
		s.penalty = max(s.penalty, offers[i].price)
	}
	s.penalty *= 1e6
	for r, d := range rows {
		s.basis = append(s.basis, len(offers)+n+r)
		row := make([]float64, n)
		row[r] = 1
		s.inverse = append(s.inverse, row)
		s.level = append(s.level, float64(demand[d])/scale[d])
	}
	s.price()
	return s
}

func (s *simplex) cost(column int) float64 {
	switch n := len(s.rows); {
	case column < len(s.offers):
		return s.offers[column].price
	case column < len(s.offers)+n:
		return 0
	}
	return s.penalty
}

// price computes the duals of the basis.
func (s *simplex) price() {
	for r := range s.dual {
		s.dual[r] = 0
		for i, column := range s.basis {
			s.dual[r] += s.cost(column) * s.inverse[i][r]
		}
	}
}

// step brings the most profitable column into the basis and says whether there was one.
func (s *simplex) step() bool {
	n := len(s.rows)
	best, entering := -1e-9, -1
	for i, column := range s.columns {
		reduced := s.offers[i].price
		for r := range column {
			reduced -= s.dual[r] * column[r]
		}
		if relative := reduced / s.offers[i].price; relative < best {
			best, entering = relative, i
		}
	}
	for r := range n {
		if s.dual[r] < -1e-9*s.penalty/1e6 && (entering < 0 || s.dual[r] < best) {
			best, entering = s.dual[r], len(s.offers)+r
		}
	}
	if entering < 0 {
		return false
	}
	direction := make([]float64, n)
	for i := range n {
		if entering < len(s.offers) {
			for r, value := range s.columns[entering] {
				direction[i] += s.inverse[i][r] * value
			}
		} else {
			direction[i] = -s.inverse[i][entering-len(s.offers)]
		}
	}
	return s.pivot(entering, direction)
}

func (s *simplex) pivot(entering int, direction []float64) bool {
	leaving, ratio := -1, math.Inf(1)
	for i, d := range direction {
		if d > 1e-12 && s.level[i]/d < ratio {
			leaving, ratio = i, s.level[i]/d
		}
	}
	if leaving < 0 {
		return false
	}
	divisor := direction[leaving]
	for r := range s.inverse[leaving] {
		s.inverse[leaving][r] /= divisor
	}
	s.level[leaving] /= divisor
	for i := range s.basis {
		if i == leaving || direction[i] == 0 {
			continue
		}
		for r := range s.inverse[i] {
			s.inverse[i][r] -= direction[i] * s.inverse[leaving][r]
		}
		s.level[i] = max(0, s.level[i]-direction[i]*s.level[leaving])
	}
	s.basis[leaving] = entering
	s.price()
	return true
}
