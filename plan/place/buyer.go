package place

import (
	"fmt"
	"math"
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/solve"
)

// concentration is the part of a workload or of a batch that one node should not exceed: a third.
const concentration = 3

// almostEqual is the part of its price by which something may be dearer than the cheapest and count as costing the same.
const almostEqual = solve.AlmostEqual

// purchase buys machines for demands and puts their pods onto them. A machine that none of its pods may go to is not bought.
func purchase(m *market.Market, demands []stocked, candidates []candidateType) []*PlannedNode {
	if len(candidates) == 0 {
		return nil
	}
	sold := soldAs(m, demands, candidates)
	var planned []*PlannedNode
	for _, l := range solve.Solve(problemOf(m, demands, sold)) {
		if b := deliver(m, &l, demands, sold[l.Machine].candidateType); b != nil {
			planned = append(planned, b)
		}
	}
	for _, d := range demands {
		if d.Pieces() > 0 {
			noteLimits(m, d.stock)
		}
	}
	return planned
}

// Strategies are the names of the ways to look for a lower price.
func Strategies() []string {
	var names []string
	for _, s := range solve.Strategies() {
		names = append(names, string(s))
	}
	return names
}

// noteLimits finds out whether a limit is what keeps machines from being bought.
func noteLimits(m *market.Market, stock market.Bitset) {
	for i := range stock.All {
		m.Affordable(i, m.Machines[i].Size)
	}
}

// zonalGood is a good in some zones: in all of its own, or in one where demands are bound to zones.
type zonalGood struct {
	*candidateType
	zones uint64
}

// soldAs are the candidate types as they are sold to some demands.
func soldAs(m *market.Market, demands []stocked, candidates []candidateType) []zonalGood {
	bound := slices.ContainsFunc(demands, func(d stocked) bool {
		return slices.ContainsFunc(d.variants, func(v market.Variant) bool { return m.AllZones&^v.Zones != 0 })
	})
	var sold []zonalGood
	for i := range candidates {
		zones := m.Machines[candidates[i].index].Zones
		if !bound {
			sold = append(sold, zonalGood{&candidates[i], zones})
			continue
		}
		for ; zones != 0; zones &= zones - 1 {
			sold = append(sold, zonalGood{&candidates[i], zones & -zones})
		}
	}
	return sold
}

// problemOf says in numbers what is to be bought and what there is to buy.
func problemOf(m *market.Market, demands []stocked, sold []zonalGood) *solve.Problem {
	p := &solve.Problem{Follows: m.Nominates, Without: solve.Strategy(m.Without)}
	budgetsOf(m, p, sold)
	zones := make([]float64, len(sold)*len(m.Zones))
	for i, w := range sold {
		prices := zones[i*len(m.Zones) : (i+1)*len(m.Zones)]
		for z := range prices {
			prices[z] = math.Inf(1)
			if w.zones&(1<<z) != 0 {
				prices[z] = m.PriceAt(w.index, z) + m.Sellers[m.Machines[w.index].Pool].NodePrice
			}
		}
		p.Machines[i].Room, p.Machines[i].Prices = w.room, prices
	}
	spread := !slices.ContainsFunc(sold, func(w zonalGood) bool { return m.Sellers[m.Machines[w.index].Pool].Packing == model.PackingCheapest })
	if spread && m.Batch >= concentration {
		p.Share = m.Batch / concentration
	}
	sets := map[string]market.Bitset{}
	p.Demands = make([]solve.Demand, len(demands))
	for k, d := range demands {
		p.Demands[k] = demandFor(m, d, sold, sets)
		if workload := d.workload(); spread && workload >= concentration {
			p.Demands[k].Share = workload / concentration
		}
	}
	kindsOf(m, p, demands, sold)
	for _, w := range sold {
		if len(m.Sellers[m.Machines[w.index].Pool].Minimums) > 0 && m.Policy != model.MinValuesBestEffort {
			p.Accepts = func(machine int, zones uint64, content []solve.Count) bool {
				return leavesChoice(m, sold[machine].index, zones, content, demands)
			}
			break
		}
	}
	return p
}

// budgetsOf tells a problem what limits that are near and reservations leave.
func budgetsOf(m *market.Market, p *solve.Problem, sold []zonalGood) {
	p.Machines = make([]solve.Machine, len(sold))
	limits, reservations := map[*market.Allowance]int{}, map[int]int{}
	for i, w := range sold {
		mach := &m.Machines[w.index]
		budget := m.Sellers[mach.Pool].Budget
		for a := range budget {
			amount := market.CountOf(budget[a].Name, w.size)
			if budget[a].Remote || amount <= 0 {
				continue
			}
			b, known := limits[&budget[a]]
			if !known {
				b = len(p.Budgets)
				limits[&budget[a]] = b
				p.Budgets = append(p.Budgets, budget[a].Left)
			}
			p.Machines[i].Takes = append(p.Machines[i].Takes, solve.Take{Budget: b, Amount: amount})
		}
		if mach.Reservation == market.Unreserved {
			continue
		}
		b, known := reservations[mach.Reservation]
		if !known {
			b = len(p.Budgets)
			reservations[mach.Reservation] = b
			p.Budgets = append(p.Budgets, int64(m.Reservations[mach.Reservation].Left))
		}
		p.Machines[i].Takes = append(p.Machines[i].Takes, solve.Take{Budget: b, Amount: 1})
	}
}

// demandFor is a demand in numbers. sets are those of machines that are known, since many demands may use the same.
func demandFor(m *market.Market, d stocked, sold []zonalGood, sets map[string]market.Bitset) solve.Demand {
	result := solve.Demand{Request: d.Request, Pieces: d.wanted, Most: d.most}
	switch {
	case len(d.ports) > 0:
		result.Most = 1 // whichever demand chunks its pieces are of
	case result.Most > 0 && len(d.lots) > 1:
		left := d.wanted
		for _, l := range d.lots {
			n := min(left, l.Left())
			result.Lots = append(result.Lots, n)
			left -= n
		}
	}
	for v := range d.variants {
		machines := d.variants[v].Machines.Clone()
		machines.Intersect(d.stock)
		key := fmt.Sprint(d.variants[v].Zones) + machines.Key()
		set, known := sets[key]
		if !known {
			set = market.NewBitset(len(sold))
			for i, w := range sold {
				if machines.Has(w.index) && w.zones&d.variants[v].Zones != 0 {
					set.Set(i)
				}
			}
			sets[key] = set
		}
		result.Ways = append(result.Ways, solve.Way{Machines: set, Zones: d.variants[v].Zones})
	}
	return result
}

// kindsOf tells demands apart that cannot share every machine for reasons that no number tells: host ports, and labels that
// a pool leaves open.
func kindsOf(m *market.Market, p *solve.Problem, demands []stocked, sold []zonalGood) {
	kinds := map[string]int{}
	for k, d := range demands {
		var key []byte
		for _, port := range d.ports {
			key = model.AppendString(model.AppendString(append(key, byte(port.Port), byte(port.Port>>8)), string(port.Protocol)), port.IP)
		}
		for v := range d.variants {
			for i := range d.variants[v].Custom {
				key = model.AppendString(key, d.variants[v].Custom[i].ID())
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
		d, s := demands[demand], m.Sellers[m.Machines[sold[machine].index].Pool]
		custom := slices.Clone(d.variants[way].Custom)
		for _, c := range content {
			other := demands[c.Demand]
			if market.PortsConflict(other.ports, d.ports) {
				return false
			}
			custom = append(custom, other.variants[c.Way].Custom...)
		}
		if len(d.variants[way].Custom) == 0 {
			return true
		}
		_, ok := s.Settle(custom)
		return ok
	}
}

// workload is how many pieces the demand's largest workload has in the batch.
func (d *Demand) workload() int {
	most := 0
	for _, l := range d.lots {
		if l.bundle {
			return 0
		}
		most = max(most, l.workload)
	}
	return most
}

// deliver makes a planned node of a load; nil if none of its pods may go there. Pods that mind their company are given
// their places first.
func deliver(m *market.Market, l *solve.Load, demands []stocked, g *candidateType) *PlannedNode {
	mach := &m.Machines[g.index]
	if m.Affordable(g.index, g.size) == 0 {
		return nil
	}
	b := &PlannedNode{Machine: g.index, Zones: mach.Zones, Size: g.size, Free: slices.Clone(g.room), Used: make([]int64, len(g.room)),
		Attach: m.Book.NewRoom(mach.Typ.Name)}
	if m.Hosts > 0 {
		b.Tally = make([]int32, m.Hosts)
	}
	done := make([]int, len(l.Content))
	for minding := MindsPods; minding <= MindsNothing; minding++ {
		for j, c := range l.Content {
			done[j] += FillUp(m, b, demands[c.Demand].Demand, c.Way, c.N-done[j], minding)
		}
	}
	if len(b.content) == 0 {
		return nil
	}
	m.Spend(b.Machine, b.Size, 1)
	return b
}
