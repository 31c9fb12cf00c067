package plan

import (
	"cmp"
	"math"
	"slices"
)

// What is one pod worth? A batch of pods is served at the least cost by the solution of
//
//	minimize   Σ price(l)·x(l)          over all loads l that fit a machine
//	subject to Σ count(l,k)·x(l) = n(k) for every item k
//
// (Gilmore and Gomory, "A linear programming approach to the cutting-stock problem", 1961). There are far too many loads
// to write down, so they are generated: the duals of the loads known so far say what a pod of each item is worth; filling
// the machines by that worth finds loads that carry more than they cost; they enter the program, and the worths fall,
// until no machine can be filled with more worth than its price. The worths then guide all further buying, and what the
// solution wants in whole numbers is bought at once.

// program is the linear program in revised simplex form: one row per item, and the basis's inverse.
type program struct {
	b       *buyer
	basis   []load
	level   []float64 // how often each load of the basis is bought
	inverse []float64 // rows × rows
	dual    []float64
	// direction is how a step changes the levels.
	direction []float64
	// promise is what each good could carry at most, for each dollar; order are the goods by it.
	promise []float64
	order   []int
}

// Bounds of the work: rounds of filling all goods, and steps times the square of the rows.
const (
	maxRounds = 60
	maxWork   = 1 << 26
	// Rounds of searching when filling finds nothing more, and branches each search may take.
	maxSearches = 6
	maxBranches = 600
	// enough is how much more than its price a load has to carry to be worth another step.
	enough = 1.002
	// smoothing is the weight of the best duals so far.
	smoothing = 0.5
	// Steps of the knapsack, which starts where it ended the last time.
	knapsackSteps = 40
	knapsackDecay = 0.85
	// offered is how many goods are filled in one round: those that promise most.
	offered = 12
	// near is how close to the bound that is proven the program has to come.
	near = 1.004
)

// newProgram starts with each item on machines of its own: the cheapest per pod.
func (b *buyer) newProgram() *program {
	n := len(b.items)
	p := &program{b: b, basis: make([]load, n), level: make([]float64, n), inverse: make([]float64, n*n), dual: make([]float64, n)}
	for k := range b.items {
		cheapest := p.alone(k)
		if math.IsInf(cheapest, 1) {
			p.inverse[k*n+k] = 1 // nothing is left of the item, or nothing may be bought for it
			continue
		}
		size := float64(p.basis[k].counts[0].n)
		p.inverse[k*n+k] = 1 / size
		p.level[k] = float64(b.left[k]) / size
		p.dual[k] = cheapest
	}
	return p
}

// alone puts the cheapest machines for one item into the basis, and returns what they cost per piece.
func (p *program) alone(k int) float64 {
	b, cheapest := p.b, math.Inf(1)
	if b.left[k] == 0 {
		return cheapest
	}
	for i := range b.goods {
		g := &b.goods[i]
		if !g.users.has(k) {
			continue
		}
		// Room says how many there are at most; whether they may be there is worth asking only if it could be cheapest.
		if n := min(b.left[k], b.items[k].times(g.room)); n == 0 || g.price/float64(n) >= cheapest {
			continue
		}
		f := b.newFilling(g)
		f.put(k, b.left[k])
		if l := f.done(); l != nil && l.price/float64(l.counts[0].n) < cheapest {
			cheapest = l.price / float64(l.counts[0].n)
			p.basis[k] = *l
		}
	}
	return cheapest
}

// solve generates loads until none is worth its step, or the work is too much. The duals swing wildly at first, so loads
// are sought halfway between them and the best ones so far, which are those that proved the highest bound (Wentges,
// "Weighted Dantzig-Wolfe decomposition for linear mixed-integer programming", 1997).
func (p *program) solve(rounds int) {
	rows := len(p.dual)
	budget := maxWork / max(1, rows*rows)
	searches := maxSearches
	for p.enterAll(p.b.pool, &budget) {
		p.discard()
	}
	center, highest, smooth := slices.Clone(p.dual), 0.0, false
	for range rounds {
		p.discard()
		for k := range p.dual {
			p.b.worth[k] = max(0, p.dual[k])
			if smooth {
				p.b.worth[k] = smoothing*center[k] + (1-smoothing)*p.b.worth[k]
			}
		}
		loads, scale := p.offers()
		if bound := scale * p.b.total(); bound > highest {
			highest = bound
			for k, worth := range p.b.worth {
				center[k] = scale * worth
			}
		}
		if p.cost() <= highest*near {
			return
		}
		p.b.pool = append(p.b.pool, loads...)
		stepped := p.enterAll(loads, &budget)
		for stepped && p.enterAll(p.b.pool, &budget) {
			// Loads of earlier rounds cost nothing to find.
		}
		if !stepped && !smooth && searches > 0 {
			searches--
			stepped = p.enterAll(p.searched(), &budget)
		}
		if budget == 0 || !stepped && !smooth {
			return
		}
		smooth = stepped
	}
}

// cost is that of the solution so far.
func (p *program) cost() float64 {
	cost := 0.0
	for i, level := range p.level {
		cost += level * p.basis[i].price
	}
	return cost
}

// searched are loads that simple filling does not find: few large pods on a machine have to be combined with care.
func (p *program) searched() []load {
	var loads []load
	for i := range p.b.goods {
		_, found := p.b.heaviest(&p.b.goods[i], knapsackSteps, knapsackDecay, maxBranches)
		if found == nil {
			continue
		}
		// The search looks at room alone; filling knows ports, zones and labels as well.
		f := p.b.newFilling(found.good)
		for _, c := range found.counts {
			f.put(c.item, c.n)
		}
		if l := f.done(); l != nil {
			loads = append(loads, *l)
		}
	}
	p.b.pool = append(p.b.pool, loads...)
	return loads
}

// enterAll brings the loads into the basis that are worth a step, and says whether there were any.
func (p *program) enterAll(loads []load, budget *int) bool {
	entered := false
	for i := range loads {
		if *budget > 0 && p.carries(&loads[i]) > loads[i].price*enough && p.enter(&loads[i]) {
			entered = true
			*budget--
		}
	}
	return entered
}

// discard brings the slack of items with a negative worth into the basis: to have one pod less is never dearer.
func (p *program) discard() {
	for range len(p.dual) {
		k := slices.IndexFunc(p.dual, func(worth float64) bool { return worth < -1e-12 })
		if k < 0 || !p.enter(&load{counts: []count{{item: k, n: -1}}}) {
			return
		}
	}
}

// offers fills the goods that promise most at the buyer's worths. It returns the loads, the most profitable first, and
// by what the worths have to be multiplied so that no load of any good can carry more than its price.
func (p *program) offers() (loads []load, scale float64) {
	b := p.b
	if p.promise == nil {
		p.promise, p.order = make([]float64, len(b.goods)), make([]int, len(b.goods))
	}
	scale = math.Inf(1)
	for i := range b.goods {
		g := &b.goods[i]
		p.order[i] = i
		p.promise[i] = b.limit(g) / g.price
		if p.promise[i] > 0 {
			scale = min(scale, 1/p.promise[i])
		}
	}
	if math.IsInf(scale, 1) {
		return nil, 0
	}
	slices.SortStableFunc(p.order, func(x, y int) int { return -cmp.Compare(p.promise[x], p.promise[y]) })
	for _, i := range p.order[:min(offered, len(p.order))] {
		if p.promise[i] <= 1 {
			break
		}
		var best *load
		g := &b.goods[i]
		for _, l := range [...]*load{b.fillPriced(g), b.fill(g, biases[0], nil)} {
			if l != nil && (best == nil || l.value > best.value) {
				best = l
			}
		}
		if best != nil && best.value > 0 {
			loads = append(loads, *best)
		}
	}
	slices.SortStableFunc(loads, func(x, y load) int { return -cmp.Compare(x.value/x.price, y.value/y.price) })
	return loads, scale
}

// carries is what a load is worth by the present duals.
func (p *program) carries(l *load) float64 {
	value := 0.0
	for _, c := range l.counts {
		value += float64(c.n) * p.dual[c.item]
	}
	return value
}

// enter brings a load into the basis.
func (p *program) enter(l *load) bool {
	n := len(p.dual)
	if p.direction == nil {
		p.direction = make([]float64, n)
	}
	direction := p.direction
	clear(direction)
	for i := range n {
		row := p.inverse[i*n : (i+1)*n]
		for _, c := range l.counts {
			direction[i] += row[c.item] * float64(c.n)
		}
	}
	leaving, ratio := -1, math.Inf(1)
	for i, d := range direction {
		if d > 1e-9 && p.level[i]/d < ratio {
			leaving, ratio = i, p.level[i]/d
		}
	}
	if leaving < 0 {
		return false
	}
	gain := l.price - p.carries(l)
	pivot := p.inverse[leaving*n : (leaving+1)*n]
	for r := range pivot {
		pivot[r] /= direction[leaving]
	}
	p.level[leaving] = ratio
	for i, d := range direction {
		if i == leaving || d == 0 {
			continue
		}
		row := p.inverse[i*n : (i+1)*n]
		for r := range row {
			row[r] -= d * pivot[r]
		}
		p.level[i] = max(0, p.level[i]-d*ratio)
	}
	for r := range p.dual {
		p.dual[r] += gain * pivot[r]
	}
	p.basis[leaving] = *l
	return true
}

// whole is a load to be bought a whole number of times.
type whole struct {
	load
	copies int
}

// wholes are the whole parts of the solution.
func (p *program) wholes() []whole {
	var wholes []whole
	for i, level := range p.level {
		if copies := int(level + 1e-6); copies > 0 && p.basis[i].good != nil {
			wholes = append(wholes, whole{p.basis[i], copies})
		}
	}
	slices.SortStableFunc(wholes, func(x, y whole) int { return -cmp.Compare(x.copies, y.copies) })
	return wholes
}

// wanted are the loads of the solution, those wanted most nearly once more than in whole numbers first.
func (p *program) wanted() []load {
	var order []int
	part := func(i int) float64 { return p.level[i] - math.Floor(p.level[i]+1e-6) }
	for i := range p.level {
		if p.basis[i].good != nil && part(i) > 1e-3 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(x, y int) int { return -cmp.Compare(part(x), part(y)) })
	loads := make([]load, len(order))
	for n, i := range order {
		loads[n] = p.basis[i]
	}
	return loads
}
