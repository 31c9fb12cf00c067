package place

import (
	"fmt"
	"math"
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/solve"
)

// concentration is the divisor of the share of a workload or batch that one node should not exceed: a third.
const concentration = 3

// purchase buys machines for demands and puts their pods onto them. It does not buy a machine that none of its pods may
// use.
func purchase(m *market.Market, demands []*Demand, candidates []candidateType) []*PlannedNode {
	sold := soldByZone(m, demands, candidates)
	if len(sold) == 0 {
		return nil
	}
	var planned []*PlannedNode
	for _, l := range solve.Solve(problemOf(m, demands, sold)) {
		if b := deliver(m, &l, demands, &sold[l.Machine]); b != nil {
			planned = append(planned, b)
		}
	}
	for _, d := range demands {
		if d.Pieces() == 0 {
			continue
		}
		for i := range d.stock.All {
			m.Affordable(i, m.Machines[i].Size) // records that a limit is met
		}
	}
	return planned
}

// Strategies returns the names of the ways to look for a lower price.
func Strategies() []string {
	var names []string
	for _, s := range solve.Strategies() {
		names = append(names, string(s))
	}
	return names
}

// problemOf translates what is to be bought, and what can be bought, into numbers.
func problemOf(m *market.Market, demands []*Demand, sold []candidateType) *solve.Problem {
	p := &solve.Problem{Follows: m.Nominates, Without: solve.Strategy(m.Without), Batch: m.Batch, Machines: make([]solve.Machine, len(sold))}
	addBudgets(m, p, sold)
	for i, g := range sold {
		prices := slices.Repeat([]float64{math.Inf(1)}, len(m.Zones))
		for z := range (market.Bitset{g.zones}).All {
			prices[z] = m.PriceAt(g.index, z) + market.SellerOf(m, g.index).NodePrice
		}
		p.Machines[i].Room, p.Machines[i].Prices = g.room, prices
	}
	spread := !slices.ContainsFunc(sold, func(g candidateType) bool { return market.SellerOf(m, g.index).Packing == model.PackingCheapest })
	if spread && m.Batch >= concentration {
		p.Share = m.Batch / concentration
	}
	sets := map[string]market.Bitset{}
	for _, d := range demands {
		asked := demandFor(d, sold, sets)
		if workload := d.workload(); spread && workload >= concentration {
			asked.Share = workload / concentration
		}
		p.Demands = append(p.Demands, asked)
	}
	addKinds(m, p, demands, sold)
	picky := func(g candidateType) bool { return len(market.SellerOf(m, g.index).Minimums) > 0 }
	if m.Policy != model.MinValuesBestEffort && slices.ContainsFunc(sold, picky) {
		p.Accepts = func(machine int, zones uint64, content []solve.Count) bool {
			return leavesChoice(m, sold[machine].index, zones, content, demands)
		}
	}
	return p
}

// addBudgets adds to a problem what is left of reservations, and of limits that the pods may reach.
func addBudgets(m *market.Market, p *solve.Problem, sold []candidateType) {
	budgets := map[any]int{}
	for i, g := range sold {
		takes := func(from any, left, amount int64) {
			b, known := budgets[from]
			if !known {
				b = len(p.Budgets)
				budgets[from], p.Budgets = b, append(p.Budgets, left)
			}
			p.Machines[i].Takes = append(p.Machines[i].Takes, solve.Take{Budget: b, Amount: amount})
		}
		limits := market.SellerOf(m, g.index).Budget
		for a := range limits {
			if amount := market.CountOf(limits[a].Name, g.size); !limits[a].Remote && amount > 0 {
				takes(&limits[a], limits[a].Left, amount)
			}
		}
		if r := m.Machines[g.index].Reservation; r != market.Unreserved {
			takes(&m.Reservations[r], int64(m.Reservations[r].Left), 1)
		}
	}
}

// demandFor translates a demand into numbers. sets caches sets of machines, because many demands may use the same.
func demandFor(d *Demand, sold []candidateType, sets map[string]market.Bitset) solve.Demand {
	result := solve.Demand{Request: d.Request, Pieces: d.Pieces(), Most: d.most}
	switch {
	case len(d.ports) > 0:
		result.Most = 1 // whichever demand chunks its pieces belong to
	case result.Most > 0 && len(d.lots) > 1:
		for _, l := range d.lots {
			result.Lots = append(result.Lots, l.Left())
		}
	}
	for _, v := range d.variants {
		machines := v.Machines.Clone()
		machines.Intersect(d.stock)
		key := fmt.Sprint(v.Zones) + machines.Key()
		set, known := sets[key]
		if !known {
			set = market.NewBitset(len(sold))
			for i, g := range sold {
				if machines.Has(g.index) && g.zones&v.Zones != 0 {
					set.Set(i)
				}
			}
			sets[key] = set
		}
		result.Ways = append(result.Ways, solve.Way{Machines: set, Zones: v.Zones})
	}
	return result
}

// addKinds distinguishes demands that cannot share every machine for reasons that numbers do not express: host ports,
// and labels that a pool leaves open.
func addKinds(m *market.Market, p *solve.Problem, demands []*Demand, sold []candidateType) {
	kinds := map[string]int{}
	for k, d := range demands {
		if len(d.ports) == 0 && !slices.ContainsFunc(d.variants, func(v market.Variant) bool { return len(v.Custom) > 0 }) {
			continue
		}
		key := fmt.Sprint(d.ports)
		for v := range d.variants {
			key += "|" + d.variants[v].Custom.String()
		}
		if kinds[key] == 0 {
			kinds[key] = len(kinds) + 1
		}
		p.Demands[k].Kind = kinds[key]
	}
	p.Joins = func(machine int, content []solve.Count, demand, way int) bool {
		d := demands[demand]
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
		_, ok := m.Settle(market.SellerOf(m, sold[machine].index), custom)
		return ok
	}
}

// deliver turns a load into a planned node. It returns nil if none of its pods may go there.
func deliver(m *market.Market, l *solve.Load, demands []*Demand, g *candidateType) *PlannedNode {
	if m.Affordable(g.index, g.size) == 0 {
		return nil
	}
	b := NewPlannedNode(m, g.index)
	b.Size, b.Free = g.size, slices.Clone(g.room)
	for _, c := range l.Content {
		b.add(demands[c.Demand], c.Way, c.N)
	}
	if len(b.content) == 0 {
		return nil
	}
	m.Spend(b.Machine, b.Size, 1)
	return b
}
