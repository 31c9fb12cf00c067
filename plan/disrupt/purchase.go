package disrupt

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/place"
	"github.com/tenon-sh/tenon/plan/solve"
)

// terms are what a claim that replaces nodes has to meet to be worth it.
type terms struct {
	// below is the price, in dollars per hour, that the launch has to stay under, whichever offering it gets.
	below float64
	// noSpot says that the claim must not be for spot, because spot would only replace spot.
	noSpot bool
	// choice is how many types a spot claim must have to choose from, and how many it then takes, or more if minValues
	// demand it; zero for any number.
	choice int
	// sources are the nodes to replace. None is replaced by one like it. If one of several sources is of a type that would
	// do, keeping it is better than replacing it, so that only what is cheaper than it will do.
	sources []*candidate
}

// buyFor buys for the pods that a trial has found no place for.
func buyFor(f *Simulation, podGroups []*place.PodGroup, most int, on *terms) ([]model.Claim, *model.Verdict) {
	d := f.Distribution
	if len(d.Chunks) == 0 {
		return nil, nil
	}
	f.onUndo(d.Market.Keep())
	b, kept := oneFor(f, d.Chunks, on)
	switch {
	case b != nil:
		claim, why := replacementClaim(f, b, on)
		if why != "" {
			return nil, stays(model.CausePrice, "%s", why)
		}
		d.Market.Spend(b.Machine, b.Size, 1)
		return []model.Claim{claim}, nil
	case most == 1:
		return nil, kept
	}
	return buyMany(d, podGroups)
}

// buyMany buys as a plan does.
func buyMany(d *place.Distribution, podGroups []*place.PodGroup) ([]model.Claim, *model.Verdict) {
	planned := place.BuyAll(d, nil, podGroups)
	for _, it := range podGroups {
		if len(it.Pods) > 0 {
			kept := stays(model.CauseRoom, "no node can be launched for pod %s", it.Pods[0].Key())
			if reasons := place.Explain(d.Market, it); len(reasons) > 0 {
				kept.Message += ": " + reasons[0].Message
			}
			return nil, kept
		}
	}
	return place.Claims(d.Market, planned), nil
}

// need is what some pods ask of one machine that takes them all.
type need struct {
	request []int64
	// allowed are the machines that all of them accept; nil while there are no pods.
	allowed market.Bitset
	zones   uint64
}

func newNeed(m *market.Market) *need {
	return &need{request: make([]int64, m.Dims.Count()), zones: ^uint64(0)}
}

// add adds the needs of some pods of one kind.
func (n *need) add(request []int64, pods int, allowed market.Bitset, zones uint64) {
	solve.Subtract(n.request, request, -pods)
	if n.allowed == nil {
		n.allowed = allowed.Clone()
	}
	n.allowed.Intersect(allowed)
	n.zones &= zones
}

// metBy says whether a machine would do.
func (n *need) metBy(m *market.Market, index int) bool {
	mach := &m.Machines[index]
	return (n.allowed == nil || n.allowed.Has(index)) && mach.Zones&n.zones != 0 && solve.Fits(n.request, mach.Usable)
}

// unmet says why no machine would do at a price below a bound. index is the cheapest machine that would do at any price; -1
// if there is none.
func (n *need) unmet(m *market.Market, index int) *model.Verdict {
	if index < 0 {
		return stays(model.CauseRoom, "no single node would take all pods that find no room elsewhere")
	}
	return stays(model.CausePrice, "%s, saves nothing", cheapest(m, index, n.zones))
}

// cheapest names the cheapest replacement, and what it costs in some zones.
func cheapest(m *market.Market, index int, zones uint64) string {
	mach := &m.Machines[index]
	return fmt.Sprintf("the cheapest replacement, %s %s at %s an hour", mach.Typ.Name, market.CapacityTypes[mach.Capacity], cloud.Money(m.Zones[0], m.PriceIn(index, zones)))
}

// oneFor returns the cheapest machine that takes all demand chunks, filled with them. Pools are tried by weight, and
// reserved machines before others: the first shelf that has such a machine decides.
func oneFor(f *Simulation, chunks []*place.DemandChunk, on *terms) (best *place.PlannedNode, kept *model.Verdict) {
	m := f.Distribution.Market
	all := newNeed(m)
	for _, l := range chunks {
		all.add(l.Request, l.Left(), l.Allowed, l.ZonesOfChunk())
	}
	for _, machines := range f.shelves {
		price := math.Inf(1)
		for _, i := range machines {
			mach := &m.Machines[i]
			if mach.Price >= price {
				break
			}
			switch {
			case !all.metBy(m, i):
			case on != nil && mach.Price >= on.below:
				return nil, cmp.Or(kept, all.unmet(m, i))
			case m.Affordable(i, mach.Size) == 0:
				kept = stays(model.CauseRoom, "its NodePool's limits leave no room for a replacement beside it")
			case m.PriceIn(i, all.zones) < price:
				if b := filledMachine(m, i, all.zones, chunks); b != nil {
					best, price = b, m.PriceIn(i, all.zones)
				}
			}
		}
		if best != nil {
			return best, nil
		}
	}
	return nil, cmp.Or(kept, all.unmet(m, -1))
}

// filledMachine returns a machine with all demand chunks on it, or nil if it does not take them. The demand chunks are not
// changed.
func filledMachine(m *market.Market, index int, zones uint64, chunks []*place.DemandChunk) *place.PlannedNode {
	defer m.Devices.Keep()() // other machines are tried as well
	b := place.NewPlannedNode(m, index)
	b.Zones &= zones
	copies := make([]*place.DemandChunk, len(chunks))
	for i, l := range chunks {
		again := *l
		again.Content = slices.Clone(l.Content)
		copies[i] = &again
	}
	for _, demand := range place.DemandsOf(m, copies, place.SetOf([]int{index}, len(m.Machines))) {
		if b.Take(m, demand); demand.Pieces() > 0 {
			return nil
		}
	}
	if !b.LeavesChoice(m) {
		return nil
	}
	return b
}

// replacementClaim makes a claim of a planned node that meets the terms whichever of its types is launched, or says why
// there is none.
func replacementClaim(f *Simulation, b *place.PlannedNode, on *terms) (model.Claim, string) {
	m := f.Distribution.Market
	g := place.Groups(m, m.Sellers[m.Machines[b.Machine].Pool], []*place.PlannedNode{b})[0]
	if on == nil {
		return place.ClaimsOf(m, g)[0], ""
	}
	best := cheapest(m, b.Machine, g.Zones)
	spot := market.CapacityTypes[m.Machines[b.Machine].Capacity] == karpv1.CapacityTypeSpot
	if on.noSpot && spot {
		return model.Claim{}, best + ", is spot as it is, and SpotToSpotConsolidation is off"
	}
	ceiling := math.Inf(1)
	if on.choice == 0 {
		ceiling = market.CheapestPrice(m, g.Instead, g.Zones)
	}
	ranked := slices.DeleteFunc(place.Ranked(m, g, ceiling), func(i int) bool { return worstIn(m, i, g.Zones) >= on.below })
	if len(ranked) == 0 {
		return model.Claim{}, best + ", saves nothing"
	}
	ranked = on.unlike(m, ranked, g.Zones)
	if len(ranked) == 0 {
		return model.Claim{}, best + ", is of the same type"
	}
	s := g.Seller
	if spot && on.choice > 0 {
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

// unlike returns the machines without those that are like the sources, or no cheaper than a source that would do.
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
	for z := range (market.Bitset{m.Machines[index].Zones & zones}).All {
		highest = max(highest, m.PriceAt(index, z))
	}
	return highest
}
