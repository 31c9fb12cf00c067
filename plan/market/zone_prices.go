package market

import (
	"cmp"
	"math"
	"slices"

	"github.com/tenon-sh/tenon/plan/solve"
)

// priceMixtures is how many mixtures of the prices of cores and memory are tried.
const priceMixtures = 24

// newZonePrices finds the prices of a zone's room.
func newZonePrices(m *Market, zone, capacity int) *zonePrices {
	prices := &zonePrices{}
	for i := range m.Machines {
		if mach := &m.Machines[i]; mach.Capacity == capacity && mach.Zones&(1<<zone) != 0 {
			prices.machines = append(prices.machines, pricedMachine{index: i})
		}
	}
	cpu, memory := float64(max(1, m.Asked[DimCPU])), float64(max(1, m.Asked[DimMemory]))
	highest := 0.0
	for step := range priceMixtures + 1 {
		share := float64(step) / priceMixtures
		x, y := share/cpu, (1-share)/memory
		scale := math.Inf(1)
		for _, p := range prices.machines {
			if mach := &m.Machines[p.index]; !mach.Devices {
				scale = min(scale, m.PriceAt(p.index, zone)/worthOfCores(mach.Usable, x, y))
			}
		}
		if scale > highest && !math.IsInf(scale, 1) {
			highest, prices.core, prices.memory = scale, scale*x, scale*y
		}
	}
	for k := range prices.machines {
		p := &prices.machines[k]
		p.rate = m.PriceAt(p.index, zone) / worthOfCores(m.Machines[p.index].Usable, prices.core, prices.memory)
	}
	slices.SortStableFunc(prices.machines, func(a, b pricedMachine) int { return cmp.Compare(a.rate, b.rate) })
	return prices
}

func worthOfCores(room []int64, core, memory float64) float64 {
	return core*float64(max(0, room[DimCPU])) + memory*float64(max(0, room[DimMemory]))
}

// PriceAt is a machine's price in one of its zones.
func (m *Market) PriceAt(index, zone int) float64 { return m.Machines[index].Prices[zone] }

// CostOf estimates what one pod costs, in US dollars per hour, if it may use the machines of these variants, of the best
// capacity type they have.
func (m *Market) CostOf(request []int64, variants []Variant) float64 {
	for c := range CapacityTypes {
		lowest := math.Inf(1)
		for v := range variants {
			for z := range (Bitset{variants[v].Zones & m.AllZones}).All {
				lowest = min(lowest, costIn(m, z, c, request, variants[v].Machines))
			}
		}
		if !math.IsInf(lowest, 1) {
			return lowest
		}
	}
	return math.Inf(1)
}

// costIn estimates what a pod costs in a zone on the best of some machines; infinite if none of them is available there.
func costIn(m *Market, zone, capacity int, request []int64, machines Bitset) float64 {
	const least = 1 // a pod that asks for nothing takes a little all the same
	prices := m.zonePrices.Of(zoneCapacity{zone, capacity}, func() *zonePrices { return newZonePrices(m, zone, capacity) })
	worth := prices.core*float64(request[DimCPU]+least) + prices.memory*float64(request[DimMemory]+least)
	devices := slices.ContainsFunc(request[DimExtended:DimExtended+len(m.Dims.Extended)], func(n int64) bool { return n > 0 })
	lowest := math.Inf(1)
	for _, p := range prices.machines {
		if !machines.Has(p.index) {
			continue
		}
		if !devices {
			return worth * p.rate
		}
		// Cores are not what is scarce on a machine with devices.
		if n := solve.Times(request, m.Machines[p.index].Usable); n > 0 {
			lowest = min(lowest, m.PriceAt(p.index, zone)/float64(n))
		}
	}
	return lowest
}
