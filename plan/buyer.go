package plan

import (
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
	// left is how many pods of each item are left to load.
	left []int
	bins []*bin
}

func newBuyer(m *market, items []stocked) *buyer {
	b := &buyer{m: m, items: items, goods: m.goodsFor(items), worth: make([]float64, len(items)), left: make([]int, len(items))}
	return b
}

// run buys until nothing is left or nothing can be bought.
func (b *buyer) run() []*bin {
	for k, it := range b.items {
		b.left[k] = it.left
	}
	program := b.newProgram()
	program.solve(maxRounds)
	copy(b.worth, program.dual)
	for _, whole := range program.wholes() {
		b.commit(&whole.load, whole.copies)
	}
	for {
		load := b.best()
		if load == nil {
			break
		}
		b.commit(load, math.MaxInt32)
	}
	return b.bins
}

// load is a machine and a way to fill it.
type load struct {
	good   *good
	counts []count
	// value is the worth of the content, in dollars per hour.
	value float64
	// price is that of the machine in the zones that the content leaves.
	price float64
}

// count is a number of pods of one item, admitted by one variant.
type count struct {
	item, variant, n int
}

// merit is the worth a load carries for each dollar.
func (l *load) merit() float64 { return l.value / l.price * l.good.handicap }

// best fills the goods by turns with what is left and returns the load of the highest merit, or nil if nothing can be
// bought any more.
func (b *buyer) best() *load {
	var best *load
	for i := range b.goods {
		g := &b.goods[i]
		if !b.wanted(g) {
			continue
		}
		mach := &b.m.machines[g.index]
		if n, why := b.m.sellers[mach.pool].affordable(ResourcesOf(mach.typ.Capacity)); n == 0 {
			b.blame(g, why)
			continue
		}
		for _, bias := range biases {
			if l := b.fill(g, bias); l != nil && (best == nil || l.merit() > best.merit()*(1+1e-9)) {
				best = l
			}
		}
	}
	return best
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

// blame remembers that a limit kept a good from the items it would have served.
func (b *buyer) blame(g *good, why string) {
	for _, k := range g.members {
		if b.items[k].limited == nil {
			b.items[k].limited = map[int]string{}
		}
		b.items[k].limited[b.m.machines[g.index].pool] = why
	}
}

// biases are the ways to fill a machine that are tried: by worth for the room taken alone, and with a preference for
// pods that are worth much, which are harder to place later.
var biases = [...]float64{0, 0.3, 1}

// fill loads one good with what is left. It takes, again and again, pods of the item that is worth most for the room it
// takes, where a resource counts the more the less is left of it. It returns nil if nothing fits.
func (b *buyer) fill(g *good, bias float64) *load {
	mach := &b.m.machines[g.index]
	trial := bin{machine: g.index, zones: mach.zones, free: slices.Clone(g.room), used: make([]int64, len(g.room))}
	l := &load{good: g}
	loaded := make([]int, len(b.items))
	candidates := slices.DeleteFunc(slices.Clone(g.members), func(k int) bool { return b.left[k] == 0 })
	factors := make([]float64, len(b.items))
	for _, k := range candidates {
		factors[k] = b.worth[k]
		if bias > 0 {
			factors[k] *= math.Pow(b.worth[k], bias)
		}
	}
	scarcity := make([]float64, len(g.room))
	for len(candidates) > 0 {
		pick := -1
		candidates, pick = b.pick(candidates, factors, trial.free, scarcity)
		if pick < 0 {
			break
		}
		k := candidates[pick]
		it := b.items[k].item
		n := min(b.left[k]-loaded[k], times(it.request, trial.free))
		if n > 3 {
			n = (n + 2) / 3
		}
		n, variant := trial.admits(b.m, it, n)
		if n > 0 {
			trial.account(it, variant, n)
			loaded[k] += n
			l.add(count{k, variant, n})
			l.value += float64(n) * b.worth[k]
		}
		if n == 0 || loaded[k] == b.left[k] || len(it.class.HostPorts) > 0 {
			candidates = slices.Delete(candidates, pick, pick+1)
		}
	}
	if len(l.counts) == 0 {
		return nil
	}
	l.price = max(g.price, b.m.priceIn(g.index, trial.zones))
	return l
}

// pick drops the candidates that have no room and returns the position of the best of the others, or -1.
func (b *buyer) pick(candidates []int, factors []float64, free []int64, scarcity []float64) ([]int, int) {
	for d, amount := range free {
		scarcity[d] = 0
		if amount > 0 {
			scarcity[d] = 1 / float64(amount)
		}
	}
	pick, highest := -1, -1.0
	kept := candidates[:0]
	for _, k := range candidates {
		request := b.items[k].request
		if !fits(request, free) {
			continue
		}
		kept = append(kept, k)
		size := 0.0
		for d, amount := range request {
			size += float64(amount) * scarcity[d]
		}
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

// commit buys the load as often as wanted, as its content is there and as the pool's limits allow.
func (b *buyer) commit(l *load, copies int) {
	mach := &b.m.machines[l.good.index]
	s := b.m.sellers[mach.pool]
	capacity := ResourcesOf(mach.typ.Capacity)
	allowed, _ := s.affordable(capacity)
	copies = min(copies, allowed)
	for _, c := range l.counts {
		copies = min(copies, b.left[c.item]/c.n)
	}
	s.spend(capacity, copies)
	for range copies {
		bought := &bin{machine: l.good.index, zones: mach.zones, free: slices.Clone(l.good.room), used: make([]int64, len(l.good.room))}
		for _, c := range l.counts {
			bought.put(b.items[c.item].item, c.variant, c.n)
			b.left[c.item] -= c.n
		}
		b.bins = append(b.bins, bought)
	}
}
