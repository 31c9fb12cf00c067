package market

import (
	"math"
	"slices"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// The rules of what may be launched are here and nowhere else. The market applies them when pods are planned (variant.go),
// a claim when it lists its alternatives (place/claim.go), and Offerings when a claim is launched, planned or not. The
// provider takes what Offerings lists, and leaves out only what is no longer available.
//
//  1. Machines with devices that were not asked for, and bare metal, are launched only where nothing else would do. Pods
//     that ask for a device ask for the machines that have it; bare metal among these is left out as well while there are
//     others.
//  2. Spot that costs more than the cheapest on-demand offering that would do for the same pods is left out, unless only
//     spot will do. The pods get on-demand then.
//  3. Whatever is needed to meet minValues is launched all the same.

// OddityOf returns the oddity of a machine for pods that ask for a device (asked), or do not.
func OddityOf(typ *cloud.InstanceType, devices, asked bool) Oddity {
	switch {
	case typ.BareMetal:
		return BareMetal
	case devices && !asked:
		return IdleDevices
	}
	return Ordinary
}

// LeastOdd returns those of some machines that have the lowest oddity among them.
func LeastOdd(m *Market, some Bitset, asked bool) Bitset {
	least, kept := BareMetal, some.Clone()
	for i := range some.All {
		least = min(least, m.Machines[i].Oddity(asked))
	}
	kept.DeleteFunc(func(i int) bool { return m.Machines[i].Oddity(asked) != least })
	return kept
}

// CheapestPrice is the lowest price of some machines in some zones, infinite where there are none.
func CheapestPrice(m *Market, set Bitset, zones uint64) float64 {
	lowest := math.Inf(1)
	for i := range set.All {
		lowest = min(lowest, m.PriceIn(i, zones))
	}
	return lowest
}

// launchable applies the rules above to what a claim's requirements admit: it keeps the least odd sales, without spot that
// costs more than on-demand does now, or more than a ceiling.
func launchable(sales []sale, ceiling float64) []sale {
	least := slices.MinFunc(sales, func(a, b sale) int { return int(a.odd - b.odd) }).odd
	sales = slices.DeleteFunc(slices.Clone(sales), func(s sale) bool { return s.odd != least })
	for _, s := range sales {
		if s.offering.CapacityType == karpv1.CapacityTypeOnDemand {
			ceiling = min(ceiling, s.offering.Price)
		}
	}
	return slices.DeleteFunc(sales, func(s sale) bool {
		return s.offering.CapacityType == karpv1.CapacityTypeSpot && s.offering.Price > ceiling
	})
}
