package plan

import (
	"cmp"
	"math"
	"slices"
)

// buyer buys machines for one group of items.
type buyer struct {
	m     *market
	items []stocked
	goods []good
	// worth is what one pod of each item is worth, in dollars per hour.
	worth []float64
	// rates are the worths by the program for all that is to be bought.
	rates []float64
	// left is how many pods of each item are left to load.
	left []int
	// pool are the loads found so far that what is left could still fill.
	pool []load
	// slack is the share of every machine that is kept free.
	slack float64
	// shaped says that machines may be exchanged only for those of the same shape.
	shaped bool
	// bought is what was decided so far.
	bought []load
	// known is the best load of each good by the present worths, when it was last looked for; the merit is an upper bound
	// for as long as pods only become fewer.
	known []load
	order []int
	// dims are the dimensions of which some item takes something, and requests the items' requests of them, one after
	// another.
	dims     []int
	requests []float64
	scratch  scratch
}

// scratch is memory that is used again and again.
type scratch struct {
	// room, at, gradient and free are as many numbers as there are dimensions.
	room, at, gradient, free []float64
	// factors are a number for each item, candidates places of items.
	factors    []float64
	candidates []int
	filling    filling
}

func newBuyer(m *market, items []stocked, goods []good) *buyer {
	b := &buyer{m: m, items: items, goods: goods, worth: make([]float64, len(items)), left: make([]int, len(items))}
	for i := range goods {
		g := &goods[i]
		g.fit = make([]int, len(g.members))
		for j, k := range g.members {
			g.fit[j] = items[k].times(g.room)
		}
	}
	b.measure()
	return b
}

// measure writes the requests of all items down once more, as it is fastest to reckon with them.
func (b *buyer) measure() {
	for d := range b.m.dims.count() {
		if slices.ContainsFunc(b.items, func(it stocked) bool { return it.request[d] > 0 }) {
			b.dims = append(b.dims, d)
		}
	}
	for k := range b.items {
		for _, d := range b.dims {
			b.requests = append(b.requests, float64(b.items[k].request[d]))
		}
	}
	n := len(b.dims)
	numbers := make([]float64, 4*n+len(b.items))
	b.scratch = scratch{room: numbers[:n], at: numbers[n : 2*n], gradient: numbers[2*n : 3*n], free: numbers[3*n : 4*n], factors: numbers[4*n:]}
}

// request is what an item takes of the buyer's dimensions.
func (b *buyer) request(k int) []float64 {
	n := len(b.dims)
	return b.requests[k*n : k*n+n]
}

// again is the share of the worth that may be bought before what is left is valued anew, and revaluations how often that
// is done. The first valuation looks long, for all the others only change the remainder.
const (
	again        = 0.4
	revaluations = 4
	quickRounds  = 12
)

// lean buys for the least price, as if every pod went where it is planned. What the program wants in whole numbers is
// bought at once; then the best load, one by one, until so much is gone that the rest is better valued anew: few pods
// that fill no machine are worth something else than many that do.
func (b *buyer) lean() {
	b.pool = nil
	valued := math.Inf(1)
	var wanted []load
	rounds := maxRounds
	for valuations := 0; ; {
		if total := b.total(); total < (1-again)*valued && valuations <= revaluations {
			valuations++
			b.pool = slices.DeleteFunc(b.pool, b.tooMuch)
			program := b.newProgram()
			program.solve(rounds)
			rounds = quickRounds
			b.value(program.dual)
			if b.rates == nil {
				b.rates = slices.Clone(b.worth)
			}
			valued = b.total()
			wanted = program.wanted()
			b.known = nil
			for _, whole := range program.wholes() {
				b.buy(&whole.load, whole.copies)
			}
		}
		load := b.best(wanted)
		if load == nil {
			return
		}
		b.buy(load, math.MaxInt32)
	}
}

// tooMuch says that a load holds more of an item than is left.
func (b *buyer) tooMuch(l load) bool {
	return slices.ContainsFunc(l.counts, func(c count) bool { return c.n > b.left[c.item] })
}

// value takes the duals as worths. No pod is worth nothing: it has to go somewhere.
func (b *buyer) value(duals []float64) {
	least := math.Inf(1)
	for i := range b.goods {
		least = min(least, b.goods[i].price)
	}
	for k, dual := range duals {
		b.worth[k] = max(dual, least*1e-4)
	}
}

// total is the worth of what is left.
func (b *buyer) total() float64 {
	total := 0.0
	for k, worth := range b.worth {
		total += worth * float64(b.left[k])
	}
	return total
}

// load is a machine and a way to fill it.
type load struct {
	good   *good
	counts []count
	// value is the worth of the content, in dollars per hour.
	value float64
	// price is that of the machine in the zones that the content leaves.
	price float64
	// merit is the worth it carries for each dollar, weighed by preferences.
	merit float64
}

// count is a number of pods of one item, admitted by one variant.
type count struct {
	item, variant, n int
}

// best is the load of the highest merit that can be made of what is left, or nil if nothing can be bought any more. The
// merit of a good can only fall while the worths stay and pods become fewer, so goods are looked at in the order of what
// they were worth last, and only until no other can be better.
func (b *buyer) best(wanted []load) *load {
	var best *load
	consider := func(l *load) {
		if l != nil && (best == nil || l.merit > best.merit*(1+1e-9)) {
			best = l
		}
	}
	if b.known == nil {
		b.known = make([]load, len(b.goods))
		for i := range b.known {
			b.known[i].merit = math.Inf(1)
		}
	}
	for i := range wanted {
		if g := wanted[i].good; b.wanted(g) && b.affordable(g) {
			consider(b.rated(b.fill(g, biases[0], wanted[i].counts), 1))
		}
	}
	order := b.order[:0]
	for i := range b.goods {
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(x, y int) int { return -cmp.Compare(b.known[x].merit, b.known[y].merit) })
	b.order = order
	for _, i := range order {
		known := &b.known[i]
		if best != nil && known.merit <= best.merit*(1+1e-9) {
			break
		}
		switch g := &b.goods[i]; {
		case !b.wanted(g) || !b.affordable(g):
			continue
		case known.good == nil || b.tooMuch(*known):
			if l := b.fullest(g); l != nil {
				*known = *l
			} else {
				*known = load{}
				continue
			}
		}
		consider(known)
	}
	return best
}

// rated weighs what a load carries against its price.
func (b *buyer) rated(l *load, preference float64) *load {
	if l != nil {
		l.merit = l.value / l.price * l.good.handicap * preference
	}
	return l
}

// fullest fills a good by turns and returns the load of the highest merit.
func (b *buyer) fullest(g *good) *load {
	var best *load
	consider := func(l *load) {
		if l != nil && (best == nil || l.merit > best.merit) {
			best = l
		}
	}
	for _, bias := range biases {
		consider(b.rated(b.fill(g, bias, nil), 1))
	}
	b.knapsack(g, knapsackSteps, knapsackDecay)
	consider(b.rated(b.fillPriced(g), 1))
	consider(b.rated(b.fill(g, biases[0], b.fairShare(g)), representative))
	return best
}

// representative is how much a load is preferred that leaves the rest in the same proportions as before.
const representative = 1.004

// fairShare is the part of what is left that fits one good when everybody is cut by the same factor.
func (b *buyer) fairShare(g *good) []count {
	demand := make([]int64, len(g.room))
	for _, k := range g.members {
		take(demand, b.items[k].request, -b.left[k])
	}
	factor := 1.0
	for d, amount := range demand {
		if amount > 0 {
			factor = min(factor, float64(max(0, g.room[d]))/float64(amount))
		}
	}
	var share []count
	for _, k := range g.members {
		if n := int(factor * float64(b.left[k])); n > 0 {
			share = append(share, count{item: k, n: n})
		}
	}
	return share
}

// affordable says whether the limits of the good's pool and its reservation leave room for it.
func (b *buyer) affordable(g *good) bool {
	return b.m.affordable(g.index, g.size) > 0
}

// wanted says whether somebody is left who could use the good.
func (b *buyer) wanted(g *good) bool {
	for _, k := range g.members {
		if b.left[k] > 0 {
			return true
		}
	}
	return false
}

// biases are the ways to fill a machine that are tried: by worth for the room taken alone, and with a preference for
// pods that are worth much, which are harder to place later.
var biases = [...]float64{0, 0.3, 1}

// fill loads one good with what is left, beginning with as much of a given content as there is. Then it takes, again and
// again, pods of the item that is worth most for the room it takes, where a resource counts the more the less is left of
// it. It returns nil if nothing fits.
func (b *buyer) fill(g *good, bias float64, content []count) *load {
	f := b.newFilling(g)
	for _, c := range content {
		f.put(c.item, c.n)
	}
	candidates, factors := b.scratch.candidates[:0], b.scratch.factors
	for _, k := range g.members {
		if b.left[k] == f.loaded[k] {
			continue
		}
		candidates = append(candidates, k)
		factors[k] = b.worth[k]
		if bias > 0 {
			factors[k] *= math.Pow(b.worth[k], bias)
		}
	}
	b.scratch.candidates = candidates
	for len(candidates) > 0 {
		pick := -1
		candidates, pick = b.pick(candidates, factors, f.trial.free)
		if pick < 0 {
			break
		}
		k := candidates[pick]
		n := min(b.left[k]-f.loaded[k], times(b.items[k].request, f.trial.free))
		if n > 3 {
			n = (n + 2) / 3
		}
		n = f.put(k, n)
		if n == 0 || f.loaded[k] == b.left[k] || len(b.items[k].ports) > 0 {
			candidates = slices.Delete(candidates, pick, pick+1)
		}
	}
	return f.done()
}

// filling is a load in the making.
type filling struct {
	b      *buyer
	load   *load
	trial  bin
	loaded []int
}

// newFilling begins a load. The one that was begun before has to be done.
func (b *buyer) newFilling(g *good) *filling {
	f := &b.scratch.filling
	if f.loaded == nil {
		*f = filling{b: b, loaded: make([]int, len(b.items)), trial: bin{free: make([]int64, len(g.room)), used: make([]int64, len(g.room))}}
	}
	clear(f.loaded)
	f.load = &load{good: g}
	free, used := f.trial.free, f.trial.used
	f.trial = bin{machine: g.index, zones: b.m.machines[g.index].zones, free: free, used: used, ports: f.trial.ports[:0], custom: f.trial.custom[:0]}
	b.roomOf(g, free)
	clear(used)
	return f
}

// roomOf writes down what may be filled of a good: all but the slack, and in any case as much as its largest pod needs.
func (b *buyer) roomOf(g *good, room []int64) {
	copy(room, g.room)
	if b.slack == 0 {
		return
	}
	for d := range room {
		largest := int64(0)
		for _, k := range g.members {
			largest = max(largest, b.items[k].request[d])
		}
		room[d] = min(room[d], max(largest, room[d]-int64(b.slack*float64(room[d]))))
	}
}

// done is the finished load, or nil if it is empty.
func (f *filling) done() *load {
	if len(f.load.counts) == 0 {
		return nil
	}
	g := f.load.good
	if !f.b.m.leavesChoice(&f.trial, f.load.counts, f.b.items) {
		return nil
	}
	f.load.price = max(g.price, f.b.m.priceIn(g.index, f.trial.zones))
	return f.load
}

// put adds up to n pods of an item and returns how many there was room for.
func (f *filling) put(k, n int) int {
	it := f.b.items[k].demand
	n = min(n, f.b.left[k]-f.loaded[k], times(it.request, f.trial.free))
	if it.most > 0 {
		n = min(n, it.most-f.loaded[k])
	}
	if n <= 0 {
		return 0
	}
	n, variant := f.trial.admits(f.b.m, it, n)
	if n > 0 {
		f.trial.account(it, variant, n)
		f.loaded[k] += n
		f.load.add(count{k, variant, n})
		f.load.value += float64(n) * f.b.worth[k]
	}
	return n
}

// pick drops the candidates that have no room and returns the position of the best of the others, or -1.
func (b *buyer) pick(candidates []int, factors []float64, room []int64) ([]int, int) {
	free, scarcity := b.scratch.free, b.scratch.gradient
	for i, d := range b.dims {
		free[i], scarcity[i] = float64(room[d]), 0
		if room[d] > 0 {
			scarcity[i] = 1 / free[i]
		}
	}
	pick, highest := -1, -1.0
	kept := candidates[:0]
next:
	for _, k := range candidates {
		size := 0.0
		for i, amount := range b.request(k) {
			if amount > free[i] && amount > 0 {
				continue next
			}
			size += amount * scarcity[i]
		}
		kept = append(kept, k)
		if score := factors[k] / size; score > highest {
			pick, highest = len(kept)-1, score
		}
	}
	return kept, pick
}

func (l *load) add(c count) {
	for i := range l.counts {
		if l.counts[i].item == c.item && l.counts[i].variant == c.variant {
			l.counts[i].n += c.n
			return
		}
	}
	l.counts = append(l.counts, c)
}

// buy decides for the load as often as wanted, as its content is there and as the pool's limits allow.
func (b *buyer) buy(l *load, copies int) {
	allowed := b.m.affordable(l.good.index, l.good.size)
	copies = min(copies, allowed)
	for _, c := range l.counts {
		copies = min(copies, b.left[c.item]/c.n)
	}
	b.m.spend(l.good.index, l.good.size, copies)
	for range copies {
		b.bought = append(b.bought, *l)
		for _, c := range l.counts {
			b.left[c.item] -= c.n
		}
	}
}
