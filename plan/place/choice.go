package place

import (
	"cmp"
	"math"
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/solve"
)

// withChoice reduces the room of every candidate type of a pool with minValues to what enough others of the pool have
// too; these others have to be open to all the same pod groups. Candidate types without enough others are left out,
// unless the policy is best effort.
func withChoice(m *market.Market, candidates []candidateType) []candidateType {
	var kept []candidateType
	for _, g := range candidates {
		own, s := &m.Machines[g.index], market.SellerOf(m, g.index)
		if len(s.Minimums) == 0 {
			kept = append(kept, g)
			continue
		}
		company := slices.DeleteFunc(slices.Clone(candidates), func(other candidateType) bool {
			mach := &m.Machines[other.index]
			return mach.Pool != own.Pool || mach.Capacity != own.Capacity || !g.users.Within(other.users) || s.Affordable(mach.Size) == 0
		})
		shared, enough := sharing(m, g, company)
		switch {
		case enough:
			kept = append(kept, shared)
		case m.Policy == model.MinValuesBestEffort:
			kept = append(kept, g)
		}
	}
	return kept
}

// sharing returns a candidate type with the room that it shares with the others that it needs for its pool's minimums,
// and with the largest capacity among them. It picks the others that cost it the least room, and the cheapest of equal
// ones. It also reports whether they are enough.
func sharing(m *market.Market, g candidateType, company []candidateType) (shared candidateType, enough bool) {
	loss := func(other candidateType) float64 {
		worst := 0.0
		for d := range g.room {
			if g.room[d] > 0 {
				worst = max(worst, 1-float64(other.room[d])/float64(g.room[d]))
			}
		}
		// Large machines keep the room, and make the launch dear. Weigh both.
		return worst + 0.5*max(0, math.Log2(other.price/g.price))
	}
	slices.SortStableFunc(company, func(a, b candidateType) int { return cmp.Compare(loss(a), loss(b)) })
	tally := market.NewTally(m, market.SellerOf(m, g.index).Minimums)
	shared = g
	shared.room = slices.Clone(g.room)
	tally.Add(g.index)
	for _, c := range company {
		if tally.Adds(c.index) {
			tally.Add(c.index)
			shared.size = shared.size.Max(m.Machines[c.index].Size)
			for d := range shared.room {
				shared.room[d] = min(shared.room[d], c.room[d])
			}
		}
	}
	return shared, tally.Met()
}

// leavesChoice reports whether enough machines hold a content for its pool's minValues. Candidate types share room, but
// zones and alternatives of node affinity may still stand in the way.
func leavesChoice(m *market.Market, index int, zones uint64, content []solve.Count, demands []*Demand) bool {
	b := PlannedNode{Machine: index, Zones: zones, used: make([]int64, m.Dims.Count())}
	for _, c := range content {
		d := demands[c.Demand]
		solve.Subtract(b.used, d.Request, -c.N)
		b.content = append(b.content, portion{demand: d, variant: &d.variants[c.Way], count: c.N})
	}
	return b.LeavesChoice(m)
}

// LeavesChoice reports whether as many machines hold the planned node's content as its pool's minValues require.
func (b *PlannedNode) LeavesChoice(m *market.Market) bool {
	s := market.SellerOf(m, b.Machine)
	return len(s.Minimums) == 0 || m.Policy == model.MinValuesBestEffort || market.Enough(m, s, Holders(m, s, b))
}

// oneVariant leaves a pod group one alternative in each pool with minValues: the one with the most machines. All
// machines of a launch have to meet the same alternative.
func oneVariant(m *market.Market, it *PodGroup) {
	if len(it.Variants) < 2 {
		return
	}
	for _, s := range m.Sellers {
		if len(s.Minimums) == 0 {
			continue
		}
		count := make([]int, len(it.Variants))
		for v := range it.Variants {
			for i := s.First; i < s.Last; i++ {
				count[v] += int(model.Flag(it.Variants[v].Machines.Has(i)))
			}
		}
		best := slices.Index(count, slices.Max(count))
		for v := range it.Variants {
			if v != best {
				it.Variants[v].Machines.Exclude(m.Of(s))
			}
		}
	}
	it.Allowed = m.UnionOf(it.Variants)
}
