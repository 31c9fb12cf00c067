package place

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/solve"
)

// Spot capacity is taken back by the pool: an instance type in a zone. What a workload loses at once is what it has in
// one pool, running pods included. EC2 launches where there is the most to spare, and the longer the list the better it
// can choose, so a claim lists all spot pools but those that carry more than a third of a workload already: it leaves out
// their instance type, or else their zone, where that changes the price by almost nothing. Which pool EC2 will take is not
// known; of the nodes that are planned together, each is taken to get the cheapest that it lists. Where few pools cost
// almost the same, dearer ones count as well: the fewer remain, the more a workload depends on each.

const (
	// spotEqual is by what part a spot pool may be dearer than the cheapest to count as costing the same, and spotScarce where
	// there are fewer than spotFew of those.
	spotEqual  = solve.AlmostEqual
	spotScarce = 0.015
	spotFew    = 3
)

// spotPool is an instance type in a zone.
type spotPool struct{ instanceType, zone string }

// spotShares counts how much of each workload each spot pool carries.
type spotShares struct {
	carried map[model.Workload]map[spotPool]int
	total   map[model.Workload]int
}

// runningShares counts what runs now of the workloads that are planned for.
func runningShares(m *market.Market, planned []*PlannedNode) *spotShares {
	s := &spotShares{carried: map[model.Workload]map[spotPool]int{}, total: map[model.Workload]int{}}
	for _, b := range planned {
		for w, n := range b.workloads() {
			s.total[w] += n
			s.carried[w] = map[spotPool]int{}
		}
	}
	for _, n := range m.Book.Snapshot.Nodes {
		for _, pod := range n.Pods {
			if w := pod.Workload(); s.total[w] > 0 {
				s.total[w]++
				s.carried[w][spotPool{n.InstanceType, n.Zone}] += int(model.Flag(n.CapacityType == market.CapacityTypes[Spot]))
			}
		}
	}
	return s
}

// full are the spot pools that carry pods of some workloads and would carry more than a third of one with these, the
// fullest first.
func (s *spotShares) full(more map[model.Workload]int) []spotPool {
	share := map[spotPool]float64{}
	for w, n := range more {
		for pool, carried := range s.carried[w] {
			share[pool] = max(share[pool], float64(carried+n)/float64(s.total[w]))
		}
	}
	maps.DeleteFunc(share, func(_ spotPool, part float64) bool { return part <= 1.0/concentration })
	return slices.SortedFunc(maps.Keys(share), func(x, y spotPool) int {
		return cmp.Or(-cmp.Compare(share[x], share[y]), cmp.Compare(x.instanceType, y.instanceType), cmp.Compare(x.zone, y.zone))
	})
}

// divideSpot takes from the choice of spot planned nodes the pools that their workloads depend on too much.
func divideSpot(m *market.Market, planned []*PlannedNode, holders []market.Bitset) {
	var spot []int
	for i, b := range planned {
		if m.Machines[b.Machine].Capacity == Spot && market.SellerOf(m, b.Machine).Packing != model.PackingCheapest {
			spot = append(spot, i)
		}
	}
	if len(spot) == 0 {
		return
	}
	shares := runningShares(m, planned)
	size := func(i int) (pods int) {
		for range planned[i].pods {
			pods++
		}
		return pods
	}
	slices.SortStableFunc(spot, func(x, y int) int { return -cmp.Compare(size(x), size(y)) })
	for _, i := range spot {
		own := planned[i].workloads()
		if len(own) == 0 {
			continue
		}
		choice := spotChoice{Market: m, types: holders[i], zones: planned[i].Zones}
		ceiling := choice.ceiling()
		for _, pool := range shares.full(own) {
			choice.leave(pool, ceiling)
		}
		pool := choice.cheapest()
		for w, n := range own {
			shares.carried[w][pool] += n
		}
		holders[i], planned[i].Zones = choice.types, choice.zones
	}
}

// workloads are how many pods of each workload are on a planned node. Bare pods are of none.
func (b *PlannedNode) workloads() map[model.Workload]int {
	counts := map[model.Workload]int{}
	for pod := range b.pods {
		if pod.OwnerName != "" {
			counts[pod.Workload()]++
		}
	}
	return counts
}

// spotChoice is what a planned node may be: instance types and zones.
type spotChoice struct {
	*market.Market
	types market.Bitset
	zones uint64
}

// offers calls yield for every machine and zone of the choice.
func (c *spotChoice) offers(yield func(machine, zone int) bool) {
	for i := range c.types.All {
		for z := range (market.Bitset{c.Machines[i].Zones & c.zones}).All {
			if !yield(i, z) {
				return
			}
		}
	}
}

// ceiling is the price that the cheapest of the choice must not exceed when spot pools are taken out of it.
func (c *spotChoice) ceiling() float64 {
	lowest, equal := market.CheapestPrice(c.Market, c.types, c.zones), 0
	for i, z := range c.offers {
		if c.PriceAt(i, z) <= lowest*(1+spotEqual) {
			equal++
		}
	}
	if equal < spotFew {
		return lowest * (1 + spotScarce)
	}
	return lowest * (1 + spotEqual)
}

// cheapest is the cheapest spot pool of the choice.
func (c *spotChoice) cheapest() (pool spotPool) {
	lowest := math.Inf(1)
	for i, z := range c.offers {
		if price := c.PriceAt(i, z); price < lowest {
			pool, lowest = spotPool{c.Machines[i].Typ.Name, c.Zones[z]}, price
		}
	}
	return pool
}

// leave takes a spot pool out of the choice, with its instance type or with its zone, if what is left costs no more than a
// ceiling.
func (c *spotChoice) leave(pool spotPool, ceiling float64) {
	z := slices.Index(c.Zones, pool.zone)
	if z < 0 || c.zones&(1<<z) == 0 {
		return
	}
	types, zones := c.types.Clone(), c.zones&^(1<<z)
	types.DeleteFunc(func(i int) bool { return c.Machines[i].Typ.Name == pool.instanceType })
	switch {
	case market.CheapestPrice(c.Market, types, c.zones) <= ceiling:
		c.types = types
	case market.CheapestPrice(c.Market, c.types, zones) <= ceiling:
		c.zones = zones
	}
}
