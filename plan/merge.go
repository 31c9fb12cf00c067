package plan

import (
	"cmp"
	"slices"
)

// Buying machine by machine is good at filling each of them, and not at seeing that the last few would all fit on one
// that costs less than they do. So when everything is bought, loads are put together where that is cheaper.

// mergeable is how many loads are looked at: those that carry least for their price.
const mergeable = 32

// merged puts loads of an offer together for as long as a machine for several of them costs less than they do. wanted are
// the pieces the offer was for.
func (b *buyer) merged(o *offer, wanted []int) *offer {
	copy(b.left, wanted)
	slices.SortStableFunc(o.loads, func(x, y load) int { return cmp.Compare(x.value/x.price, y.value/y.price) })
	for len(o.loads) > 1 {
		few := o.loads[:min(len(o.loads), mergeable)]
		union, chosen := b.cheaperUnion(few)
		if union == nil {
			break
		}
		kept := make([]load, 0, len(o.loads))
		for i := range o.loads {
			if !slices.Contains(chosen, i) {
				kept = append(kept, o.loads[i])
			}
		}
		o.loads = append(kept, *union)
	}
	o.price = 0
	for i := range o.loads {
		o.price += o.loads[i].price
	}
	return o
}

// cheaperUnion finds loads whose contents fit one machine that costs less than theirs. From each load on, others join it
// in turn while there is a machine that holds them all; the saving is greatest somewhere on the way.
func (b *buyer) cheaperUnion(loads []load) (*load, []int) {
	var best *load
	var chosen []int
	saved := 0.0
	for first := range loads {
		if !b.movable(&loads[first]) {
			continue
		}
		counts, price, together := slices.Clone(loads[first].counts), loads[first].price, []int{first}
		for next := range loads {
			if next == first || !b.movable(&loads[next]) {
				continue
			}
			more := append(slices.Clone(counts), loads[next].counts...)
			union := b.cheapestFor(more, price+loads[next].price)
			if union == nil {
				continue
			}
			counts, price, together = more, price+loads[next].price, append(together, next)
			if gain := price - union.price; gain > saved*(1+1e-9)+1e-9 {
				best, saved, chosen = union, gain, slices.Clone(together)
			}
		}
	}
	return best, chosen
}

// movable says that the content of a load may go to any machine with room: no limit of a pool was spared by where it is,
// and none of its pods minds which others are on its node.
func (b *buyer) movable(l *load) bool {
	if !b.unlimited(l.good.index) {
		return false
	}
	for _, c := range l.counts {
		for _, lot := range b.items[c.item].lots {
			if lot.bundle || lot.rules.ruledByHost() || !lot.attach.none() {
				return false
			}
		}
	}
	return true
}

// unlimited says that neither a limit of its pool that is near nor a reservation bounds how many of a machine may be
// bought.
func (b *buyer) unlimited(index int) bool {
	near := func(a allowance) bool { return !a.remote }
	return !b.m.limited(index) && !slices.ContainsFunc(b.m.sellers[b.m.machines[index].pool].budget, near)
}

// cheapestFor is the content on the cheapest good that holds it for less than a price, or nil.
func (b *buyer) cheapestFor(counts []count, price float64) *load {
	need := make([]int64, len(b.goods[0].room))
	for _, c := range counts {
		take(need, b.items[c.item].request, -c.n)
	}
	var best *load
	for i := range b.goods {
		g := &b.goods[i]
		if g.price >= price || !fits(need, g.room) || !b.unlimited(g.index) {
			continue
		}
		f, whole := b.newFilling(g), true
		for _, c := range counts {
			whole = whole && g.users.has(c.item) && f.put(c.item, c.n) == c.n
		}
		if !whole {
			continue
		}
		if l := f.done(); l != nil && l.price < price {
			best, price = l, l.price
		}
	}
	return best
}
