package solve

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// mostRows is how many rows the linear program has at most. With more, its steps cost more than they find.
const mostRows = 96

// row is demands that the linear program does not tell apart: they may be on the same machines, and are about as large.
type row struct {
	// members are the demands, the largest first.
	members []int
	// request is what a piece takes on average, least what the smallest takes of each dimension.
	request, least []int64
	pieces         int
	// users are the machines that some member may be on.
	users Bitset
}

// rowsOf groups demands into rows: one for each demand while these are few, and otherwise cells of demands of nearly equal
// size, finer where there is more to buy.
func rowsOf(p *Problem, size []float64) []row {
	var demands []int
	for k := range p.Demands {
		if p.Demands[k].Pieces > 0 {
			demands = append(demands, k)
		}
	}
	var cells []cell
	if len(demands) <= mostRows {
		for _, k := range demands {
			cells = append(cells, newCell(p, size, []int{k}))
		}
	} else {
		for _, alike := range byKind(p, demands) {
			cells = append(cells, newCell(p, size, alike))
		}
		cells = split(p, size, cells)
	}
	rows := make([]row, len(cells))
	for i := range cells {
		rows[i] = rowOf(p, size, cells[i].members)
	}
	return rows
}

// byKind brings demands together that differ in size alone, in the order of the first of each kind. What may be on which
// of the machines is compared on those that are large enough for every demand; where there is none, on all.
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
				// What only some ask for tells them apart: devices, bounds on nodes.
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

// cell is demands of one kind that may become a row.
type cell struct {
	members []int
	// loss is how much their sizes differ, in dollars; dim is the dimension in which they differ most.
	loss float64
	dim  int
}

func newCell(p *Problem, size []float64, members []int) cell {
	c := cell{members: members}
	if len(members) < 2 {
		return c
	}
	weight := 0.0
	for _, k := range members {
		weight += size[k] * float64(p.Demands[k].Pieces)
	}
	widest := 0.0
	for d := range p.Demands[members[0]].Request {
		// The spread of the logarithm says how far sizes are apart, whatever the unit.
		sum, squares, total := 0.0, 0.0, 0.0
		for _, k := range members {
			amount := p.Demands[k].Request[d]
			if amount <= 0 {
				continue
			}
			w, x := size[k]*float64(p.Demands[k].Pieces), math.Log(float64(amount))
			sum, squares, total = sum+w*x, squares+w*x*x, total+w
		}
		if total == 0 {
			continue
		}
		if spread := squares/total - (sum/total)*(sum/total); spread > widest {
			widest, c.dim = spread, d
		}
	}
	c.loss = weight * math.Sqrt(widest)
	return c
}

// split divides the cell that loses the most, until there are as many as rows.
func split(p *Problem, size []float64, cells []cell) []cell {
	for len(cells) < mostRows {
		worst := 0
		for i := range cells {
			if cells[i].loss > cells[worst].loss {
				worst = i
			}
		}
		c := cells[worst]
		if c.loss <= 1e-12 {
			break
		}
		slices.SortFunc(c.members, func(a, b int) int {
			return cmp.Or(-cmp.Compare(p.Demands[a].Request[c.dim], p.Demands[b].Request[c.dim]), cmp.Compare(a, b))
		})
		weight, half := 0.0, 0.0
		for _, k := range c.members {
			weight += size[k] * float64(p.Demands[k].Pieces)
		}
		at := 0
		for ; at < len(c.members)-1 && half < weight/2; at++ {
			half += size[c.members[at]] * float64(p.Demands[c.members[at]].Pieces)
		}
		at = max(1, at)
		cells[worst] = newCell(p, size, c.members[:at:at])
		cells = append(cells, newCell(p, size, c.members[at:]))
	}
	return cells
}

func rowOf(p *Problem, size []float64, members []int) row {
	slices.SortFunc(members, func(a, b int) int { return cmp.Or(-cmp.Compare(size[a], size[b]), cmp.Compare(a, b)) })
	first := p.Demands[members[0]].Request
	r := row{members: members, request: make([]int64, len(first)), least: slices.Clone(first), users: NewBitset(len(p.Machines))}
	sums := make([]float64, len(first))
	for _, k := range members {
		d := &p.Demands[k]
		r.pieces += d.Pieces
		for dim, amount := range d.Request {
			sums[dim] += float64(amount) * float64(d.Pieces)
			r.least[dim] = min(r.least[dim], amount)
		}
		for w := range d.Ways {
			r.users.Unite(d.Ways[w].Machines)
		}
	}
	for dim := range r.request {
		r.request[dim] = int64(math.Ceil(sums[dim]/float64(max(1, r.pieces)) - 1e-6))
	}
	return r
}

// condensed is the problem in which each row is one demand.
func condensed(p *Problem, rows []row) *Problem {
	q := &Problem{Machines: p.Machines, Budgets: p.Budgets, Without: p.Without, Demands: make([]Demand, len(rows))}
	of := func(content []Count) []Count {
		own := slices.Clone(content)
		for i := range own {
			own[i].Demand = rows[own[i].Demand].members[0]
		}
		return own
	}
	if p.Joins != nil {
		q.Joins = func(machine int, content []Count, demand, way int) bool {
			return p.Joins(machine, of(content), rows[demand].members[0], way)
		}
	}
	if p.Accepts != nil {
		q.Accepts = func(machine int, zones uint64, content []Count) bool { return p.Accepts(machine, zones, of(content)) }
	}
	for i := range rows {
		r := &rows[i]
		first := &p.Demands[r.members[0]]
		d := Demand{Request: r.request, Pieces: r.pieces, Most: first.Most, Kind: first.Kind}
		for _, k := range r.members {
			if first.Most > 0 && p.Demands[k].Lots == nil {
				d.Lots = append(d.Lots, p.Demands[k].Pieces)
			}
			d.Lots = append(d.Lots, p.Demands[k].Lots...)
		}
		for w := range first.Ways {
			way := Way{Machines: NewBitset(len(p.Machines)), Zones: first.Ways[w].Zones}
			for m := range p.Machines {
				if Fits(r.request, p.Machines[m].Room) && slices.ContainsFunc(r.members, func(k int) bool { return p.Demands[k].Ways[w].Machines.Has(m) }) {
					way.Machines.Set(m)
				}
			}
			d.Ways = append(d.Ways, way)
		}
		q.Demands[i] = d
	}
	return q
}

// programOf is the program for a problem, not solved yet.
func programOf(p *Problem, rows []row) *program {
	q := condensed(p, rows)
	sizes, single := make([]float64, len(rows)), make([]row, len(rows))
	for r := range rows {
		single[r] = rowOf(q, sizes, []int{r})
	}
	return newProgram(newFiller(newStock(q, false), single, sizes))
}
