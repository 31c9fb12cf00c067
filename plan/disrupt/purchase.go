package disrupt

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/place"
)

// shelveMachines sorts what can be bought: by weight of the pool, reserved before all others, price.
func shelveMachines(f *Simulation) {
	m := f.Distribution.Market
	for first := 0; first < len(m.Sellers); {
		last := first + 1
		for last < len(m.Sellers) && market.Weight(m.Sellers[last].NodePool) == market.Weight(m.Sellers[first].NodePool) {
			last++
		}
		var shelf [len(market.CapacityTypes)][]int
		for i := m.Sellers[first].First; i < m.Sellers[last-1].Last; i++ {
			if m.Machines[i].Zones != 0 {
				at := min(m.Machines[i].Capacity, place.SpotLast) // spot and on-demand compete by price
				shelf[at] = append(shelf[at], i)
			}
		}
		for c := range shelf {
			slices.SortStableFunc(shelf[c], func(a, b int) int { return cmp.Compare(m.Machines[a].Price, m.Machines[b].Price) })
		}
		f.shelves = append(f.shelves, shelf)
		first = last
	}
}

// buyFor buys for what a trial has found no place for.
func buyFor(f *Simulation, podGroups []*place.PodGroup, may Purchase) (why string, cause model.Cause) {
	d := f.Distribution
	if i := slices.IndexFunc(podGroups, func(it *place.PodGroup) bool { return len(it.Pods) > 0 }); i >= 0 {
		return noRoomFor(podGroups[i])
	}
	if len(d.Chunks) == 0 {
		return "", ""
	}
	b, why, cause := oneFor(f, d.Chunks, may.terms)
	switch {
	case b != nil:
		claim, why := replacementClaim(f, b, may.terms)
		if why != "" {
			return why, model.CausePrice
		}
		d.Market.Spend(b.Machine, b.Size, 1)
		f.tried.Claims = []model.Claim{claim}
		return "", ""
	case may.Most == 1:
		return why, cause
	}
	return buyMany(f, podGroups)
}

// buyMany buys as a plan does.
func buyMany(f *Simulation, podGroups []*place.PodGroup) (why string, cause model.Cause) {
	d := f.Distribution
	planned := place.Buy(d.Market, nil, d.Chunks)
	for place.ChunkAgain(d, podGroups) {
		planned = place.Buy(d.Market, planned, d.Chunks)
	}
	for _, it := range podGroups {
		if len(it.Pods) > 0 {
			why := fmt.Sprintf("nothing can be bought for pod %s", it.Pods[0].Key())
			if reasons := place.Explain(d.Market, it); len(reasons) > 0 {
				why += ": " + reasons[0].Message
			}
			return why, model.CauseRoom
		}
	}
	f.tried.Claims = place.Claims(d.Market, planned)
	return "", ""
}

const limitsInTheWay = "its NodePool's limits leave no room for a replacement beside it"

// oneFor is the cheapest machine that takes all demand chunks, filled with them. Pools are tried by weight, and reserved
// machines before others: the first that has such a machine at all decides.
func oneFor(f *Simulation, chunks []*place.DemandChunk, on *terms) (best *place.PlannedNode, why string, cause model.Cause) {
	m := f.Distribution.Market
	need, zones, allowed := make([]int64, m.Dims.Count()), ^uint64(0), chunks[0].Allowed.Clone()
	for _, l := range chunks {
		market.Take(need, l.Request, -l.Left())
		allowed.Intersect(l.Allowed)
		zones &= l.ZonesOfChunk()
	}
	limited := false
	for _, shelf := range f.shelves {
		for capacity := range shelf {
			price := math.Inf(1)
			for _, i := range shelf[capacity] {
				mach := &m.Machines[i]
				if mach.Price >= price {
					break
				}
				if !allowed.Has(i) || mach.Zones&zones == 0 || !market.Fits(need, mach.Usable) {
					continue
				}
				if on != nil && mach.Price >= on.below && limited {
					return nil, limitsInTheWay, model.CauseRoom
				}
				if on != nil && mach.Price >= on.below {
					return nil, fmt.Sprintf("the cheapest replacement, %s %s at $%.4f an hour, saves nothing", mach.Typ.Name, market.CapacityTypes[mach.Capacity], m.PriceIn(i, zones)), model.CausePrice
				}
				if m.Affordable(i, mach.Size) == 0 {
					limited = true
					continue
				}
				if p := m.PriceIn(i, zones); p < price {
					if b := filledMachine(f, i, zones, chunks); b != nil {
						best, price = b, p
					}
				}
			}
			if best != nil {
				return filledWith(f, best, chunks), "", ""
			}
		}
	}
	if limited {
		return nil, limitsInTheWay, model.CauseRoom
	}
	return nil, fmt.Sprintf("no single node would take the pods that find no room elsewhere: %s", names(podsOfChunks(chunks))), model.CauseRoom
}

func podsOfChunks(chunks []*place.DemandChunk) []*model.Pod {
	var pods []*model.Pod
	for _, l := range chunks {
		for i := range l.Content {
			pods = append(pods, l.Content[i].Pods...)
		}
	}
	return pods
}

// filledMachine is a machine with all demand chunks on it, or nil if it does not take them. The demand chunks stay as
// they were.
func filledMachine(f *Simulation, index int, zones uint64, chunks []*place.DemandChunk) *place.PlannedNode {
	pods := make([][]*model.Pod, 0, len(chunks))
	for _, l := range chunks {
		for i := range l.Content {
			pods = append(pods, l.Content[i].Pods)
		}
	}
	b := fillMachine(f, index, zones, chunks)
	for _, l := range chunks {
		for i := range l.Content {
			l.Content[i].Pods, pods = pods[0], pods[1:]
		}
	}
	return b
}

// filledWith fills for good what was only tried.
func filledWith(f *Simulation, b *place.PlannedNode, chunks []*place.DemandChunk) *place.PlannedNode {
	return fillMachine(f, b.Machine, b.Zones, chunks)
}

func fillMachine(f *Simulation, index int, zones uint64, chunks []*place.DemandChunk) *place.PlannedNode {
	m := f.Distribution.Market
	mach := &m.Machines[index]
	b := &place.PlannedNode{Machine: index, Zones: mach.Zones & zones, Size: mach.Size,
		Free: slices.Clone(mach.Usable), Used: make([]int64, len(mach.Usable)), Attach: m.Book.NewRoom(mach.Typ.Name)}
	if m.Hosts > 0 {
		b.Tally = make([]int32, m.Hosts)
	}
	supply := make([]place.Supplied, len(chunks))
	for i, l := range chunks {
		supply[i] = place.Supplied{DemandChunk: l, Stock: l.Allowed, Quota: math.MaxInt}
	}
	for _, demand := range place.DemandsOf(m, supply) {
		for left := demand.Pieces(); left > 0; left = demand.Pieces() {
			n, v := b.Admits(m, demand.Demand, min(left, market.Times(demand.Request, b.Free)))
			done := 0
			for minding := place.MindsPods; n > 0 && minding <= place.MindsNothing; minding++ {
				done += place.FillUp(m, b, demand.Demand, v, n-done, minding)
			}
			if done == 0 {
				return nil
			}
		}
	}
	if s := m.Sellers[mach.Pool]; len(s.Minimums) > 0 && m.Policy != model.MinValuesBestEffort && !market.Enough(m, s, place.Holders(m, s, b)) {
		return nil
	}
	return b
}

// replacementClaim makes a claim of a planned node that meets the terms, whichever of its types the launch comes to.
func replacementClaim(f *Simulation, b *place.PlannedNode, on *terms) (model.Claim, string) {
	m := f.Distribution.Market
	g := place.Groups(m, m.Sellers[m.Machines[b.Machine].Pool], []*place.PlannedNode{b})[0]
	if on == nil {
		return place.ClaimsOf(m, g)[0], ""
	}
	cheapest := m.Machines[b.Machine]
	capacity := market.CapacityTypes[cheapest.Capacity]
	at := fmt.Sprintf("%s %s at $%.4f an hour", cheapest.Typ.Name, capacity, m.PriceIn(b.Machine, g.Zones))
	if on.noSpot && market.CapacityTypes[1] == capacity {
		return model.Claim{}, "the cheapest replacement, " + at + ", is spot as it is, and SpotToSpotConsolidation is off"
	}
	ceiling := math.Inf(1)
	if on.choice == 0 {
		ceiling = place.Ceiling(m, g)
	}
	ranked := slices.DeleteFunc(place.Ranked(m, g, ceiling), func(i int) bool { return worstIn(m, i, g.Zones) >= on.below })
	if len(ranked) == 0 {
		return model.Claim{}, "the cheapest replacement, " + at + ", saves nothing"
	}
	ranked = on.unlike(m, ranked, g.Zones)
	if len(ranked) == 0 {
		return model.Claim{}, "the cheapest replacement, " + at + ", is of the same type"
	}
	s := g.Seller
	if capacity == market.CapacityTypes[1] && on.choice > 0 {
		if len(ranked) < on.choice {
			return model.Claim{}, fmt.Sprintf("spot is replaced by spot only where %d types are cheaper, and %d are", on.choice, len(ranked))
		}
		n := on.choice
		for n < len(ranked) && len(s.Minimums) > 0 && !market.Enough(m, s, place.SetOf(ranked[:n], len(m.Machines))) {
			n++
		}
		ranked = ranked[:n]
	}
	g.Common, g.Instead = place.SetOf(ranked, len(m.Machines)), nil
	if len(s.Minimums) > 0 && m.Policy != model.MinValuesBestEffort && !market.Enough(m, s, g.Common) {
		return model.Claim{}, "the types that are cheaper are fewer than its NodePool's minValues demand"
	}
	b.Machine = ranked[0]
	return place.ClaimsOf(m, g)[0], ""
}

// unlike are those of the machines that are not what is replaced.
func (on *terms) unlike(m *market.Market, ranked []int, zones uint64) []int {
	ceiling := math.Inf(1)
	for _, i := range ranked {
		for _, source := range on.sources {
			if len(on.sources) > 1 && source.node.InstanceType == m.Machines[i].Typ.Name {
				ceiling = min(ceiling, source.price)
			}
		}
	}
	return slices.DeleteFunc(ranked, func(i int) bool {
		return worstIn(m, i, zones) >= ceiling || slices.ContainsFunc(on.sources, func(source *candidate) bool {
			return source.node.InstanceType == m.Machines[i].Typ.Name && source.node.CapacityType == market.CapacityTypes[m.Machines[i].Capacity]
		})
	})
}

// worstIn is the machine's highest price in some zones.
func worstIn(m *market.Market, index int, zones uint64) float64 {
	highest := 0.0
	for z := range m.Zones {
		if m.Machines[index].Zones&zones&(1<<z) != 0 {
			highest = max(highest, m.ZonePrice[index*len(m.Zones)+z])
		}
	}
	return highest
}
