package place

import (
	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/solve"
)

// LowerBound is what no plan for the pods that wait can undercut, in US dollars per hour, with what nodes cost beside their
// machines, given that existing nodes take none of the pods. It is what plans are measured against.
func LowerBound(in model.Input) float64 {
	d := survey(&in, false)
	Distribute(d, d.PodGroups)
	m := d.Market
	var chunks []*DemandChunk
	for _, l := range d.Chunks {
		for _, p := range l.Content {
			// Whatever was decided about domains, another plan may decide otherwise.
			chunks = append(chunks, &DemandChunk{
				Request: p.as.Request, ports: p.it.Class.HostPorts, variants: p.as.Variants, Allowed: p.as.Allowed, Content: []part{p},
			})
		}
	}
	paid := m.Those(func(mach *market.Machine) bool { return mach.Capacity == reserved })
	others := m.Those(func(mach *market.Machine) bool { return mach.Capacity != reserved })
	market.WithoutUsedUp(m, paid)
	sum := 0.0
	for _, r := range []round{{offered: paid}, {offered: others, shunning: paid}} {
		for _, group := range r.components(chunks) {
			demands := DemandsOf(m, group, r.offered)
			sum += solve.LowerBound(problemOf(m, demands, soldByZone(m, demands, candidateTypesFor(m, demands))))
		}
	}
	return sum
}
