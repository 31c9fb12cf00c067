package plan

import (
	"fmt"
	"math"
	"slices"

	"github.com/tenon-sh/tenon/plan/solve"
)

// concentration is the part of a workload or of a batch that one node should not exceed: a third.
const concentration = 3

// almostEqual is the part of its price by which something may be dearer than the cheapest and count as costing the same.
const almostEqual = solve.AlmostEqual

// purchase buys machines for demands and puts their pods onto them. A machine that none of its pods may go to is not bought.
func (m *market) purchase(demands []stocked, goods []good) []*bin {
	if len(goods) == 0 {
		return nil
	}
	sold := m.soldAs(demands, goods)
	var bins []*bin
	for _, l := range solve.Solve(m.problemOf(demands, sold)) {
		if b := m.deliver(&l, demands, sold[l.Machine].good); b != nil {
			bins = append(bins, b)
		}
	}
	for _, d := range demands {
		if d.pieces() > 0 {
			m.noteLimits(d.stock)
		}
	}
	return bins
}

// noteLimits finds out whether a limit is what keeps machines from being bought.
func (m *market) noteLimits(stock bitset) {
	for i := range stock.all {
		m.affordable(i, m.machines[i].size)
	}
}

// zonalGood is a good in some zones: in all of its own, or in one where demands are bound to zones.
type zonalGood struct {
	*good
	zones uint64
}

// soldAs are the goods as they are sold to some demands.
func (m *market) soldAs(demands []stocked, goods []good) []zonalGood {
	bound := slices.ContainsFunc(demands, func(d stocked) bool {
		return slices.ContainsFunc(d.variants, func(v variant) bool { return m.allZones&^v.zones != 0 })
	})
	var sold []zonalGood
	for i := range goods {
		zones := m.machines[goods[i].index].zones
		if !bound {
			sold = append(sold, zonalGood{&goods[i], zones})
			continue
		}
		for ; zones != 0; zones &= zones - 1 {
			sold = append(sold, zonalGood{&goods[i], zones & -zones})
		}
	}
	return sold
}

// problemOf says in numbers what is to be bought and what there is to buy.
func (m *market) problemOf(demands []stocked, sold []zonalGood) *solve.Problem {
	p := &solve.Problem{Follows: m.nominates}
	m.budgetsOf(p, sold)
	zones := make([]float64, len(sold)*len(m.zones))
	for i, w := range sold {
		prices := zones[i*len(m.zones) : (i+1)*len(m.zones)]
		for z := range prices {
			prices[z] = math.Inf(1)
			if w.zones&(1<<z) != 0 {
				prices[z] = m.priceAt(w.index, z) + m.sellers[m.machines[w.index].pool].NodePrice
			}
		}
		p.Machines[i].Room, p.Machines[i].Prices = w.room, prices
	}
	spread := !slices.ContainsFunc(sold, func(w zonalGood) bool { return m.sellers[m.machines[w.index].pool].Packing == PackingCheapest })
	if spread && m.batch >= concentration {
		p.Share = (m.batch + concentration - 1) / concentration
	}
	sets := map[string]solve.Set{}
	p.Demands = make([]solve.Demand, len(demands))
	for k, d := range demands {
		p.Demands[k] = m.demandFor(d, sold, sets)
		if workload := d.workload(); spread && workload >= concentration {
			p.Demands[k].Share = (workload + concentration - 1) / concentration
		}
	}
	m.kindsOf(p, demands, sold)
	for _, w := range sold {
		if len(m.sellers[m.machines[w.index].pool].minimums) > 0 && m.policy != MinValuesBestEffort {
			p.Accepts = func(machine int, zones uint64, content []solve.Count) bool {
				return m.leavesChoice(sold[machine].index, zones, content, demands)
			}
			break
		}
	}
	return p
}

// budgetsOf tells a problem what limits that are near and reservations leave.
func (m *market) budgetsOf(p *solve.Problem, sold []zonalGood) {
	p.Machines = make([]solve.Machine, len(sold))
	limits, reservations := map[*allowance]int{}, map[int]int{}
	for i, w := range sold {
		mach := &m.machines[w.index]
		budget := m.sellers[mach.pool].budget
		for a := range budget {
			amount := countOf(budget[a].name, w.size)
			if budget[a].remote || amount <= 0 {
				continue
			}
			b, known := limits[&budget[a]]
			if !known {
				b = len(p.Budgets)
				limits[&budget[a]] = b
				p.Budgets = append(p.Budgets, budget[a].left)
			}
			p.Machines[i].Takes = append(p.Machines[i].Takes, solve.Take{Budget: b, Amount: amount})
		}
		if mach.reservation == unreserved {
			continue
		}
		b, known := reservations[mach.reservation]
		if !known {
			b = len(p.Budgets)
			reservations[mach.reservation] = b
			p.Budgets = append(p.Budgets, int64(m.reservations[mach.reservation].left))
		}
		p.Machines[i].Takes = append(p.Machines[i].Takes, solve.Take{Budget: b, Amount: 1})
	}
}

// demandFor is a demand in numbers. sets are those of machines that are known, since many demands may use the same.
func (m *market) demandFor(d stocked, sold []zonalGood, sets map[string]solve.Set) solve.Demand {
	result := solve.Demand{Request: d.request, Pieces: d.wanted, Most: d.most}
	switch {
	case len(d.ports) > 0:
		result.Most = 1 // whichever lots its pieces are of
	case result.Most > 0 && len(d.lots) > 1:
		left := d.wanted
		for _, l := range d.lots {
			n := min(left, l.left())
			result.Lots = append(result.Lots, n)
			left -= n
		}
	}
	for v := range d.variants {
		machines := d.variants[v].machines.clone()
		machines.intersect(d.stock)
		key := fmt.Sprint(d.variants[v].zones) + machines.key()
		set, known := sets[key]
		if !known {
			set = solve.NewSet(len(sold))
			for i, w := range sold {
				if machines.has(w.index) && w.zones&d.variants[v].zones != 0 {
					set.Add(i)
				}
			}
			sets[key] = set
		}
		result.Ways = append(result.Ways, solve.Way{Machines: set, Zones: d.variants[v].zones})
	}
	return result
}

// kindsOf tells demands apart that cannot share every machine for reasons that no number tells: host ports, and labels that
// a pool leaves open.
func (m *market) kindsOf(p *solve.Problem, demands []stocked, sold []zonalGood) {
	kinds := map[string]int{}
	for k, d := range demands {
		var key []byte
		for _, port := range d.ports {
			key = appendString(appendString(append(key, byte(port.Port), byte(port.Port>>8)), string(port.Protocol)), port.IP)
		}
		for v := range d.variants {
			for i := range d.variants[v].custom {
				key = appendString(key, d.variants[v].custom[i].id())
			}
			key = append(key, '|')
		}
		if len(key) == len(d.variants) {
			continue
		}
		if kinds[string(key)] == 0 {
			kinds[string(key)] = len(kinds) + 1
		}
		p.Demands[k].Kind = kinds[string(key)]
	}
	if len(kinds) == 0 {
		return
	}
	p.Joins = func(machine int, content []solve.Count, demand, way int) bool {
		d, s := demands[demand], m.sellers[m.machines[sold[machine].index].pool]
		custom := slices.Clone(d.variants[way].custom)
		for _, c := range content {
			other := demands[c.Demand]
			if portsConflict(other.ports, d.ports) {
				return false
			}
			custom = append(custom, other.variants[c.Way].custom...)
		}
		if len(d.variants[way].custom) == 0 {
			return true
		}
		_, ok := s.settle(custom)
		return ok
	}
}

// workload is how many pieces the demand's largest workload has in the batch.
func (d *demand) workload() int {
	most := 0
	for _, l := range d.lots {
		if l.bundle {
			return 0
		}
		most = max(most, l.workload)
	}
	return most
}

// deliver makes a bin of a load; nil if none of its pods may go there. Pods that mind their company are given their places
// first.
func (m *market) deliver(l *solve.Load, demands []stocked, g *good) *bin {
	mach := &m.machines[g.index]
	if m.affordable(g.index, g.size) == 0 {
		return nil
	}
	b := &bin{machine: g.index, zones: mach.zones, size: g.size, free: slices.Clone(g.room), used: make([]int64, len(g.room)),
		attach: m.book.newRoom(mach.typ.Name), least: l.Need}
	if m.hosts > 0 {
		b.tally = make([]int32, m.hosts)
	}
	done := make([]int, len(l.Content))
	for minding := mindsPods; minding <= mindsNothing; minding++ {
		for j, c := range l.Content {
			done[j] += m.fillUp(b, demands[c.Demand].demand, c.Way, c.N-done[j], minding)
		}
	}
	if len(b.content) == 0 {
		return nil
	}
	m.spend(b.machine, b.size, 1)
	return b
}
