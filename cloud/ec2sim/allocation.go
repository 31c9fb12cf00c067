package ec2sim

import (
	"cmp"
	"slices"
)

// allocationPlan says how one half of a fleet, on-demand or spot, is spread over the candidates.
type allocationPlan struct {
	strategy   string
	pools      int // InstancePoolsToUseCount of lowest-price
	minTarget  int
	singleType bool
	singleZone bool
}

func parseAllocation(p *params, def string, known ...string) (allocationPlan, error) {
	plan := allocationPlan{
		strategy: p.str("AllocationStrategy"), singleType: *orFalse(p.flag("SingleInstanceType")),
		singleZone: *orFalse(p.flag("SingleAvailabilityZone")),
	}
	setDefault(&plan.strategy, def)
	// The API's old spellings, still accepted.
	switch plan.strategy {
	case "lowestPrice":
		plan.strategy = "lowest-price"
	case "capacityOptimized":
		plan.strategy = "capacity-optimized"
	}
	if !slices.Contains(known, plan.strategy) {
		return plan, invalidValue("Allocation strategy '%s' is not valid", plan.strategy)
	}
	var n numbers
	plan.pools, plan.minTarget = max(1, n.read(p, "InstancePoolsToUseCount")), n.read(p, "MinTargetCapacity")
	return plan, n.err
}

// fill takes capacity from the candidates until it reaches the target or all are exhausted. Candidates are grouped into
// tiers; within a tier, fill takes instances in turn, and it uses a tier only when the earlier ones are exhausted. It
// does not try a candidate again that refused; the reason is in dry.
func fill(target int, plan allocationPlan, candidates []*fleetCandidate, take func(*fleetCandidate) error) {
	usable := slices.DeleteFunc(slices.Clone(candidates), func(k *fleetCandidate) bool { return k.dry != nil })
	left := target
	for _, tier := range plan.tiers(plan.restrict(usable)) {
		for len(tier) > 0 && left > 0 {
			tier = slices.DeleteFunc(tier, func(k *fleetCandidate) bool {
				if left <= 0 {
					return false
				}
				if k.dry = take(k); k.dry == nil {
					left -= k.weight
				}
				return k.dry != nil
			})
		}
	}
}

func made(candidates []*fleetCandidate) int {
	total := 0
	for _, k := range candidates {
		total += len(k.made) * k.weight
	}
	return total
}

// restrict honours SingleInstanceType and SingleAvailabilityZone: it keeps the candidates with the instance type and zone
// of the best one.
func (p allocationPlan) restrict(candidates []*fleetCandidate) []*fleetCandidate {
	if !p.singleType && !p.singleZone || len(candidates) == 0 {
		return candidates
	}
	first := p.tiers(candidates)[0][0]
	return slices.DeleteFunc(slices.Clone(candidates), func(k *fleetCandidate) bool {
		return p.singleType && k.order.itype != first.order.itype || p.singleZone && k.order.subnet.Zone != first.order.subnet.Zone
	})
}

// The price-capacity-optimized strategy prefers pools deeper than deepEnough, and spreads over those within
// priceBand of the cheapest. EC2 does not publish its numbers; these give the behaviour it describes.
const (
	deepEnough = 0.3
	priceBand  = 1.05
)

// tiers sorts the candidates into groups of equal standing, the best first.
func (p allocationPlan) tiers(candidates []*fleetCandidate) [][]*fleetCandidate {
	switch p.strategy {
	case "diversified":
		if len(candidates) == 0 {
			return nil
		}
		return [][]*fleetCandidate{candidates}
	case "prioritized":
		return group(candidates, func(k *fleetCandidate) [2]float64 { return [2]float64{0, k.rank()} })
	case "capacity-optimized":
		return group(candidates, func(k *fleetCandidate) [2]float64 { return [2]float64{0, -k.depth} })
	case "capacity-optimized-prioritized":
		return group(candidates, func(k *fleetCandidate) [2]float64 { return [2]float64{shallow(k, 0.5), k.rank()} })
	case "price-capacity-optimized":
		return mergeBand(group(candidates, func(k *fleetCandidate) [2]float64 { return [2]float64{shallow(k, deepEnough), k.price} }))
	}
	tiers := group(candidates, func(k *fleetCandidate) [2]float64 { return [2]float64{0, k.price} })
	if p.pools > 1 && len(tiers) > 1 {
		n := min(p.pools, len(tiers))
		tiers = append([][]*fleetCandidate{slices.Concat(tiers[:n]...)}, tiers[n:]...)
	}
	return tiers
}

// rank returns the priority: the lowest number comes first, a candidate without priority last.
func (k *fleetCandidate) rank() float64 {
	if k.priority < 0 {
		return 1e18
	}
	return k.priority
}

func shallow(k *fleetCandidate, depth float64) float64 {
	if k.depth < depth {
		return 1
	}
	return 0
}

func group(candidates []*fleetCandidate, key func(*fleetCandidate) [2]float64) [][]*fleetCandidate {
	sorted := slices.Clone(candidates)
	slices.SortStableFunc(sorted, func(a, b *fleetCandidate) int {
		x, y := key(a), key(b)
		return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1]))
	})
	var tiers [][]*fleetCandidate
	for n, k := range sorted {
		if n == 0 || key(k) != key(sorted[n-1]) {
			tiers = append(tiers, nil)
		}
		tiers[len(tiers)-1] = append(tiers[len(tiers)-1], k)
	}
	return tiers
}

// mergeBand merges the first tier with those whose price is within priceBand of it and that are equally deep.
func mergeBand(tiers [][]*fleetCandidate) [][]*fleetCandidate {
	if len(tiers) == 0 {
		return nil
	}
	first := tiers[0][0]
	n := 1
	for n < len(tiers) && tiers[n][0].price <= first.price*priceBand && shallow(tiers[n][0], deepEnough) == shallow(first, deepEnough) {
		n++
	}
	return append([][]*fleetCandidate{slices.Concat(tiers[:n]...)}, tiers[n:]...)
}
