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
