package place

import (
	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/solve"
)

// LowerBound returns a price, in US dollars per hour, that no plan for the waiting pods can undercut if existing nodes
// take none of them. It includes what nodes cost besides their machines. Plans are measured against it.
func LowerBound(in model.Input) float64 {
	d := survey(&in, false)
	Distribute(d, d.PodGroups)
	m := d.Market
	var chunks []*DemandChunk
	for _, l := range d.Chunks {
		for _, p := range l.Content {
			// Another plan may choose other domains, so the choice does not count here.
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
