package plan

import "slices"

// LowerBound is what no plan for the pods that wait can undercut, in US dollars per hour, given that pods take the
// capacity types they would be planned for and existing nodes take none of them. It is what plans are measured against.
//
// The worths of program.go would be such a bound if no load at all carried more than its machine costs. The loads that
// were tried do not, but there are others. So each machine is given a limit that no load can exceed, the value of its
// knapsack when pods are divisible, and the worths are scaled down until every limit is within its price (Farley, "A note
// on bounding a class of linear programming problems", 1990).
func LowerBound(in Input) float64 {
	return sumOver(in, func(b *buyer) float64 { return b.lowerBound() })
}

// BestKnown is what the cheapest plan known for the pods that wait costs, in US dollars per hour, were every pod to go
// where it is planned. Pack may choose a dearer plan, because the kube-scheduler does not follow plans (see robust.go).
func BestKnown(in Input) float64 {
	return sumOver(in, func(b *buyer) float64 { return b.offer(0, false, slices.Clone(b.left), b.lean).price })
}

// sumOver adds up an amount over all groups of pods that share machines.
func sumOver(in Input, amount func(*buyer) float64) float64 {
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
			b := newBuyer(d.m, demandsOf(group))
			for k, it := range b.items {
				b.left[k] = it.wanted
			}
			sum += amount(b)
		}
	}
	return sum
}

// lowerBound solves the program with exact knapsacks where they are small enough, and scales its value by what is not
// proven.
func (b *buyer) lowerBound() float64 {
	p := b.newProgram()
	scale := 1.0
	for range maxProofs {
		p.solve(provingRounds)
		copy(b.worth, p.dual)
		scale = 1.0
		var better []load
		for i := range b.goods {
			g := &b.goods[i]
			limit, l := b.heaviest(g, 3000, 0.997, provingBranches)
			if l != nil {
				better = append(better, *l)
			}
			if limit > 0 {
				scale = min(scale, g.price/limit)
			}
		}
		improved := false
		for i := range better {
			improved = p.carries(&better[i]) > better[i].price*enough && p.enter(&better[i]) || improved
		}
		if !improved {
			break
		}
	}
	total := 0.0
	for k, worth := range b.worth {
		total += worth * float64(b.left[k])
	}
	return scale * total
}

// Bounds of the effort a proof is worth.
const (
	provingRounds   = 100
	maxProofs       = 60
	provingBranches = 30_000
)
