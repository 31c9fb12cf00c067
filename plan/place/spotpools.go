package place

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
)

// Spot capacity is taken back by the pool: an instance type in a zone. What a workload loses at once is what it has in
// one pool, so spot planned nodes are divided among pools that cost almost the same, as evenly as that goes for every
// workload. A planned node's claim then lists its own pool and those that no other planned node was given.

// spotPool is an instance type in a zone.
type spotPool struct {
	machine, zone int
	price         float64
}

// workload is what pods of one owner are.
type workload struct{ namespace, kind, name string }

func workloadOf(p *model.Pod) workload { return workload{p.Namespace, p.OwnerKind, p.OwnerName} }

// divideSpot gives each spot planned node of a pool its own spot pool where several cost almost the same.
func divideSpot(m *market.Market, planned []*PlannedNode, holders []market.Bitset) {
	var spot []int
	total := map[workload]int{}
	for i, b := range planned {
		if m.Machines[b.Machine].Capacity == SpotLast && m.Sellers[m.Machines[b.Machine].Pool].Packing != model.PackingCheapest {
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
		b := planned[i]
		if n == 0 || b.Zones != planned[spot[n-1]].Zones || &holders[i][0] != &holders[spot[n-1]][0] {
			pools = spotPools(m, b, holders[i])
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
	keepToPools(m, planned, holders, given)
}

// place is the pool without its price.
func (p spotPool) place() spotPool { return spotPool{machine: p.machine, zone: p.zone} }

// workloads are how many pods of each workload are on a planned node.
func (b *PlannedNode) workloads() map[workload]int {
	counts := map[workload]int{}
	for i := range b.content {
		for _, pod := range b.content[i].pods {
			counts[workloadOf(pod)]++
		}
	}
	return counts
}

// spotPools are those a planned node may have at almost the price of the cheapest, that one first.
func spotPools(m *market.Market, b *PlannedNode, holders market.Bitset) []spotPool {
	limit := market.CheapestPrice(m, holders, b.Zones) * (1 + almostEqual)
	var pools []spotPool
	for i := range holders.All {
		for zones := m.Machines[i].Zones & b.Zones; zones != 0; zones &= zones - 1 {
			z := bits.TrailingZeros64(zones)
			if price := m.PriceAt(i, z); price <= limit {
				pools = append(pools, spotPool{machine: i, zone: z, price: price})
			}
		}
	}
	slices.SortFunc(pools, func(x, y spotPool) int {
		return cmp.Or(cmp.Compare(x.price, y.price), cmp.Compare(x.machine, y.machine), cmp.Compare(x.zone, y.zone))
	})
	return pools
}

// keepToPools narrows planned nodes to the zone of the pool they were given, and leaves them no type that another planned
// node was given there.
func keepToPools(m *market.Market, planned []*PlannedNode, holders []market.Bitset, given map[int][]spotPool) {
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
		planned[i].Machine, planned[i].Zones = own.machine, 1<<own.zone
		kept := holders[i].Clone()
		for other := range taken[own.zone] {
			if other != own.machine {
				kept.Clear(other)
			}
		}
		for h := range kept.All {
			// What is cheaper than the planned node's own type would be launched in its place.
			if h != own.machine && m.PriceIn(h, planned[i].Zones) < own.price {
				kept.Clear(h)
			}
		}
		holders[i] = kept
	}
}
