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

// EC2 takes back spot capacity by pool: an instance type in a zone. What a workload can lose at once is what it has in
// one pool, running pods included. EC2 launches where it has the most to spare, and chooses better from a longer list.
// So a claim lists all spot pools except those that would carry more than a third of a workload. For these it leaves
// out the instance type, or else the zone, where that changes the price by almost nothing. Which pool EC2 will take is
// not known; each node of a plan is assumed to get the cheapest that it lists. Where few pools cost almost the same,
// dearer ones count as well: the fewer pools remain, the more a workload depends on each.

const (
	// spotEqual is the fraction by which a spot pool may be dearer than the cheapest and still count as costing the
	// same. spotScarce is the fraction where fewer than spotFew pools do.
	spotEqual  = solve.AlmostEqual
	spotScarce = 0.015
	spotFew    = 3
)

// spotPool is an instance type in a zone.
type spotPool struct{ instanceType, zone string }

// spotShares counts the pods of each workload in each spot pool.
type spotShares struct {
	carried map[model.Workload]map[spotPool]int
	total   map[model.Workload]int
}

// runningShares counts the running pods of the workloads that are planned for. The totals include the planned pods.
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

// full returns the spot pools that carry pods of some workloads and, with more pods of these, would carry over a third
// of one, the fullest first.
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

// divideSpot removes from the choices of spot planned nodes the pools on which their workloads depend too much.
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

// workloads returns the number of pods of each workload on a planned node. Bare pods belong to none.
func (b *PlannedNode) workloads() map[model.Workload]int {
	counts := map[model.Workload]int{}
	for pod := range b.pods {
		if pod.OwnerName != "" {
			counts[pod.Workload()]++
		}
	}
	return counts
}

// spotChoice is the instance types and zones that a planned node may have.
type spotChoice struct {
	*market.Market
	types market.Bitset
	zones uint64
}

// offers yields every machine and zone of the choice.
func (c *spotChoice) offers(yield func(machine, zone int) bool) {
	for i := range c.types.All {
		for z := range (market.Bitset{c.Machines[i].Zones & c.zones}).All {
			if !yield(i, z) {
				return
			}
		}
	}
}

// ceiling returns the price that the cheapest of the choice may cost after spot pools are taken out of it.
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

// cheapest returns the cheapest spot pool of the choice.
func (c *spotChoice) cheapest() (pool spotPool) {
	lowest := math.Inf(1)
	for i, z := range c.offers {
		if price := c.PriceAt(i, z); price < lowest {
			pool, lowest = spotPool{c.Machines[i].Typ.Name, c.Zones[z]}, price
		}
	}
	return pool
}

// leave takes a spot pool out of the choice, by instance type or else by zone, if the cheapest of what is left costs no
// more than a ceiling.
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
