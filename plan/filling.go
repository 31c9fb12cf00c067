package plan

import (
	"math"
	"slices"
)

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

func (l *load) add(c count) {
	for i := range l.counts {
		if l.counts[i].item == c.item && l.counts[i].variant == c.variant {
			l.counts[i].n += c.n
			return
		}
	}
	l.counts = append(l.counts, c)
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
