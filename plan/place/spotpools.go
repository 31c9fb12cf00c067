package place

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
)

// Spot capacity is taken back by the pool: an instance type in a zone. What a workload loses at once is what it has in
// one pool, running pods included. So a spot planned node goes to the pool that carries the smallest part of its
// workloads, of those that cost almost the same, unless the cheapest pool carries no more than a third of any. Where few
// pools cost almost the same, dearer ones count as well: the fewer remain, the more a workload depends on each. A planned
// node's claim then lists its own pool and those that no other planned node was given.

const (
	// spotEqual is by what part a spot pool may be dearer than the cheapest to count as costing the same, and spotScarce where
	// there are fewer than spotFew of those.
	spotEqual  = almostEqual
	spotScarce = 0.015
	spotFew    = 3
)

// spotPool is an instance type in a zone.
type spotPool struct {
	machine, zone int
	name          poolName
	price         float64
}

// poolName names a spot pool, whoever sells it.
type poolName struct{ instanceType, zone string }

// workload is what pods of one owner are.
type workload struct{ namespace, kind, name string }

func workloadOf(p *model.Pod) workload { return workload{p.Namespace, p.OwnerKind, p.OwnerName} }

// spotShares counts how much of each workload each spot pool carries.
type spotShares struct {
	carried map[poolName]map[workload]int
	total   map[workload]int
}

// runningShares counts what runs now of the workloads that are planned for.
func runningShares(m *market.Market, planned []*PlannedNode) *spotShares {
	s := &spotShares{carried: map[poolName]map[workload]int{}, total: map[workload]int{}}
	for _, b := range planned {
		for w, n := range b.workloads() {
			s.total[w] += n
		}
	}
	for _, n := range m.Book.Snapshot.Nodes {
		for _, pod := range n.Pods {
			w := workloadOf(pod)
			if pod.OwnerName == "" || s.total[w] == 0 {
				continue
			}
			s.total[w]++
			if n.CapacityType == market.CapacityTypes[SpotLast] {
				s.add(poolName{n.InstanceType, n.Zone}, w, 1)
			}
		}
	}
	return s
}

func (s *spotShares) add(pool poolName, w workload, n int) {
	if s.carried[pool] == nil {
		s.carried[pool] = map[workload]int{}
	}
	s.carried[pool][w] += n
}

// with is the largest part of any workload that a pool carries with more pods of some.
func (s *spotShares) with(pool poolName, more map[workload]int) float64 {
	most := 0.0
	for w, n := range more {
		most = max(most, float64(s.carried[pool][w]+n)/float64(s.total[w]))
	}
	return most
}

// divideSpot gives each spot planned node its own spot pool where several cost almost the same.
func divideSpot(m *market.Market, planned []*PlannedNode, holders []market.Bitset) {
	var spot []int
	for i, b := range planned {
		if m.Machines[b.Machine].Capacity == SpotLast && m.Sellers[m.Machines[b.Machine].Pool].Packing != model.PackingCheapest {
			spot = append(spot, i)
		}
	}
	if len(spot) == 0 {
		return
	}
	shares := runningShares(m, planned)
	given := map[int]spotPool{}
	var pools []spotPool
	size := func(i int) int {
		pods := 0
		for j := range planned[i].content {
			pods += len(planned[i].content[j].pods)
		}
		return pods
	}
	slices.SortStableFunc(spot, func(x, y int) int { return -cmp.Compare(size(x), size(y)) })
	for n, i := range spot {
		b := planned[i]
		if n == 0 || b.Zones != planned[spot[n-1]].Zones || &holders[i][0] != &holders[spot[n-1]][0] {
			pools = spotPools(m, b, holders[i])
		}
		if len(pools) == 0 {
			continue
		}
		own := b.workloads()
		best, least, most := pools[0], math.Inf(1), 0.0
		for _, p := range pools {
			share := shares.with(p.name, own)
			most = max(most, share)
			if share < least {
				best, least = p, share
			}
		}
		if cheapest := shares.with(pools[0].name, own); cheapest <= 1.0/concentration {
			best = pools[0]
		}
		for w, n := range own {
			shares.add(best.name, w, n)
		}
		if len(spot) > 1 || least < most {
			given[i] = best
		}
	}
	keepToPools(m, planned, holders, given)
}

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
	cheapest := market.CheapestPrice(m, holders, b.Zones)
	var pools []spotPool
	for i := range holders.All {
		for zones := m.Machines[i].Zones & b.Zones; zones != 0; zones &= zones - 1 {
			z := bits.TrailingZeros64(zones)
			if price := m.PriceAt(i, z); price <= cheapest*(1+spotScarce) {
				pools = append(pools, spotPool{machine: i, zone: z, name: poolName{m.Machines[i].Typ.Name, m.Zones[z]}, price: price})
			}
		}
	}
	slices.SortFunc(pools, func(x, y spotPool) int {
		return cmp.Or(cmp.Compare(x.price, y.price), cmp.Compare(x.machine, y.machine), cmp.Compare(x.zone, y.zone))
	})
	n := 0
	for n < len(pools) && (n < spotFew || pools[n].price <= cheapest*(1+spotEqual)) {
		n++
	}
	return pools[:n]
}

// keepToPools narrows planned nodes to the zone of the pool they were given, and leaves them no type that another planned
// node was given there.
func keepToPools(m *market.Market, planned []*PlannedNode, holders []market.Bitset, given map[int]spotPool) {
	taken := map[int]map[int]bool{} // by zone
	for _, p := range given {
		if taken[p.zone] == nil {
			taken[p.zone] = map[int]bool{}
		}
		taken[p.zone][p.machine] = true
	}
	for i, own := range given {
		planned[i].Machine, planned[i].Zones = own.machine, 1<<own.zone
		kept := holders[i].Clone()
		for other := range taken[own.zone] {
			if other != own.machine {
				kept.Clear(other)
			}
		}
		for h := range kept.All {
			// What comes before the planned node's own type would be launched in its place.
			if price := m.PriceIn(h, planned[i].Zones); price < own.price || price == own.price && h < own.machine {
				kept.Clear(h)
			}
		}
		holders[i] = kept
	}
}
