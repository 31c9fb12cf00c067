package plan

import (
	"slices"

	"github.com/tenon-sh/tenon/plan/solve"
)

// LowerBound is what no plan for the pods that wait can undercut, in US dollars per hour, with what nodes cost beside their
// machines, given that existing nodes take none of the pods. It is what plans are measured against.
func LowerBound(in Input) float64 {
	d := survey(&in, false)
	d.distribute(d.items)
	all := newBitset(len(d.m.machines))
	for i := range d.m.machines {
		all.set(i)
	}
	var lots []*lot
	for _, l := range d.lots {
		for _, p := range l.content {
			// Whatever was decided about domains, another plan may decide otherwise.
			lots = append(lots, &lot{request: p.as.request, ports: p.it.ports(), variants: p.as.variants, allowed: p.as.allowed, most: p.as.most,
				attach: &attachments{}, place: p.it.place, content: []part{p}})
		}
	}
	sum := 0.0
	stocks := d.m.preferred(lots, all, capacityTries{})
	for c := range stocks {
		for _, group := range d.m.components(stocks[c]) {
			demands := d.m.demandsOf(group)
			sum += solve.LowerBound(d.m.problemOf(demands, d.m.soldAs(demands, d.m.goodsFor(demands))))
		}
	}
	return sum
}

// BestKnown is what the cheapest plan that is found for the pods that wait costs, in US dollars per hour, were every pod to
// go where it is planned. Pack may choose a dearer plan, because the kube-scheduler does not follow plans, or to spread.
func BestKnown(in Input) float64 {
	in.Nominates = true
	in.Pools = slices.Clone(in.Pools)
	for i := range in.Pools {
		in.Pools[i].Packing = PackingCheapest
	}
	return Pack(in).PricePerHour()
}
