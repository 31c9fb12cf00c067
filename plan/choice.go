package plan

import (
	"cmp"
	"math"
	"slices"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// minimum is a NodePool's minValues for one label.
type minimum struct {
	key   string
	count int
}

func minimumsOf(pool *karpv1.NodePool) []minimum {
	var minimums []minimum
	for _, r := range pool.Spec.Template.Spec.Requirements {
		if r.MinValues != nil && *r.MinValues > 1 {
			minimums = append(minimums, minimum{karpv1.NormalizedLabelKey(r.Key), *r.MinValues})
		}
	}
	return minimums
}

// withChoice gives every machine of a pool with minValues only the room that enough other machines have too. Machines
// without enough company are left out, unless the policy is best effort. All machines given are open to the same items.
func (m *market) withChoice(goods []good) []good {
	if len(goods) == 0 {
		return nil
	}
	minimums := m.sellers[m.machines[goods[0].index].pool].minimums
	if len(minimums) == 0 {
		return goods
	}
	var kept []good
	for _, g := range goods {
		if room := m.companyRoom(g, goods, minimums); room != nil {
			g.room = room
			kept = append(kept, g)
		}
	}
	if len(kept) == 0 && m.policy == MinValuesBestEffort {
		return goods
	}
	return kept
}

// companyRoom is the room that a machine shares with the others it needs for the minimums: of those, the ones that
// take the least from it, and of equal ones the cheapest. It is nil if there are not enough.
func (m *market) companyRoom(g good, goods []good, minimums []minimum) []int64 {
	candidates := slices.Clone(goods)
	loss := func(other good) float64 {
		worst := 0.0
		for d := range g.room {
			if g.room[d] > 0 {
				worst = max(worst, 1-float64(other.room[d])/float64(g.room[d]))
			}
		}
		// A company of large machines keeps the room, and makes the launch dear. Weigh both.
		return worst + 0.5*max(0, math.Log2(other.price/g.price))
	}
	slices.SortStableFunc(candidates, func(a, b good) int { return cmp.Compare(loss(a), loss(b)) })
	tally := m.newTally(minimums)
	room := slices.Clone(g.room)
	tally.add(g.index)
	for _, c := range candidates {
		if tally.met() {
			return room
		}
		if tally.adds(c.index) {
			tally.add(c.index)
			for d := range room {
				room[d] = min(room[d], c.room[d])
			}
		}
	}
	if tally.met() {
		return room
	}
	return nil
}

// tally counts distinct values against minimums.
type tally struct {
	m        *market
	minimums []minimum
	seen     []map[string]bool
}

func (m *market) newTally(minimums []minimum) *tally {
	t := &tally{m: m, minimums: minimums}
	for range minimums {
		t.seen = append(t.seen, map[string]bool{})
	}
	return t
}

func (t *tally) met() bool {
	for i := range t.minimums {
		if len(t.seen[i]) < t.minimums[i].count {
			return false
		}
	}
	return true
}

// adds says whether the machine brings a value that is still missing.
func (t *tally) adds(index int) bool {
	for i := range t.minimums {
		if len(t.seen[i]) >= t.minimums[i].count {
			continue
		}
		for _, value := range t.m.valuesOf(index, t.minimums[i].key) {
			if !t.seen[i][value] {
				return true
			}
		}
	}
	return false
}

func (t *tally) add(index int) {
	for i := range t.minimums {
		for _, value := range t.m.valuesOf(index, t.minimums[i].key) {
			t.seen[i][value] = true
		}
	}
}

// valuesOf are the values a label may have on a machine: several where it follows from the zone.
func (m *market) valuesOf(index int, key string) []string {
	if m.zonal(key) {
		var values []string
		for z := range m.zones {
			if m.machines[index].zones&(1<<z) != 0 {
				if value := m.zoneLabels(z)[key]; value != "" {
					values = append(values, value)
				}
			}
		}
		return values
	}
	col := m.column(key)
	if id := col.ids[index]; id >= 0 {
		return col.values[id : id+1]
	}
	return nil
}

// choose picks the machines a launch may choose from, at most MaxInstanceTypes, the cheapest first, so that the
// minimums are met. candidates are sorted by price and each of another instance type.
func (m *market) choose(candidates []int, minimums []minimum) (chosen []int, met bool) {
	tally := m.newTally(minimums)
	picked := map[int]bool{}
	for _, index := range candidates {
		if tally.met() {
			break
		}
		if len(picked) < MaxInstanceTypes && (len(picked) == 0 || tally.adds(index)) {
			tally.add(index)
			picked[index] = true
		}
	}
	for _, index := range candidates {
		if len(picked) >= MaxInstanceTypes {
			break
		}
		picked[index] = true
	}
	for _, index := range candidates {
		if picked[index] {
			chosen = append(chosen, index)
		}
	}
	return chosen, tally.met()
}
