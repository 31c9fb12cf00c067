package plan

import (
	"math"
	"slices"
)

// LowerBound is what no plan for the pods that wait can undercut, in US dollars per hour, given that pods take the
// capacity types they would be planned for and existing nodes take none of them. It is what plans are measured against.
//
// The worths of program.go would be such a bound if no load at all carried more than its machine costs. The loads that
// were tried do not, but there are others. So each machine is given a limit that no load can exceed: the value of its
// knapsack when pods are divisible, that of the best load where a search comes to its end, or what a table says (table.go).
// The worths are scaled down until every limit is within its price (Farley, "A note on bounding a class of linear
// programming problems", 1990).
func LowerBound(in Input) float64 {
	return sumOver(in, (*market).goodsFor, (*buyer).lowerBound)
}

// BestKnown is what the cheapest plan known for the pods that wait costs, in US dollars per hour, were every pod to go
// where it is planned. Pack may choose a dearer plan, because the kube-scheduler does not follow plans (see robust.go).
func BestKnown(in Input) float64 {
	return sumOver(in, (*market).fewGoodsFor, func(b *buyer) float64 { return b.offer(0, false, slices.Clone(b.left), b.lean).price })
}

// sumOver adds up an amount over all groups of pods that share machines, and may use some of them.
func sumOver(in Input, goods func(*market, []stocked) []good, amount func(*buyer) float64) float64 {
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
			b := newBuyer(d.m, demands, goods(d.m, demands))
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
	highest := b.proportionalBound()
	p := b.newProgram()
	for range maxProofs {
		p.solve(provingRounds)
		for k, dual := range p.dual {
			b.worth[k] = max(0, dual)
		}
		scale := 1.0
		var better []load
		for i := range b.goods {
			g := &b.goods[i]
			limit, l := b.proof(g)
			if l != nil {
				better = append(better, *l)
			}
			if limit > 0 {
				scale = min(scale, g.price/limit)
			}
		}
		if highest = max(highest, scale*b.total()); p.cost() <= highest*closeEnough {
			break
		}
		improved := false
		for i := range better {
			improved = p.carries(&better[i]) > better[i].price*enough && p.enter(&better[i]) || improved
		}
		if !improved {
			break
		}
	}
	return highest
}

// proof is an upper limit for the worth of any load of a good, and a load worth more than its price if one was found.
func (b *buyer) proof(g *good) (float64, *load) {
	if b.knapsack(g, knapsackSteps, knapsackDecay) <= g.price {
		return g.price, nil
	}
	limit, l := b.heaviest(g, 3000, 0.997, provingBranches)
	if limit <= g.price*worthASearch || l != nil && limit <= l.value {
		return limit, l
	}
	if exact, other, ok := b.heaviestByTable(g); ok {
		limit = max(g.price, min(limit, exact))
		if other != nil && (l == nil || other.value > l.value) {
			l = other
		}
	}
	return limit, l
}

// proportionalBound is the best bound by worths that follow from what pods ask for, with some price for cores and some
// for memory. For many pods of many sizes it is nearly exact, and the program would take long to come as near.
func (b *buyer) proportionalBound() float64 {
	cpu, memory := 0.0, 0.0
	for k := range b.items {
		cpu += float64(b.items[k].request[dimCPU]) * float64(b.left[k])
		memory += float64(b.items[k].request[dimMemory]) * float64(b.left[k])
	}
	if cpu == 0 || memory == 0 {
		return 0
	}
	highest := 0.0
	for step := range mixtures + 1 {
		share := float64(step) / mixtures
		for k := range b.items {
			request := b.items[k].request
			b.worth[k] = share*float64(request[dimCPU])/cpu + (1-share)*float64(request[dimMemory])/memory
		}
		scale := math.Inf(1)
		for i := range b.goods {
			g := &b.goods[i]
			g.prices = nil
			if limit := b.descend(g, worthOfRoom(g, cpu, memory), proportionalSteps, proportionalDecay); limit > 0 {
				scale = min(scale, g.price/limit)
			}
		}
		if !math.IsInf(scale, 1) {
			highest = max(highest, scale*b.total())
		}
	}
	return highest
}

// worthOfRoom is about what a good full of pods is worth when all of them together are worth one dollar.
func worthOfRoom(g *good, cpu, memory float64) float64 {
	return float64(g.room[dimCPU])/cpu + float64(g.room[dimMemory])/memory
}

// Bounds of the effort a proof is worth.
const (
	provingRounds = 100
	maxProofs     = 60
	// closeEnough is how near the bound has to come to what the program costs.
	closeEnough     = 1.002
	provingBranches = 4_000
	// mixtures of the worths of cores and memory are tried, each with so many steps of the knapsack.
	mixtures          = 24
	proportionalSteps = 400
	proportionalDecay = 0.98
)
