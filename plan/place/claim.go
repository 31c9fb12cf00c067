package place

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
	"github.com/tenon-sh/tenon/plan/solve"
)

// launchGroup is planned nodes that are launched alike.
type launchGroup struct {
	Seller *market.Seller
	Zones  uint64
	labels map[string]string
	// Common are the machines that hold each of the planned nodes. Instead are the on-demand machines that would do in
	// place of spot; nothing dearer than the cheapest of them is launched.
	Common, Instead market.Bitset
	planned         []*PlannedNode
}

// Claims turns planned nodes into claims. Claims that are alike are adjacent.
func Claims(m *market.Market, planned []*PlannedNode) []model.Claim {
	var claims []model.Claim
	for _, s := range m.Sellers {
		own := slices.DeleteFunc(slices.Clone(planned), func(b *PlannedNode) bool { return market.SellerOf(m, b.Machine) != s })
		for _, g := range Groups(m, s, own) {
			claims = append(claims, ClaimsOf(m, g)...)
		}
	}
	return claims
}

// Groups gives every planned node its cheapest machine, and groups the nodes that can be launched alike.
func Groups(m *market.Market, s *market.Seller, planned []*PlannedNode) []*launchGroup {
	holders, instead := alternatives(m, s, planned)
	if len(s.Minimums) == 0 {
		divideSpot(m, planned, holders)
	}
	byKey := map[string]*launchGroup{}
	var groups []*launchGroup
	for i, b := range planned {
		b.Zones &= m.Machines[b.Machine].Where
		b.Machine = cheapest(m, holders[i], b.Zones, b.Machine)
		labels := labelsOf(m, s, b)
		zones := b.Zones & zonesOf(m, holders[i].All)
		key := fmt.Sprint(b.Machine, zones, labels)
		if len(s.Minimums) > 0 {
			// Only claims with the same choice are certain to keep enough of it together.
			key += holders[i].Key()
		}
		g := byKey[key]
		if g == nil {
			g = &launchGroup{Seller: s, Zones: zones, labels: labels, Common: holders[i].Clone(), Instead: slices.Clone(instead[i])}
			byKey[key] = g
			groups = append(groups, g)
		}
		g.Common.Intersect(holders[i])
		g.Instead.Intersect(instead[i])
		g.planned = append(g.planned, b)
	}
	return groups
}

// alternatives finds the machines that hold each planned node and, for each on spot, the on-demand machines that would
// do instead. A planned node on spot gets the cheapest of the latter if that is cheaper than its spot machine, unless
// its pool has minValues.
//
// What a pool's limits leave is shared evenly: machines that exceed the one that was paid for by more than a planned
// node's share are left out, so that the launches exceed no limit, whichever machines they get.
func alternatives(m *market.Market, s *market.Seller, planned []*PlannedNode) (holders, instead []market.Bitset) {
	holders, instead = make([]market.Bitset, len(planned)), make([]market.Bitset, len(planned))
	none, share := make([]int64, len(s.Budget)), make([]int64, len(s.Budget))
	for a := range share {
		share[a] = max(0, s.Budget[a].Left) / int64(max(1, len(planned)))
	}
	var last PlannedNode
	for i, b := range planned {
		same := func(x, y portion) bool { return x.demand == y.demand && x.variant == y.variant && x.count == y.count }
		if i > 0 && b.Machine == last.Machine && b.Zones == last.Zones && b.Size.Equal(last.Size) && slices.EqualFunc(b.content, last.content, same) {
			b.Machine, holders[i], instead[i] = planned[i-1].Machine, holders[i-1], instead[i-1]
			continue
		}
		last = *b
		if m.Machines[b.Machine].Capacity == Spot {
			instead[i] = modest(m, s, b, holdingAs(m, s, b, onDemand, market.Unreserved), none)
			if m.PriceIn(b.Machine, b.Zones) > market.CheapestPrice(m, instead[i], b.Zones) && len(s.Minimums) == 0 {
				b.Machine, instead[i] = cheapest(m, instead[i], b.Zones, b.Machine), nil
			}
		}
		holders[i] = modest(m, s, b, Holders(m, s, b), share)
	}
	return holders, instead
}

// modest keeps those of a planned node's holders that use no more of the pool's limits than what was paid for plus a
// share of what is left.
func modest(m *market.Market, s *market.Seller, b *PlannedNode, set market.Bitset, share []int64) market.Bitset {
	for h := range set.All {
		for a := range s.Budget {
			if market.CountOf(s.Budget[a].Name, m.Machines[h].Size) > market.CountOf(s.Budget[a].Name, b.Size)+share[a] {
				set.Clear(h)
			}
		}
	}
	return set
}

// labelsOf returns the custom labels of a planned node that are in no template: those the pool requires, and those its
// pods settled.
func labelsOf(m *market.Market, s *market.Seller, b *PlannedNode) map[string]string {
	labels, _ := m.Settle(s, b.custom)
	if len(labels) == 0 {
		return s.Required
	}
	maps.Copy(labels, s.Required)
	return labels
}

// Holders returns the machines of the planned node's pool, capacity type and reservation that hold its content in its
// zones.
func Holders(m *market.Market, s *market.Seller, b *PlannedNode) market.Bitset {
	own := &m.Machines[b.Machine]
	set := holdingAs(m, s, b, own.Capacity, own.Reservation)
	set.Set(b.Machine)
	return set
}

// holdingAs returns the machines of a pool, with one capacity type and reservation, that hold a planned node's content.
func holdingAs(m *market.Market, s *market.Seller, b *PlannedNode, capacity, reservation int) market.Bitset {
	set := market.NewBitset(len(m.Machines))
	for i := s.First; i < s.Last; i++ {
		mach := &m.Machines[i]
		there := mach.Zones&b.Zones != 0 && b.Zones&m.AllZones&^mach.Where == 0
		if there && mach.Capacity == capacity && mach.Reservation == reservation && solve.Fits(b.used, mach.Usable) {
			set.Set(i)
		}
	}
	for _, p := range b.content {
		set.Intersect(p.variant.Machines)
	}
	var attached []rules.Attachments
	for pod := range b.pods {
		if needs := m.Book.Needs(pod); !needs.Attach.None() {
			attached = append(attached, needs.Attach)
		}
	}
	if len(attached) > 0 && len(m.Book.Typical) > 0 {
		set.DeleteFunc(func(i int) bool { return !m.Book.Bears(m.Machines[i].Typ.Name, attached) })
	}
	if m.Devices != nil {
		set.DeleteFunc(func(i int) bool { return !hasDevices(m, b, i) })
	}
	return set
}

// hasDevices reports whether a machine has the devices that a planned node's pods claim.
func hasDevices(m *market.Market, b *PlannedNode, index int) bool {
	room := m.DevicesInstead(b.Devices, index)
	for pod := range b.pods {
		needs := m.Devices.Needs(pod)
		var held int
		if held, room = room.Place(&needs, 1); held == 0 {
			return false
		}
	}
	return true
}

// cheapest returns the machine with the lowest price in some zones, the first in the market among equal ones, or
// otherwise if there is none.
func cheapest(m *market.Market, set market.Bitset, zones uint64, otherwise int) int {
	best, price := otherwise, math.Inf(1)
	for i := range set.All {
		if p := m.PriceIn(i, zones); p < price {
			best, price = i, p
		}
	}
	return best
}

// zonesOf returns the zones in which some machines can be bought now.
func zonesOf(m *market.Market, machines iter.Seq[int]) uint64 {
	var zones uint64
	for i := range machines {
		zones |= m.Machines[i].Zones
	}
	return zones
}

// ClaimsOf makes one claim for each planned node of a group.
func ClaimsOf(m *market.Market, g *launchGroup) []model.Claim {
	most := market.CheapestPrice(m, g.Instead, g.Zones)
	chosen, met := market.NewTally(m, g.Seller.Minimums).Choose(Ranked(m, g, most))
	if !met {
		most = math.Inf(1)
		chosen, met = market.NewTally(m, g.Seller.Minimums).Choose(Ranked(m, g, most))
	}
	first := &m.Machines[chosen[0]]
	template := model.Claim{
		NodePool:         g.Seller.Name,
		CapacityType:     market.CapacityTypes[first.Capacity],
		Zones:            m.ZoneNames(g.Zones & zonesOf(m, slices.Values(chosen))),
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
	if !math.IsInf(most, 1) && len(g.Seller.Minimums) == 0 {
		template.MaxPricePerHour = max(most, template.PricePerHour)
	}
	requirements, settled := model.Narrowed(m.Keys, g.Seller.NodePool, &template)
	template.Group = template.LaunchKey()
	daemons := m.Dims.Vector(model.ResourcesOf(first.Typ.Allocatable))
	solve.Subtract(daemons, first.Usable, 1)
	claims := make([]model.Claim, 0, len(g.planned))
	for _, b := range g.planned {
		claim := template
		requests := slices.Clone(b.used)
		solve.Subtract(requests, daemons, -1)
		claim.Requests = m.Dims.Resources(requests).List()
		claim.Requirements, claim.Drivers = constrained(m, requirements, b, settled), b.Devices.Drivers()
		for pod := range b.pods {
			claim.Pods = append(claim.Pods, pod.UID)
		}
		claims = append(claims, claim)
	}
	return claims
}

// Ranked returns the machines that hold all planned nodes of a group and cost no more than a ceiling, the cheapest
// first. If there are none, it returns the machine of the first planned node.
func Ranked(m *market.Market, g *launchGroup, ceiling float64) []int {
	var ranked []int
	for i := range g.Common.All {
		if mach := &m.Machines[i]; mach.Zones&g.Zones != 0 && m.PriceIn(i, g.Zones) <= ceiling {
			ranked = append(ranked, i)
		}
	}
	if len(ranked) == 0 {
		return []int{g.planned[0].Machine}
	}
	slices.SortStableFunc(ranked, func(a, b int) int { return cmp.Compare(m.PriceIn(a, g.Zones), m.PriceIn(b, g.Zones)) })
	return ranked
}

// SetOf returns the set of some machines.
func SetOf(members []int, size int) market.Bitset {
	set := market.NewBitset(size)
	for _, i := range members {
		set.Set(i)
	}
	return set
}
