package place

import (
	"cmp"
	"math"
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/solve"
)

// withChoice gives every good of a pool with minValues only the room that enough other machines of the pool have too,
// which have to be open to all the same pod groups. Candidate types without enough company are left out, unless the
// policy is best effort.
func withChoice(m *market.Market, candidates []candidateType) []candidateType {
	var kept []candidateType
	for _, g := range candidates {
		pool := m.Machines[g.index].Pool
		minimums := m.Sellers[pool].Minimums
		if len(minimums) == 0 {
			kept = append(kept, g)
			continue
		}
		var company []candidateType
		for _, other := range candidates {
			own, mach := &m.Machines[g.index], &m.Machines[other.index]
			if mach.Pool == pool && mach.Capacity == own.Capacity && g.users.Within(other.users) && m.Sellers[pool].Affordable(m.Machines[other.index].Size) > 0 {
				company = append(company, other)
			}
		}
		if room, size := companyOf(m, g, company, minimums); room != nil {
			g.room, g.size = room, size
			kept = append(kept, g)
		} else if m.Policy == model.MinValuesBestEffort {
			kept = append(kept, g)
		}
	}
	return kept
}

// companyOf is the room that a machine shares with the others it needs for the minimums, and the largest capacity of
// them: those that take the least room from it, and of equal ones the cheapest. There is no room if they are not enough.
func companyOf(m *market.Market, g candidateType, goods []candidateType, minimums []market.Minimum) (room []int64, size model.Resources) {
	candidates := slices.Clone(goods)
	loss := func(other candidateType) float64 {
		worst := 0.0
		for d := range g.room {
			if g.room[d] > 0 {
				worst = max(worst, 1-float64(other.room[d])/float64(g.room[d]))
			}
		}
		// A company of large machines keeps the room, and makes the launch dear. Weigh both.
		return worst + 0.5*max(0, math.Log2(other.price/g.price))
	}
	slices.SortStableFunc(candidates, func(a, b candidateType) int { return cmp.Compare(loss(a), loss(b)) })
	tally := market.NewTally(m, minimums)
	room, size = slices.Clone(g.room), g.size
	tally.Add(g.index)
	for _, c := range candidates {
		if tally.Met() {
			return room, size
		}
		if tally.Adds(c.index) {
			tally.Add(c.index)
			size = size.Max(m.Machines[c.index].Size)
			for d := range room {
				room[d] = min(room[d], c.room[d])
			}
		}
	}
	if tally.Met() {
		return room, size
	}
	return nil, model.Resources{}
}

// leavesChoice says whether enough machines hold a content for its pool's minValues. What candidate types share is room;
// zones and alternatives of node affinity may still stand in the way.
func leavesChoice(m *market.Market, index int, zones uint64, content []solve.Count, demands []stocked) bool {
	s := m.Sellers[m.Machines[index].Pool]
	if len(s.Minimums) == 0 || m.Policy == model.MinValuesBestEffort {
		return true
	}
	full := PlannedNode{Machine: index, Zones: zones, Used: make([]int64, m.Dims.Count())}
	for _, c := range content {
		d := demands[c.Demand]
		solve.Subtract(full.Used, d.Request, -c.N)
		full.content = append(full.content, portion{variant: &d.variants[c.Way], count: c.N})
	}
	return market.Enough(m, s, Holders(m, s, &full))
}

// oneVariant leaves a pod group a single alternative in each pool with minValues: the one with the most machines. The
// machines of a launch have to meet the same alternative.
func oneVariant(m *market.Market, it *PodGroup) {
	if len(it.Variants) < 2 {
		return
	}
	for _, s := range m.Sellers {
		if len(s.Minimums) == 0 {
			continue
		}
		most, best := 0, 0
		for v := range it.Variants {
			machines := 0
			for i := s.First; i < s.Last; i++ {
				if it.Variants[v].Machines.Has(i) {
					machines++
				}
			}
			if machines > most {
				most, best = machines, v
			}
		}
		for v := range it.Variants {
			for i := s.First; i < s.Last && v != best; i++ {
				it.Variants[v].Machines.Clear(i)
			}
		}
	}
	clear(it.Allowed)
	for v := range it.Variants {
		it.Allowed.Unite(it.Variants[v].Machines)
	}
}
