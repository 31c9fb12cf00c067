package plan

import (
	"cmp"
	"math/bits"
	"slices"
)

// Spot capacity is taken back by the pool: an instance type in a zone. What a workload loses at once is what it has in one
// pool, so spot bins are divided among pools that cost almost the same, as evenly as that goes for every workload. A bin's
// claim then lists its own pool and those that no other bin was given.

// spotPool is an instance type in a zone.
type spotPool struct {
	machine, zone int
	price         float64
}

// workload is what pods of one owner are.
type workload struct{ namespace, kind, name string }

func workloadOf(p *Pod) workload { return workload{p.Namespace, p.OwnerKind, p.OwnerName} }

// divideSpot gives each spot bin of a pool its own spot pool where several cost almost the same.
func (m *market) divideSpot(bins []*bin, holders []bitset) {
	var spot []int
	total := map[workload]int{}
	for i, b := range bins {
		if m.machines[b.machine].capacity == spotLast && m.sellers[m.machines[b.machine].pool].Packing != PackingCheapest {
			spot = append(spot, i)
			for w, n := range b.workloads() {
				total[w] += n
			}
		}
	}
	if len(spot) < 2 {
		return
	}
	carried := map[spotPool]map[workload]int{}
	given := map[int][]spotPool{}
	var pools []spotPool
	for n, i := range spot {
		b := bins[i]
		if n == 0 || b.zones != bins[spot[n-1]].zones || &holders[i][0] != &holders[spot[n-1]][0] {
			pools = m.spotPools(b, holders[i])
		}
		if len(pools) < 2 {
			continue
		}
		own := b.workloads()
		share := func(p spotPool) float64 {
			most := 0.0
			for w, n := range own {
				most = max(most, float64(carried[p.place()][w]+n)/float64(total[w]))
			}
			return most
		}
		best := slices.MinFunc(pools, func(x, y spotPool) int { return cmp.Or(cmp.Compare(share(x), share(y)), cmp.Compare(x.price, y.price)) })
		if carried[best.place()] == nil {
			carried[best.place()] = map[workload]int{}
		}
		for w, n := range own {
			carried[best.place()][w] += n
		}
		given[i] = append(given[i], best)
	}
	m.keepToPools(bins, holders, given)
}

// place is the pool without its price.
func (p spotPool) place() spotPool { return spotPool{machine: p.machine, zone: p.zone} }

// workloads are how many pods of each workload are on a bin.
func (b *bin) workloads() map[workload]int {
	counts := map[workload]int{}
	for i := range b.content {
		for _, pod := range b.content[i].pods {
			counts[workloadOf(pod)]++
		}
	}
	return counts
}

// spotPools are those a bin may have at almost the price of the cheapest, that one first.
func (m *market) spotPools(b *bin, holders bitset) []spotPool {
	limit := m.cheapestPrice(holders, b.zones) * (1 + almostEqual)
	var pools []spotPool
	for i := range holders.all {
		for zones := m.machines[i].zones & b.zones; zones != 0; zones &= zones - 1 {
			z := bits.TrailingZeros64(zones)
			if price := m.priceAt(i, z); price <= limit {
				pools = append(pools, spotPool{machine: i, zone: z, price: price})
			}
		}
	}
	slices.SortFunc(pools, func(x, y spotPool) int {
		return cmp.Or(cmp.Compare(x.price, y.price), cmp.Compare(x.machine, y.machine), cmp.Compare(x.zone, y.zone))
	})
	return pools
}

// keepToPools narrows bins to the zone of the pool they were given, and leaves them no type that another bin was given there.
func (m *market) keepToPools(bins []*bin, holders []bitset, given map[int][]spotPool) {
	taken := map[int]map[int]bool{} // by zone
	for _, pools := range given {
		for _, p := range pools {
			if taken[p.zone] == nil {
				taken[p.zone] = map[int]bool{}
			}
			taken[p.zone][p.machine] = true
		}
	}
	for i, pools := range given {
		own := pools[0]
		bins[i].machine, bins[i].zones = own.machine, 1<<own.zone
		kept := holders[i].clone()
		for other := range taken[own.zone] {
			if other != own.machine {
				kept.clear(other)
			}
		}
		for h := range kept.all {
			// What is cheaper than the bin's own type would be launched in its place.
			if h != own.machine && m.priceIn(h, bins[i].zones) < own.price {
				kept.clear(h)
			}
		}
		holders[i] = kept
	}
}
