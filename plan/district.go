package plan

import (
	"cmp"
	"math"
	"slices"
)

// Which zone is cheapest for a pod? Not the one with the cheapest machine: that may be one of a kind, and too small to be
// of use. Room has a price in each zone, for cores and for memory: the highest at which no machine gives more than it
// costs, in the proportion in which the whole batch asks for them. A pod costs what its room does, and more where the
// machines that it may use cost more than their room.

// district is what can be bought in one zone of one capacity type.
type district struct {
	// core and memory are the prices of a thousandth of a core and a byte, in US dollars per hour.
	core, memory float64
	// stock are the machines, those first that cost least for their room.
	stock []ware
}

// ware is a machine in a district.
type ware struct {
	index int
	// rate is the price of the machine for each dollar that its room is worth, at least 1.
	rate float64
}

// mixtures of the prices of cores and memory are tried for a district.
const districtMixtures = 24

// district finds the prices of a zone's room.
func (m *market) district(zone, capacity int) *district {
	if d := m.districts[[2]int{zone, capacity}]; d != nil {
		return d
	}
	d := &district{}
	m.districts[[2]int{zone, capacity}] = d
	for i := range m.machines {
		if mach := &m.machines[i]; mach.capacity == capacity && mach.zones&(1<<zone) != 0 {
			d.stock = append(d.stock, ware{index: i})
		}
	}
	cpu, memory := float64(max(1, m.asked[dimCPU])), float64(max(1, m.asked[dimMemory]))
	highest := 0.0
	for step := range districtMixtures + 1 {
		share := float64(step) / districtMixtures
		x, y := share/cpu, (1-share)/memory
		scale := math.Inf(1)
		for _, o := range d.stock {
			if mach := &m.machines[o.index]; !mach.devices {
				scale = min(scale, m.priceAt(o.index, zone)/worthOfCores(mach.usable, x, y))
			}
		}
		if scale > highest && !math.IsInf(scale, 1) {
			highest, d.core, d.memory = scale, scale*x, scale*y
		}
	}
	for k := range d.stock {
		o := &d.stock[k]
		o.rate = m.priceAt(o.index, zone) / worthOfCores(m.machines[o.index].usable, d.core, d.memory)
	}
	slices.SortStableFunc(d.stock, func(a, b ware) int { return cmp.Compare(a.rate, b.rate) })
	return d
}

func worthOfCores(room []int64, core, memory float64) float64 {
	return core*float64(max(0, room[dimCPU])) + memory*float64(max(0, room[dimMemory]))
}

// priceAt is a machine's price in one of its zones.
func (m *market) priceAt(index, zone int) float64 { return m.zonePrice[index*len(m.zones)+zone] }

// costOf is about what one pod costs where it may use the machines of these variants, of the best capacity type they
// have, in US dollars per hour.
func (m *market) costOf(request []int64, variants []variant) float64 {
	for c := range capacityTypes {
		lowest := math.Inf(1)
		for v := range variants {
			for z := range m.zones {
				if variants[v].zones&(1<<z) != 0 {
					lowest = min(lowest, m.costIn(z, c, request, variants[v].machines))
				}
			}
		}
		if !math.IsInf(lowest, 1) {
			return lowest
		}
	}
	return math.Inf(1)
}

// costIn is about what a pod costs in a zone on the best of some machines; infinite if none of them can be had there.
func (m *market) costIn(zone, capacity int, request []int64, machines bitset) float64 {
	const least = 1 // a pod that asks for nothing takes a little all the same
	d := m.district(zone, capacity)
	worth := d.core*float64(request[dimCPU]+least) + d.memory*float64(request[dimMemory]+least)
	devices := slices.ContainsFunc(request[dimExtended:dimExtended+len(m.dims.extended)], func(n int64) bool { return n > 0 })
	lowest := math.Inf(1)
	for _, o := range d.stock {
		if !machines.has(o.index) {
			continue
		}
		if !devices {
			return worth * o.rate
		}
		// What is scarce of a machine with devices is not its cores.
		if n := times(request, m.machines[o.index].usable); n > 0 {
			lowest = min(lowest, m.priceAt(o.index, zone)/float64(n))
		}
	}
	return lowest
}
