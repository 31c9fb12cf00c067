package plan

import (
	"cmp"
	"slices"
)

// The most valuable load of a small machine can be found exactly, by a table of the best value for each amount of room
// (Gilmore and Gomory, "The theory and computation of knapsack functions", 1966). Amounts are counted in units of which
// every pod takes a whole number, and what is left over of a machine is of no use. Cores and memory are dimensions of the
// table, others as far as it does not become too large. What is no dimension has its price by the knapsack instead, which
// leaves the result an upper limit.

// maxTable bounds the work for a table: its places times the items.
const maxTable = 40_000_000

// grid is the table of one good.
type grid struct {
	b *buyer
	g *good
	// items are those worth looking at.
	items []int
	// dims are the dimensions of the table, the last one the finest, with their units and sizes.
	dims  []int
	units []int64
	sizes []int
	// best is the most value for each amount of room, and last the bundle that was added last to come to it, from 1.
	best    []float64
	last    []int32
	bundles []bundle
}

// bundle is a number of pods of one item, which are taken together or not at all; single ones of an item that there are
// enough of may be taken again and again.
type bundle struct {
	item, n int
	again   bool
	// takes is what it takes of the dimensions, and offset how many places of the table that is.
	takes  []int
	offset int
	value  float64
}

// heaviestByTable returns an upper limit for the worth of any load of the good, and the load that a table finds. It is of
// no use where the table would be too large, and says so.
func (b *buyer) heaviestByTable(g *good) (limit float64, l *load, ok bool) {
	t := &grid{b: b, g: g, items: b.undominated(g)}
	if !t.lay() {
		return 0, nil, false
	}
	for d, room := range g.room {
		asked := func(k int) bool { return b.items[k].request[d] > 0 }
		if !slices.Contains(t.dims, d) && slices.ContainsFunc(t.items, asked) {
			limit += g.prices[d] * float64(max(0, room))
		}
	}
	taken := map[int]int{}
	for _, k := range t.items {
		value := b.worth[k]
		for d, amount := range b.items[k].request {
			if !slices.Contains(t.dims, d) {
				value -= g.prices[d] * float64(amount)
			}
		}
		if value <= 0 {
			continue
		}
		if n := min(b.left[k], b.items[k].times(g.room)); !t.bundle(k, n, value) {
			limit += float64(n) * value
			taken[k] = n
		}
	}
	for i := range t.bundles {
		t.add(int32(i+1), &t.bundles[i])
	}
	return limit + t.best[len(t.best)-1], t.load(taken), true
}

// undominated are the items worth loading: not those in whose place a smaller one of more worth is there often enough.
func (b *buyer) undominated(g *good) []int {
	var items []int
	for j, k := range g.members {
		if b.left[k] == 0 || b.worth[k] <= 0 || g.fit[j] == 0 {
			continue
		}
		if !slices.ContainsFunc(g.members, func(other int) bool { return other != k && b.dominates(g, other, k) }) {
			items = append(items, k)
		}
	}
	return items
}

// dominates says that wherever an item is loaded another might be loaded instead. Of equals the first dominates.
func (b *buyer) dominates(g *good, other, k int) bool {
	x, y := b.items[other], b.items[k]
	if b.worth[other] < b.worth[k] || b.left[other] < x.times(g.room) || x.most > 0 {
		return false
	}
	equal := b.worth[other] == b.worth[k]
	for d, amount := range x.request {
		if amount > y.request[d] {
			return false
		}
		equal = equal && amount == y.request[d]
	}
	return !equal || other < k
}

// lay decides about the dimensions, and says whether the table is of a bearable size.
func (t *grid) lay() bool {
	places := 1
	for d := range t.g.room {
		unit := int64(0)
		for _, k := range t.items {
			unit = gcd(unit, t.b.items[k].request[d])
		}
		needed := d == dimCPU || d == dimMemory
		if unit == 0 || !needed && t.g.prices[d] == 0 {
			continue
		}
		size := int(max(0, t.g.room[d])/unit) + 1
		if size > maxTable || places*size*len(t.items) > maxTable {
			if needed {
				return false
			}
			continue
		}
		t.dims, t.units, t.sizes, places = append(t.dims, d), append(t.units, unit), append(t.sizes, size), places*size
	}
	order := make([]int, len(t.dims))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(t.sizes[x], t.sizes[y]) })
	dims, units, sizes := t.dims, t.units, t.sizes
	t.dims, t.units, t.sizes = nil, nil, nil
	for _, i := range order {
		t.dims, t.units, t.sizes = append(t.dims, dims[i]), append(t.units, units[i]), append(t.sizes, sizes[i])
	}
	t.best, t.last = make([]float64, places), make([]int32, places)
	return len(t.dims) > 0
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// bundle makes bundles of n pods of an item, of 1, 2, 4 and so on, unless they take nothing of the table's dimensions.
func (t *grid) bundle(k, n int, value float64) bool {
	takes, offset := make([]int, len(t.dims)), 0
	for i, d := range t.dims {
		takes[i] = int(t.b.items[k].request[d] / t.units[i])
		offset = offset*t.sizes[i] + takes[i]
	}
	if offset == 0 {
		return false
	}
	if t.b.left[k] > n && t.b.items[k].most == 0 {
		t.bundles = append(t.bundles, bundle{item: k, n: 1, again: true, takes: takes, offset: offset, value: value})
		return true
	}
	for size := 1; n > 0; size *= 2 {
		size = min(size, n)
		several := make([]int, len(takes))
		for i := range takes {
			several[i] = takes[i] * size
		}
		t.bundles = append(t.bundles, bundle{item: k, n: size, takes: several, offset: offset * size, value: value * float64(size)})
		n -= size
	}
	return true
}

// add brings a bundle into the table. What may be taken again builds on places that have it already, and goes through
// them in rising order.
func (t *grid) add(mark int32, u *bundle) {
	outer := len(t.sizes) - 1
	at := make([]int, outer)
	for i := range at {
		if at[i] = t.sizes[i] - 1; at[i] < u.takes[i] {
			return
		}
		if u.again {
			at[i] = u.takes[i]
		}
	}
	width, first := t.sizes[outer], u.takes[outer]
	for {
		row := 0
		for i := range at {
			row = row*t.sizes[i] + at[i]
		}
		row *= width
		if u.again {
			for m := first; m < width; m++ {
				t.improve(row+m, mark, u)
			}
		} else {
			for m := width - 1; m >= first; m-- {
				t.improve(row+m, mark, u)
			}
		}
		i := outer - 1
		for ; i >= 0; i-- {
			if u.again {
				if at[i]++; at[i] < t.sizes[i] {
					break
				}
				at[i] = u.takes[i]
			} else {
				if at[i]--; at[i] >= u.takes[i] {
					break
				}
				at[i] = t.sizes[i] - 1
			}
		}
		if i < 0 {
			return
		}
	}
}

func (t *grid) improve(place int, mark int32, u *bundle) {
	if value := t.best[place-u.offset] + u.value; value > t.best[place] {
		t.best[place], t.last[place] = value, mark
	}
}

// load is what stands in the table's last place, as far as there is room for it.
func (t *grid) load(taken map[int]int) *load {
	for place := len(t.last) - 1; t.last[place] != 0; {
		u := &t.bundles[t.last[place]-1]
		taken[u.item] += u.n
		place -= u.offset
	}
	l, free := &load{good: t.g, price: t.g.price}, slices.Clone(t.g.room)
	for _, k := range t.items {
		it := t.b.items[k]
		if n := min(taken[k], t.b.left[k], it.times(free)); n > 0 {
			take(free, it.request, n)
			l.counts = append(l.counts, count{item: k, n: n})
			l.value += float64(n) * t.b.worth[k]
		}
	}
	if len(l.counts) == 0 {
		return nil
	}
	return l
}
