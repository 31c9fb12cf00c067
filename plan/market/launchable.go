package market

import (
	"math"
	"slices"
	"strings"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// What may be launched is said here and nowhere else. The market holds to it when pods are planned (variant.go), a claim
// when it lists its alternatives (place/claim.go), and Offerings when a claim is launched, planned or not. The provider
// takes what Offerings lists, and leaves out only what cannot be had any more.
//
//  1. Nobody gets a machine by accident that has devices which were not asked for, or that is bare metal: such machines
//     are launched only where nothing else would do. Pods that ask for a device ask for the machines that have it; bare
//     metal among these is left out as well while there are others.
//  2. Nobody pays more for spot than for on-demand: spot that is dearer than the cheapest on-demand offering that would
//     do for the same pods is left out, unless only spot will do. The pods get on-demand then.
//  3. What minValues needs to be met is launched all the same.

// OddityOf says how odd a machine is for those who ask for a device, or do not.
func OddityOf(typ *cloud.InstanceType, devices, asked bool) Oddity {
	switch {
	case strings.HasPrefix(typ.Labels[awsv1.LabelInstanceSize], "metal"): // all such types have a size of that name, and no others
		return BareMetal
	case devices && !asked:
		return IdleDevices
	}
	return Ordinary
}

// LeastOdd leaves of some machines those that are as odd as the least odd of them.
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

// launchable leaves of what a claim's requirements admit what the rules above do: the least odd, without spot that is dearer
// than on-demand is now, or than a ceiling.
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
