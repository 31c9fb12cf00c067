package place

import (
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
	"github.com/tenon-sh/tenon/plan/solve"
)

// LowerBound is what no plan for the pods that wait can undercut, in US dollars per hour, with what nodes cost beside their
// machines, given that existing nodes take none of the pods. It is what plans are measured against.
func LowerBound(in model.Input) float64 {
	d := survey(&in, false)
	Distribute(d, d.PodGroups)
	all := market.NewBitset(len(d.Market.Machines))
	for i := range d.Market.Machines {
		all.Set(i)
	}
	var chunks []*DemandChunk
	for _, l := range d.Chunks {
		for _, p := range l.Content {
			// Whatever was decided about domains, another plan may decide otherwise.
			chunks = append(chunks, &DemandChunk{Request: p.as.Request, ports: p.it.ports(), variants: p.as.Variants, Allowed: p.as.Allowed, most: p.as.most,
				attach: &rules.Attachments{}, place: p.it.Place, Content: []part{p}})
		}
	}
	sum := 0.0
	stocks := preferred(d.Market, chunks, all, capacityTries{})
	for c := range stocks {
		for _, group := range components(d.Market, stocks[c]) {
			demands := DemandsOf(d.Market, group)
			sum += solve.LowerBound(problemOf(d.Market, demands, soldAs(d.Market, demands, candidateTypesFor(d.Market, demands))))
		}
	}
	return sum
}

// BestKnown is what the cheapest plan that is found for the pods that wait costs, in US dollars per hour, were every pod to
// go where it is planned. Pack may choose a dearer plan, because the kube-scheduler does not follow plans, or to spread.
func BestKnown(in model.Input) float64 {
	in.Nominates = true
	in.Pools = slices.Clone(in.Pools)
	for i := range in.Pools {
		in.Pools[i].Packing = model.PackingCheapest
	}
	return Pack(in).PricePerHour()
}
