package plan

import (
	"cmp"
	"slices"
)

// A plan says how many machines there will be, but the kube-scheduler decides which pod goes to which of them. It knows
// nothing of the plan: it takes pods as they come and spreads them. Machines cut to measure for certain pods are filled
// with others, and pods for which they were bought need a second round of machines. So several ways to buy are
// compared by what they cost in the end: the plan of the least price, and fleets of alike machines that carry the same
// mixture each, with more or less slack. The end is found by playing the scheduler (see scatter.go).

// Bounds of the comparison.
const (
	// maxFleets is how many machines are tried as the only one of a fleet.
	maxFleets = 6
	// remnants is how much dearer pods are that need a second round of machines: they fill none of them, and waited.
	remnants = 1.25
	// crowded is the number of pods that should not all depend on very few machines.
	crowded = 30
)

// slacks are the shares of a fleet's machines that may be kept free.
var slacks = [...]float64{0, 0.01, 0.025, 0.05}

// offer is one way to buy for all items of a buyer.
type offer struct {
	loads []load
	slack float64
	// shaped says that the machines have to have the same shape.
	shaped bool
	// left are the pods for which nothing could be bought.
	left int
	// price is what the loads cost; total is what it comes to in the end, and what a decision is made by.
	price, total float64
}

// run buys until nothing is left or nothing can be bought.
func (b *buyer) run() []*bin {
	all := make([]int, len(b.items))
	for k, it := range b.items {
		all[k] = it.wanted
	}
	best := b.offer(0, false, all, b.lean)
	if b.m.nominates {
		return b.deliver(b.merged(best, all))
	}
	best.total = b.judge(best)
	consider := func(o *offer) {
		if o.left > best.left || o.left == best.left && o.price*b.crowding(o) >= best.total {
			return
		}
		if o.total = b.judge(o); o.left < best.left || o.total < best.total {
			best = o
		}
	}
	for _, g := range b.fleets() {
		for _, slack := range slacks {
			if best.left == 0 && b.fleetPrice(g)/(1-slack) > best.total {
				break
			}
			consider(b.offer(slack, true, all, func() { b.fleet(g) }))
		}
	}
	return b.deliver(best)
}

// offer tries one way to buy for a number of pods of each item, and leaves no trace of it.
func (b *buyer) offer(slack float64, shaped bool, left []int, way func()) *offer {
	purse := b.m.purse()
	copy(b.left, left)
	b.slack, b.shaped, b.bought = slack, shaped, nil
	way()
	o := &offer{slack: slack, shaped: shaped}
	for _, n := range b.left {
		o.left += n
	}
	for i := range b.bought {
		o.loads = append(o.loads, b.trimmed(&b.bought[i]))
		o.price += o.loads[i].price
	}
	b.m.restore(purse)
	return o
}

// trimmed is the load on the cheapest good that holds it and still has the slack.
func (b *buyer) trimmed(l *load) load {
	need := make([]int64, len(l.good.room))
	zones := ^uint64(0)
	for _, c := range l.counts {
		take(need, b.items[c.item].request, -c.n)
		zones &= b.items[c.item].variants[c.variant].zones
	}
	need = roomy(need, l.good.room, b.slack, b.shaped)
	result := *l
	for i := range b.goods {
		g := &b.goods[i]
		if g.price >= result.price || !fits(need, g.room) || b.m.machines[g.index].zones&zones == 0 || !b.sameTerms(g, l) || !b.sameMeans(g, l.good) {
			continue
		}
		if price := b.m.priceIn(g.index, zones); price < result.price {
			result.good, result.price = g, price
		}
	}
	return result
}

// roomy is what a machine has to have for a content, if it is to keep a share free, or the shape of the machine it was
// planned for: then it may not have much less of any resource than that machine has for the same content.
func roomy(content, room []int64, slack float64, shaped bool) []int64 {
	full := 0.0
	for d, amount := range content {
		if amount > 0 && room[d] > 0 {
			full = max(full, float64(amount)/float64(room[d]))
		}
	}
	need := slices.Clone(content)
	for d, amount := range content {
		if amount == 0 {
			continue
		}
		need[d] = max(need[d], min(int64(float64(amount)/(1-slack)), room[d]))
		if shaped && (d == dimCPU || d == dimMemory) {
			need[d] = max(need[d], int64(alike*full*float64(room[d])))
		}
	}
	return need
}

// sameTerms says whether the load's content may go to the good by the same variants, and from the same pool.
func (b *buyer) sameTerms(g *good, l *load) bool {
	if b.m.machines[g.index].pool != b.m.machines[l.good.index].pool {
		return false
	}
	for _, c := range l.counts {
		if !b.items[c.item].variants[c.variant].machines.has(g.index) {
			return false
		}
	}
	return true
}

// sameMeans says that a good takes no more out of reservations, and of limits that are near, than another.
func (b *buyer) sameMeans(g, other *good) bool {
	x, y := &b.m.machines[g.index], &b.m.machines[other.index]
	return x.reservation == y.reservation && x.pool == y.pool && !b.m.tightens(x.pool, g.size, other.size)
}

// fleets are the goods of which a fleet would be cheapest for the whole demand, each machine carrying its share. They
// have to be large enough for every item.
func (b *buyer) fleets() []*good {
	var fleets []*good
	for i := range b.goods {
		if len(b.goods[i].members) == len(b.items) {
			fleets = append(fleets, &b.goods[i])
		}
	}
	slices.SortStableFunc(fleets, func(x, y *good) int { return cmp.Compare(b.fleetPrice(x), b.fleetPrice(y)) })
	return fleets[:min(len(fleets), maxFleets)]
}

// fleetPrice is what a fleet of the good for everything costs at least.
func (b *buyer) fleetPrice(g *good) float64 {
	machines := 0.0
	for d, room := range g.room {
		demand := int64(0)
		for _, it := range b.items {
			demand += it.request[d] * int64(it.wanted)
		}
		if demand > 0 && room > 0 {
			machines = max(machines, float64(demand)/float64(room))
		}
	}
	return machines * g.price
}

// fleet buys alike machines with the same mixture on each.
func (b *buyer) fleet(g *good) {
	demand := make([]int64, len(g.room))
	for _, k := range g.members {
		take(demand, b.items[k].request, -b.left[k])
	}
	prices := make([]float64, len(g.room))
	for d, amount := range demand {
		if amount > 0 && g.room[d] > 0 {
			prices[d] = float64(amount) / float64(g.room[d]) / float64(g.room[d])
		}
	}
	for k := range b.items {
		b.worth[k] = 0
		for d, amount := range b.items[k].request {
			b.worth[k] += prices[d] * float64(amount)
		}
	}
	room := make([]int64, len(g.room))
	for b.wanted(g) && b.affordable(g) {
		l := b.fill(g, biases[len(biases)-1], b.fairShare(g))
		if l == nil {
			return
		}
		b.roomOf(g, room)
		if l.value < nearlyFull*worthOf(prices, room) && b.covered(l) {
			// The last machine would be half empty: smaller ones share the rest.
			l = b.share(g)
		}
		if l == nil {
			return
		}
		b.buy(l, 1)
	}
}

// nearlyFull is the share of a machine's worth from which it counts as full.
const nearlyFull = 0.9

func worthOf(prices []float64, amount []int64) float64 {
	sum := 0.0
	for d, price := range prices {
		sum += price * float64(max(0, amount[d]))
	}
	return sum
}

// covered says whether nothing is left but the load.
func (b *buyer) covered(l *load) bool {
	loaded := 0
	for _, c := range l.counts {
		loaded += c.n
	}
	for _, n := range b.left {
		loaded -= n
	}
	return loaded == 0
}

// share is the load of the highest merit among those that carry a mixture of what is left, on machines of a shape like
// that of the fleet: on others the scheduler would fill one resource and leave the other idle.
func (b *buyer) share(fleet *good) *load {
	var best *load
	for i := range b.goods {
		g := &b.goods[i]
		if len(g.members) < len(b.items) || !similar(g, fleet) || !b.affordable(g) {
			continue
		}
		l := b.fill(g, biases[len(biases)-1], b.fairShare(g))
		if l == nil {
			continue
		}
		l.merit = l.value / l.price * g.handicap * g.handicap
		if best == nil || l.merit > best.merit {
			best = l
		}
	}
	return best
}

// alike is how much of a resource, compared with another machine of the same fleet, is the same shape.
const alike = 0.84

// similar says that a machine has as much memory for each core as another, give or take a little.
func similar(a, b *good) bool {
	x := float64(a.room[dimMemory]) * float64(b.room[dimCPU])
	y := float64(b.room[dimMemory]) * float64(a.room[dimCPU])
	return x > y*alike && x < y/alike
}

// deliver makes bins of the best offer. Pods that mind their company are given their places first. A bin that none of its
// pods may go to is not bought.
func (b *buyer) deliver(o *offer) []*bin {
	bins := make([]*bin, len(o.loads))
	for i := range o.loads {
		l := &o.loads[i]
		mach := &b.m.machines[l.good.index]
		bins[i] = &bin{machine: l.good.index, zones: mach.zones, slack: o.slack, shaped: o.shaped, size: l.good.size,
			free: slices.Clone(l.good.room), used: make([]int64, len(l.good.room)), attach: b.m.book.newRoom(mach.typ.Name)}
		if b.m.hosts > 0 {
			bins[i].tally = make([]int32, b.m.hosts)
		}
		b.m.chooseZone(bins[i], b.items, l.counts)
		done := make([]int, len(l.counts))
		for minding := mindsPods; minding <= mindsNothing; minding++ {
			for j, c := range l.counts {
				done[j] += b.m.fillUp(bins[i], b.items[c.item].demand, c.variant, c.n-done[j], minding)
			}
		}
		bins[i].toward = everywhere
	}
	return slices.DeleteFunc(bins, func(bought *bin) bool {
		if len(bought.content) == 0 {
			return true
		}
		b.m.spend(bought.machine, bought.size, 1)
		return false
	})
}
