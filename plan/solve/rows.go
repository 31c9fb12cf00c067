package solve

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// maxRows is the maximum number of rows of the linear program. With more, its steps cost more than they gain.
const maxRows = 96

// row is demands that the linear program does not distinguish: they may use the same machines, and are about as large.
type row struct {
	// members are the demands, the largest first.
	members []int
	// request is what a piece takes on average. least is what the smallest takes of each dimension.
	request, least []int64
	pieces         int
	// users are the machines that some member may be on.
	users Bitset
	// loss is how much the members' sizes differ, in dollars. dim is the dimension in which they differ most.
	loss float64
	dim  int
}

// rowsOf groups demands into rows: one for each demand while there are few, and otherwise one for demands of nearly
// equal size. Rows are finer where there is more to buy.
func rowsOf(p *Problem, size []float64) []row {
	var demands []int
	for k := range p.Demands {
		if p.Demands[k].Pieces > 0 {
			demands = append(demands, k)
		}
	}
	var rows []row
	if len(demands) <= maxRows {
		for _, k := range demands {
			rows = append(rows, newRow(p, size, []int{k}))
		}
		return rows
	}
	for _, alike := range byKind(p, demands) {
		rows = append(rows, newRow(p, size, alike))
	}
	for len(rows) < maxRows {
		worst := 0
		for i := range rows {
			if rows[i].loss > rows[worst].loss {
				worst = i
			}
		}
		if rows[worst].loss <= 1e-12 {
			break
		}
		larger, smaller := rows[worst].halves(p, size)
		rows[worst] = newRow(p, size, larger)
		rows = append(rows, newRow(p, size, smaller))
	}
	return rows
}

// byKind groups demands that differ only in size, in the order of the first of each kind. Which machines demands may
// use is compared on the machines that are large enough for every demand, or on all if there are none.
func byKind(p *Problem, demands []int) [][]int {
	largest := make([]int64, len(p.Demands[demands[0]].Request))
	for _, k := range demands {
		for d, amount := range p.Demands[k].Request {
			largest[d] = max(largest[d], amount)
		}
	}
	large := NewBitset(len(p.Machines))
	for i := range p.Machines {
		if Fits(largest, p.Machines[i].Room) {
			large.Set(i)
		}
	}
	places := map[string]int{}
	var kinds [][]int
	var key []byte
	for _, k := range demands {
		d := &p.Demands[k]
		key = binary.AppendVarint(key[:0], int64(d.Most))
		key = binary.AppendVarint(key, int64(d.Kind))
		for dim, amount := range d.Request {
			if dim > 1 && amount > 0 {
				// Requests that only some have distinguish them: devices, bounds on nodes.
				key = binary.AppendVarint(key, int64(dim))
			}
		}
		for _, w := range d.Ways {
			machines := w.Machines.Clone()
			if !large.Empty() {
				machines.Intersect(large)
			}
			key = append(binary.LittleEndian.AppendUint64(append(key, '|'), w.Zones), machines.Key()...)
		}
		i, known := places[string(key)]
		if !known {
			i = len(kinds)
			places[string(key)] = i
			kinds = append(kinds, nil)
		}
		kinds[i] = append(kinds[i], k)
	}
	return kinds
}

// newRow returns a row of demands of one kind.
func newRow(p *Problem, size []float64, members []int) row {
	slices.SortFunc(members, func(a, b int) int { return cmp.Or(-cmp.Compare(size[a], size[b]), cmp.Compare(a, b)) })
	first := p.Demands[members[0]].Request
	r := row{members: members, request: make([]int64, len(first)), least: slices.Clone(first), users: NewBitset(len(p.Machines))}
	weight, sums := 0.0, make([]float64, len(first))
	for _, k := range members {
		d := &p.Demands[k]
		r.pieces += d.Pieces
		weight += size[k] * float64(d.Pieces)
		for dim, amount := range d.Request {
			sums[dim] += float64(amount) * float64(d.Pieces)
			r.least[dim] = min(r.least[dim], amount)
		}
		for w := range d.Ways {
			r.users.Unite(d.Ways[w].Machines)
		}
	}
	widest := 0.0
	for dim := range r.request {
		r.request[dim] = int64(math.Ceil(sums[dim]/float64(max(1, r.pieces)) - 1e-6))
		if spread := r.spread(p, size, dim); spread > widest {
			widest, r.dim = spread, dim
		}
	}
	r.loss = weight * widest
	return r
}

// spread returns how far apart the members are in a dimension, whatever its unit: the deviation of the logarithm.
func (r *row) spread(p *Problem, size []float64, dim int) float64 {
	sum, squares, total := 0.0, 0.0, 1e-300
	for _, k := range r.members {
		if amount := p.Demands[k].Request[dim]; amount > 0 && len(r.members) > 1 {
			w, x := size[k]*float64(p.Demands[k].Pieces), math.Log(float64(amount))
			sum, squares, total = sum+w*x, squares+w*x*x, total+w
		}
	}
	return math.Sqrt(max(0, squares/total-(sum/total)*(sum/total)))
}

// halves returns the members that are larger in the dimension in which they differ most, and the others, of about equal
// worth.
func (r *row) halves(p *Problem, size []float64) (larger, smaller []int) {
	slices.SortFunc(r.members, func(a, b int) int {
		return cmp.Or(-cmp.Compare(p.Demands[a].Request[r.dim], p.Demands[b].Request[r.dim]), cmp.Compare(a, b))
	})
	weight := 0.0
	for _, k := range r.members {
		weight += size[k] * float64(p.Demands[k].Pieces)
	}
	at := 0
	for half := 0.0; at < len(r.members)-1 && half < weight/2; at++ {
		half += size[r.members[at]] * float64(p.Demands[r.members[at]].Pieces)
	}
	at = max(1, at)
	return r.members[:at:at], r.members[at:]
}

// programOf returns the program for a problem, not solved yet. The first demand of each row stands for the whole row.
func programOf(p *Problem, rows []row, size []float64, shared bool) *program {
	q, single := *p, slices.Clone(rows)
	q.Demands = make([]Demand, len(p.Demands))
	for i := range single {
		r := &single[i]
		q.Demands[r.members[0]] = condensed(p, r)
		r.members, r.least = r.members[:1], r.request
	}
	return newProgram(newFiller(newStock(&q, shared), single, size))
}

// condensed returns one demand in place of those of a row.
func condensed(p *Problem, r *row) Demand {
	first := &p.Demands[r.members[0]]
	d := Demand{Request: r.request, Pieces: r.pieces, Most: first.Most, Kind: first.Kind}
	for _, way := range first.Ways {
		d.Ways = append(d.Ways, Way{Machines: NewBitset(len(p.Machines)), Zones: way.Zones})
	}
	for _, k := range r.members {
		own := &p.Demands[k]
		if first.Most > 0 && own.Lots == nil {
			d.Lots = append(d.Lots, own.Pieces)
		}
		d.Lots = append(d.Lots, own.Lots...)
		for w := range d.Ways {
			d.Ways[w].Machines.Unite(own.Ways[w].Machines)
		}
	}
	return d
}
