package plan

import (
	"math"
	"slices"
	"strings"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// What may be launched is said here and nowhere else. The market holds to it when pods are planned (variant.go), a claim
// when it lists its alternatives (claim.go), and Offerings when a claim is launched, planned or not. The provider takes what
// Offerings lists, and leaves out only what cannot be had any more.
//
//  1. Nobody gets a machine by accident that has devices which were not asked for, or that is bare metal: such machines are
//     launched only where nothing else would do. Pods that ask for a device ask for the machines that have it; bare metal
//     among these is left out as well while there are others.
//  2. Nobody pays more for spot than for on-demand: spot that is dearer than the cheapest on-demand offering that would do
//     for the same pods is left out, unless only spot will do. The pods get on-demand then.
//  3. What minValues needs to be met is launched all the same.

// oddity says how little a machine is meant for whoever might get it. Of what would do, only the least odd may be launched.
type oddity int

const (
	ordinary oddity = iota
	// idleDevices is a machine with devices that were not asked for, bareMetal one without a hypervisor.
	idleDevices
	bareMetal
	oddities = int(bareMetal) + 1
)

// oddityOf says how odd a machine is for those who ask for a device, or do not.
func oddityOf(typ *cloud.InstanceType, devices, asked bool) oddity {
	switch {
	case isBareMetal(typ):
		return bareMetal
	case devices && !asked:
		return idleDevices
	}
	return ordinary
}

// isBareMetal says whether an instance type has no hypervisor. Every such type has a size of that name, and no other has.
func isBareMetal(typ *cloud.InstanceType) bool {
	return strings.HasPrefix(typ.Labels[awsv1.LabelInstanceSize], "metal")
}

// leastOdd leaves an item the least odd of the machines that would do.
func (m *market) leastOdd(it *item) {
	asked := asksDevice(it.class)
	var found [oddities]bool
	for i := range it.allowed.all {
		found[oddityOf(m.machines[i].typ, m.machines[i].devices, asked)] = true
	}
	least := oddity(slices.Index(found[:], true))
	if least < 0 || !slices.Contains(found[least+1:], true) {
		return
	}
	kept := m.ofOddity(least, asked)
	it.allowed.intersect(kept)
	for v := range it.variants {
		it.variants[v].machines.intersect(kept)
	}
}

// ofOddity are the machines of one oddity.
func (m *market) ofOddity(o oddity, asked bool) bitset {
	key := int(o) * 2
	if asked {
		key++
	}
	if m.odd[key] == nil {
		m.odd[key] = newBitset(len(m.machines))
		for i := range m.machines {
			if oddityOf(m.machines[i].typ, m.machines[i].devices, asked) == o {
				m.odd[key].set(i)
			}
		}
	}
	return m.odd[key]
}

// insteadOfSpot are, for each bin on spot, the on-demand machines of its pool that hold its content in its zones, and use
// up no more of the pool's limits. There are none for other bins, and where some pod will have nothing but spot.
func (m *market) insteadOfSpot(s *seller, bins []*bin) []bitset {
	instead := make([]bitset, len(bins))
	for i, b := range bins {
		own := &m.machines[b.machine]
		switch {
		case capacityTypes[own.capacity] != karpv1.CapacityTypeSpot:
		case i > 0 && sameContent(b, bins[i-1]):
			instead[i] = instead[i-1]
		default:
			instead[i] = m.modest(s, b, m.holdingAs(s, b, b.need(), onDemandNext, unreserved), make([]int64, len(s.budget)))
		}
	}
	return instead
}

// leaveDearSpot gives bins the cheapest of the on-demand machines that would do instead, where that is cheaper than the
// spot machine they have. Where minValues binds, what was chosen for it stays.
func (m *market) leaveDearSpot(s *seller, bins []*bin, instead []bitset) {
	if len(s.minimums) > 0 {
		return
	}
	for i, b := range bins {
		if ceiling := m.cheapestPrice(instead[i], b.zones); m.priceIn(b.machine, b.zones) > ceiling {
			b.machine, instead[i] = m.cheapest(instead[i], b.zones, b.machine), nil
		}
	}
}

// cheapestPrice is the lowest price of some machines in some zones, infinite where there are none.
func (m *market) cheapestPrice(set bitset, zones uint64) float64 {
	lowest := math.Inf(1)
	for i := range set.all {
		lowest = min(lowest, m.priceIn(i, zones))
	}
	return lowest
}

// launchable leaves of what a claim's requirements admit what the rules above do: the least odd, without dear spot.
func launchable(sales []sale) []sale {
	least := slices.MinFunc(sales, func(a, b sale) int { return int(a.odd - b.odd) }).odd
	sales = slices.DeleteFunc(slices.Clone(sales), func(s sale) bool { return s.odd != least })
	ceiling := math.Inf(1)
	for i := range sales {
		if sales[i].key.CapacityType == karpv1.CapacityTypeOnDemand {
			ceiling = min(ceiling, sales[i].price)
		}
	}
	return slices.DeleteFunc(sales, func(s sale) bool { return s.key.CapacityType == karpv1.CapacityTypeSpot && s.price > ceiling })
}
