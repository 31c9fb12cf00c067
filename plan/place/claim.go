package place

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
	"github.com/tenon-sh/tenon/plan/solve"
)

// launchGroup is a number of planned nodes that are launched alike.
type launchGroup struct {
	Seller *market.Seller
	Zones  uint64
	labels map[string]string
	// Common are the machines that hold each of the planned nodes, instead the on-demand machines that would do for spot.
	Common, instead market.Bitset
	bins            []*PlannedNode
	// Chosen says that prices have been looked at: all of common may be launched.
	Chosen bool
}

// Claims turns planned nodes into claims, alike ones next to each other.
func Claims(m *market.Market, planned []*PlannedNode) []model.Claim {
	var claims []model.Claim
	for _, s := range m.Sellers {
		own := slices.DeleteFunc(slices.Clone(planned), func(b *PlannedNode) bool { return m.Sellers[m.Machines[b.Machine].Pool] != s })
		for _, g := range Groups(m, s, own) {
			claims = append(claims, ClaimsOf(m, g)...)
		}
	}
	return claims
}

// Groups gives every planned node its cheapest machine and brings those together that can be launched alike.
func Groups(m *market.Market, s *market.Seller, planned []*PlannedNode) []*launchGroup {
	instead := insteadOfSpot(m, s, planned)
	leaveDearSpot(m, s, planned, instead)
	holders := holdersOf(m, s, planned)
	if len(s.Minimums) == 0 {
		divideSpot(m, planned, holders)
	}
	byKey := map[string]*launchGroup{}
	var groups []*launchGroup
	for i, b := range planned {
		b.Zones &= m.Machines[b.Machine].Where
		b.Machine = cheapest(m, holders[i], b.Zones, b.Machine)
		labels := labelsOf(m, s, b)
		zones := b.Zones & zonesOf(m, holders[i])
		key := strings.Join([]string{m.Machines[b.Machine].Typ.Name, market.CapacityTypes[m.Machines[b.Machine].Capacity],
			strings.Join(m.ZoneNames(zones), ","), m.ReservedBy(b.Machine), string(model.AppendMap(nil, labels))}, "\x00")
		if len(s.Minimums) > 0 {
			// Only claims with the very same choice can be sure to keep enough of it together.
			key += "\x00" + identity(m, holders[i])
		}
		g := byKey[key]
		if g == nil {
			g = &launchGroup{Seller: s, Zones: zones, labels: labels, Common: holders[i].Clone(), instead: slices.Clone(instead[i])}
			byKey[key] = g
			groups = append(groups, g)
		}
		g.Common.Intersect(holders[i])
		g.instead.Intersect(instead[i])
		g.bins = append(g.bins, b)
	}
	return groups
}

// holdersOf finds, for each planned node, the machines that hold it. What a pool's limits leave is shared out evenly:
// machines that are larger than the one that was paid for by more than a planned node's share are left out, so that no
// limit is exceeded whichever machines the launches come to.
func holdersOf(m *market.Market, s *market.Seller, planned []*PlannedNode) []market.Bitset {
	holders := make([]market.Bitset, len(planned))
	share := make([]int64, len(s.Budget))
	for a := range share {
		share[a] = max(0, s.Budget[a].Left) / int64(max(1, len(planned)))
	}
	far := outOfReach(m, s, share)
	var all market.Bitset
	for i, b := range planned {
		if i == 0 || !sameContent(b, planned[i-1]) {
			all = Holders(m, s, b)
		}
		if far {
			holders[i] = all
			continue
		}
		holders[i] = modest(m, s, b, all, share)
	}
	return holders
}

// outOfReach says that no machine of a pool is larger than its share of what the pool's limits leave.
func outOfReach(m *market.Market, s *market.Seller, share []int64) bool {
	var largest model.Resources
	for i := s.First; i < s.Last && len(share) > 0; i++ {
		largest = largest.Max(m.Machines[i].Size)
	}
	for a := range share {
		if market.CountOf(s.Budget[a].Name, largest) > share[a] {
			return false
		}
	}
	return true
}

// modest are those of a planned node's holders that use up no more of the pool's limits than was paid for and a share of
// what is left.
func modest(m *market.Market, s *market.Seller, b *PlannedNode, holders market.Bitset, share []int64) market.Bitset {
	set := holders.Clone()
	for h := range holders.All {
		for a := range s.Budget {
			if market.CountOf(s.Budget[a].Name, m.Machines[h].Size) > market.CountOf(s.Budget[a].Name, b.Size)+share[a] {
				set.Clear(h)
			}
		}
	}
	return set
}

// labelsOf are the custom labels of a planned node's node that stand in no template: the pool's own, and what its pods
// settled.
func labelsOf(m *market.Market, s *market.Seller, b *PlannedNode) map[string]string {
	labels := maps.Clone(s.Required)
	if settled, _ := s.Settle(b.custom); len(settled) > 0 {
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, settled)
	}
	return labels
}

func sameContent(a, b *PlannedNode) bool {
	return a.Machine == b.Machine && a.Zones == b.Zones && slices.Equal(a.least, b.least) && slices.EqualFunc(a.content, b.content, func(x, y portion) bool {
		return x.variant == y.variant && x.count == y.count
	})
}

// Holders are the machines of the planned node's pool, capacity type and reservation that hold its content in its zones.
// What was planned to stay free gives way where it would leave too little choice for minValues.
func Holders(m *market.Market, s *market.Seller, b *PlannedNode) market.Bitset {
	if b.least != nil {
		if set := holding(m, s, b, b.least); len(s.Minimums) == 0 || market.Enough(m, s, set) {
			return set
		}
	}
	return holding(m, s, b, b.Used)
}

// holding are the holders with room for a need.
func holding(m *market.Market, s *market.Seller, b *PlannedNode, need []int64) market.Bitset {
	own := &m.Machines[b.Machine]
	set := holdingAs(m, s, b, need, own.Capacity, own.Reservation)
	set.Set(b.Machine)
	return set
}

// holdingAs are the machines of a pool with one capacity type and reservation that hold a planned node's content, with
// room for a need.
func holdingAs(m *market.Market, s *market.Seller, b *PlannedNode, need []int64, capacity, reservation int) market.Bitset {
	set := market.NewBitset(len(m.Machines))
	for i := s.First; i < s.Last; i++ {
		mach := &m.Machines[i]
		if mach.Capacity == capacity && mach.Reservation == reservation && mach.Zones&b.Zones != 0 && b.Zones&m.AllZones&^mach.Where == 0 && solve.Fits(need, mach.Usable) {
			set.Set(i)
		}
	}
	for _, p := range b.content {
		set.Intersect(p.variant.Machines)
	}
	if needs := attachedBy(m.Book, b); len(needs) > 0 {
		for i := range set.All {
			if !m.Book.Bears(m.Machines[i].Typ.Name, needs) {
				set.Clear(i)
			}
		}
	}
	return set
}

// cheapest is the machine with the lowest price in some zones; among equal ones the first in the market.
func cheapest(m *market.Market, set market.Bitset, zones uint64, otherwise int) int {
	best, price := otherwise, math.Inf(1)
	for i := range set.All {
		if p := m.PriceIn(i, zones); p < price {
			best, price = i, p
		}
	}
	return best
}

func zonesOf(m *market.Market, set market.Bitset) uint64 {
	var zones uint64
	for i := range set.All {
		zones |= m.Machines[i].Zones
	}
	return zones
}

func identity(m *market.Market, set market.Bitset) string {
	var names []string
	for i := range set.All {
		names = append(names, m.Machines[i].Typ.Name)
	}
	return strings.Join(names, ",")
}

// ClaimsOf makes a claim of each planned node of a group.
func ClaimsOf(m *market.Market, g *launchGroup) []model.Claim {
	chosen, met := market.NewTally(m, g.Seller.Minimums).Choose(Ranked(m, g, Ceiling(m, g)))
	if !met {
		chosen, met = market.NewTally(m, g.Seller.Minimums).Choose(Ranked(m, g, math.Inf(1)))
	}
	first := &m.Machines[chosen[0]]
	template := model.Claim{
		NodePool:         g.Seller.Name,
		CapacityType:     market.CapacityTypes[first.Capacity],
		Zones:            m.ZoneNames(g.Zones & zonesOf(m, SetOf(chosen, len(m.Machines)))),
		Reservation:      m.ReservedBy(chosen[0]),
		Labels:           g.labels,
		PricePerHour:     m.PriceIn(chosen[0], g.Zones),
		MinValuesRelaxed: !met,
	}
	if ref := g.Seller.NodePool.Spec.Template.Spec.NodeClassRef; ref != nil {
		template.NodeClass = ref.Name
	}
	for _, i := range chosen {
		template.InstanceTypes = append(template.InstanceTypes, m.Machines[i].Typ.Name)
	}
	requirements, settled := model.Narrowed(g.Seller.NodePool, &template)
	template.Group = template.LaunchKey()
	daemons := m.Dims.Vector(model.ResourcesOf(first.Typ.Allocatable))
	solve.Subtract(daemons, first.Usable, 1)
	claims := make([]model.Claim, 0, len(g.bins))
	for _, b := range g.bins {
		claim := template
		requests := slices.Clone(b.Used)
		solve.Subtract(requests, daemons, -1)
		claim.Requests = m.Dims.Resources(requests).List()
		claim.Requirements = constrained(m, requirements, b, settled)
		for _, p := range b.content {
			for _, pod := range p.pods {
				claim.Pods = append(claim.Pods, pod.UID)
			}
		}
		claims = append(claims, claim)
	}
	return claims
}

// Ranked are the machines that hold all planned nodes of a group and are not dearer than a ceiling, the cheapest first.
func Ranked(m *market.Market, g *launchGroup, ceiling float64) []int {
	var ranked []int
	for i := range g.Common.All {
		if mach := &m.Machines[i]; mach.Zones&g.Zones != 0 && m.PriceIn(i, g.Zones) <= ceiling {
			ranked = append(ranked, i)
		}
	}
	own := g.bins[0].Machine
	if len(ranked) == 0 {
		return []int{own}
	}
	slices.SortStableFunc(ranked, func(a, b int) int {
		return cmp.Or(cmp.Compare(m.PriceIn(a, g.Zones), m.PriceIn(b, g.Zones)), cmp.Compare(a, b))
	})
	return ranked
}

// Ceiling is the price above which spot makes no sense: that of the cheapest on-demand machine that would do for all of a
// group. It is that of a machine that costs more where nothing else would do.
func Ceiling(m *market.Market, g *launchGroup) float64 {
	if g.Chosen {
		return math.Inf(1)
	}
	return market.CheapestPrice(m, g.instead, g.Zones)
}

// SetOf is the set of some machines.
func SetOf(members []int, size int) market.Bitset {
	set := market.NewBitset(size)
	for _, i := range members {
		set.Set(i)
	}
	return set
}

// insteadOfSpot are, for each planned node on spot, the on-demand machines of its pool that hold its content in its
// zones, and use up no more of the pool's limits. There are none for other planned nodes, and where some pod will have
// nothing but spot.
func insteadOfSpot(m *market.Market, s *market.Seller, planned []*PlannedNode) []market.Bitset {
	instead := make([]market.Bitset, len(planned))
	for i, b := range planned {
		own := &m.Machines[b.Machine]
		switch {
		case market.CapacityTypes[own.Capacity] != karpv1.CapacityTypeSpot:
		case i > 0 && sameContent(b, planned[i-1]):
			instead[i] = instead[i-1]
		default:
			instead[i] = modest(m, s, b, holdingAs(m, s, b, b.need(), onDemandNext, market.Unreserved), make([]int64, len(s.Budget)))
		}
	}
	return instead
}

// leaveDearSpot gives planned nodes the cheapest of the on-demand machines that would do instead, where that is cheaper
// than the spot machine they have. Where minValues binds, what was chosen for it stays.
func leaveDearSpot(m *market.Market, s *market.Seller, planned []*PlannedNode, instead []market.Bitset) {
	if len(s.Minimums) > 0 {
		return
	}
	for i, b := range planned {
		if ceiling := market.CheapestPrice(m, instead[i], b.Zones); m.PriceIn(b.Machine, b.Zones) > ceiling {
			b.Machine, instead[i] = cheapest(m, instead[i], b.Zones, b.Machine), nil
		}
	}
}

// attachedBy are the attachments of the pods of a planned node, those that have none left out.
func attachedBy(b *rules.VolumeIndex, full *PlannedNode) []rules.Attachments {
	if len(b.Typical) == 0 {
		return nil
	}
	var all []rules.Attachments
	for i := range full.content {
		for _, pod := range full.content[i].pods {
			if needs := b.Needs(pod); !needs.Attach.None() {
				all = append(all, needs.Attach)
			}
		}
	}
	return all
}
