package solve

import (
	"cmp"
	"slices"
)

// filler fills machines one at a time with pieces in stock.
type filler struct {
	p     *Problem
	rows  []row
	stock *stock
	// worth is the worth of a piece of each row, in dollars per hour. scale is the worth of a piece of each demand
	// relative to its row's.
	worth []float64
	scale []float64
	// home is the row of each demand.
	home []int
	// shadow is the worth of a unit of each budget.
	shadow []float64
	// members are the rows that may use each machine. prices are what a unit of its room is worth to them.
	members [][]int
	prices  [][]float64
	// fits is how many pieces of each member fit an otherwise empty machine. left is how many pieces of each row there
	// are.
	fits [][]int
	// slack is the share of every machine that is kept free.
	slack   float64
	left    []int
	scratch scratch
}

// scratch is memory that is reused.
type scratch struct {
	scarcity, factors   []float64
	candidates, cursors []int
	room                []int64
	loaded              []int
	content             []Count
	knapsack            [3][]float64
}

func newFiller(s *stock, rows []row, size []float64) *filler {
	p := s.p
	f := &filler{p: p, rows: rows, stock: s, worth: make([]float64, len(rows)), scale: make([]float64, len(p.Demands)),
		home: make([]int, len(p.Demands)), shadow: make([]float64, len(p.Budgets)), members: make([][]int, len(p.Machines)), prices: make([][]float64, len(p.Machines)),
		fits: make([][]int, len(p.Machines)), left: make([]int, len(rows))}
	dims := 0
	for r := range rows {
		mean := 0.0
		for _, k := range rows[r].members {
			mean += size[k] * float64(p.Demands[k].Pieces)
		}
		mean /= float64(rows[r].pieces)
		most := 0
		for _, k := range rows[r].members {
			f.scale[k], f.home[k] = size[k]/mean, r
			most += s.most(k)
		}
		dims = len(rows[r].request)
		for m := range p.Machines {
			if rows[r].users.Has(m) {
				f.members[m] = append(f.members[m], r)
				f.fits[m] = append(f.fits[m], min(Times(rows[r].request, p.Machines[m].Room), most))
			}
		}
	}
	f.scratch = scratch{scarcity: make([]float64, dims), factors: make([]float64, len(rows)), cursors: make([]int, len(rows)),
		room: make([]int64, dims), loaded: make([]int, len(p.Demands))}
	for i := range f.scratch.knapsack {
		f.scratch.knapsack[i] = make([]float64, dims)
	}
	return f
}

// count counts what is left of each row.
func (f *filler) count() {
	for r := range f.rows {
		f.left[r] = 0
		for _, k := range f.rows[r].members {
			f.left[r] += f.stock.left[k]
		}
	}
}

// total returns the worth of what is left.
func (f *filler) total() float64 {
	total := 0.0
	for k, left := range f.stock.left {
		if left > 0 {
			total += float64(left) * f.worthOf(k)
		}
	}
	return total
}

// cost returns the cost of a machine in some zones, with the worth of what it takes of budgets.
func (f *filler) cost(machine int, zones uint64) float64 {
	cost := f.p.Machines[machine].priceIn(zones)
	for _, t := range f.p.Machines[machine].Takes {
		cost += f.shadow[t.Budget] * float64(t.Amount)
	}
	return cost
}

// filling is a load in the making.
type filling struct {
	f       *filler
	machine int
	zones   uint64
	free    []int64
	content []Count
	pieces  int
	value   float64
}

// choice is the load of the highest merit considered so far.
type choice struct {
	load  *Load
	merit float64
}

// consider takes a load if it is better by more than a rounding error.
func (c *choice) consider(l *Load, merit float64) {
	if l != nil && (c.load == nil || merit > c.merit*(1+1e-9)) {
		c.load, c.merit = l, merit
	}
}

// buy buys a load and adds it to what is bought.
func (f *filler) buy(result *packing, l *Load) {
	bought := *l
	bought.Content = slices.Clone(l.Content)
	f.stock.buy(&bought)
	result.add(bought)
	f.count()
}

// begin starts a load. The load that was begun before has to be done.
func (f *filler) begin(machine int) filling {
	for d, amount := range f.p.Machines[machine].Room {
		f.scratch.room[d] = amount - int64(f.slack*float64(amount))
	}
	return filling{f: f, machine: machine, zones: f.p.Machines[machine].zones(), free: f.scratch.room, content: f.scratch.content[:0]}
}

// done returns the finished load and its merit: the worth it carries for each dollar. It returns nil if the load is
// empty or may not be bought.
func (t *filling) done() (*Load, float64) {
	for _, c := range t.content {
		t.f.scratch.loaded[c.Demand] = 0
	}
	t.f.scratch.content = t.content[:0]
	l := t.f.p.load(t.machine, t.zones, t.content)
	if l == nil || t.f.stock.affordable(t.machine) == 0 {
		return nil, 0
	}
	l.Content = slices.Clone(t.content)
	return l, t.value / t.f.cost(t.machine, t.zones)
}

// put adds up to n pieces of a demand, and returns how many it added.
func (t *filling) put(k, n int) int {
	d, loaded := &t.f.p.Demands[k], t.f.scratch.loaded
	n = min(n, Times(d.Request, t.free))
	if n <= 0 {
		return 0
	}
	if n = min(n, t.f.stock.most(k)-loaded[k], t.f.stock.share-t.pieces); n <= 0 {
		return 0
	}
	for w := range d.Ways {
		way := &d.Ways[w]
		if !way.Machines.Has(t.machine) || way.Zones&t.zones == 0 {
			continue
		}
		if d.Kind != 0 && !t.f.p.Joins(t.machine, t.content, k, w) {
			continue
		}
		Subtract(t.free, d.Request, n)
		t.zones &= way.Zones
		loaded[k] += n
		t.pieces += n
		t.value += float64(n) * t.f.worthOf(k)
		t.add(Count{Demand: k, Way: w, N: n})
		return n
	}
	return 0
}

func (t *filling) add(c Count) {
	for i := range t.content {
		if t.content[i].Demand == c.Demand && t.content[i].Way == c.Way {
			t.content[i].N += c.N
			return
		}
	}
	t.content = append(t.content, c)
}

// worthOf returns the worth of a piece of a demand.
func (f *filler) worthOf(k int) float64 { return f.scale[k] * f.worth[f.home[k]] }

// manner is a way to fill a machine.
type manner int

// All manners take what is worth most for the room it takes.
const (
	// scarce weights a resource more the less of it is left.
	scarce manner = iota
	// dear does the same, and prefers pieces that are worth much, which are harder to place later.
	dear
	// priced weights resources by the knapsack's prices.
	priced
	// once weights resources by their scarcity on the empty machine only: much faster than the others.
	once
)

// fill loads a machine, starting with as much of some content as there is. Then it repeatedly adds pieces of the row
// that is worth most for the room it takes. It returns the load and its merit; the load is nil if nothing fits.
func (f *filler) fill(machine int, how manner, content []Count) (*Load, float64) {
	t := f.begin(machine)
	for _, c := range content {
		t.put(c.Demand, c.N)
	}
	candidates, factors := f.scratch.candidates[:0], f.scratch.factors
	for _, r := range f.members[machine] {
		if f.left[r] == 0 {
			continue
		}
		f.scratch.cursors[r] = 0
		candidates = append(candidates, r)
		factors[r] = f.worth[r]
		if how == dear {
			factors[r] *= f.worth[r]
		}
	}
	f.scratch.candidates = candidates
	if how == once {
		t.fillInOrder(candidates)
		return t.done()
	}
	for len(candidates) > 0 {
		prices := f.prices[machine]
		if how != priced || prices == nil {
			prices = f.scarcity(t.free)
		}
		var pick int
		if candidates, pick = f.pick(candidates, factors, prices, t.free); pick < 0 {
			break
		}
		if !t.putFrom(candidates[pick]) {
			candidates = slices.Delete(candidates, pick, pick+1)
		}
	}
	return t.done()
}

// fillInOrder adds as much of each row as there is room for, in descending order of worth for the room taken.
func (t *filling) fillInOrder(candidates []int) {
	prices, rate := t.f.scarcity(t.free), t.f.scratch.factors
	for _, r := range candidates {
		size := 0.0
		for d, amount := range t.f.rows[r].request {
			size += float64(max(0, amount)) * prices[d]
		}
		rate[r] /= size
	}
	slices.SortFunc(candidates, func(a, b int) int { return cmp.Or(-cmp.Compare(rate[a], rate[b]), cmp.Compare(a, b)) })
	for _, r := range candidates {
		if !Fits(t.f.rows[r].least, t.free) {
			continue
		}
		for t.putFrom(r) {
		}
	}
}

// scarcity returns the weight of a unit of each resource: the higher, the less of it is free.
func (f *filler) scarcity(free []int64) []float64 {
	for d, amount := range free {
		f.scratch.scarcity[d] = 0
		if amount > 0 {
			f.scratch.scarcity[d] = 1 / float64(amount)
		}
	}
	return f.scratch.scarcity
}

// putFrom adds some pieces of a row, the largest that fit, and reports whether it added any. Of many alike pieces it
// adds only a part, so that other rows have their turn.
func (t *filling) putFrom(r int) bool {
	row, cursors := &t.f.rows[r], t.f.scratch.cursors
	for ; cursors[r] < len(row.members); cursors[r]++ {
		k := row.members[cursors[r]]
		left := t.f.stock.left[k] - t.f.scratch.loaded[k]
		if left <= 0 {
			continue
		}
		n := min(left, Times(t.f.p.Demands[k].Request, t.free))
		if n > 3 {
			n = (n + 2) / 3
		}
		if t.put(k, n) > 0 {
			return true
		}
	}
	return false
}

// pick drops the candidates that have no room, and returns the rest and the position of the best of them, or -1.
func (f *filler) pick(candidates []int, factors, prices []float64, room []int64) ([]int, int) {
	pick, highest := -1, -1.0
	kept := candidates[:0]
next:
	for _, r := range candidates {
		row := &f.rows[r]
		if f.scratch.cursors[r] == len(row.members) {
			continue
		}
		size := 0.0
		for d, amount := range row.request {
			if amount <= 0 {
				continue
			}
			if row.least[d] > room[d] {
				continue next
			}
			size += float64(amount) * prices[d]
		}
		kept = append(kept, r)
		if score := factors[r] / size; score > highest {
			pick, highest = len(kept)-1, score
		}
	}
	return kept, pick
}

// fairShare returns the part of what is left that fits one machine when every demand is reduced by the same factor.
func (f *filler) fairShare(machine int) []Count {
	room := f.p.Machines[machine].Room
	asked := make([]int64, len(room))
	for _, r := range f.members[machine] {
		for _, k := range f.rows[r].members {
			Subtract(asked, f.p.Demands[k].Request, -f.stock.left[k])
		}
	}
	factor := 1.0
	for d, amount := range asked {
		if amount > 0 {
			factor = min(factor, float64(max(0, room[d]))/float64(amount))
		}
	}
	var share []Count
	for _, r := range f.members[machine] {
		for _, k := range f.rows[r].members {
			if n := int(factor * float64(f.stock.left[k])); n > 0 {
				share = append(share, Count{Demand: k, N: n})
			}
		}
	}
	return share
}
