package plan

import (
	"cmp"
	"math"
	"slices"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan/solve"
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

// withChoice gives every good of a pool with minValues only the room that enough other machines of the pool have too,
// which have to be open to all the same items. Goods without enough company are left out, unless the policy is best
// effort.
func (m *market) withChoice(goods []good) []good {
	var kept []good
	for _, g := range goods {
		pool := m.machines[g.index].pool
		minimums := m.sellers[pool].minimums
		if len(minimums) == 0 {
			kept = append(kept, g)
			continue
		}
		var company []good
		for _, other := range goods {
			own, mach := &m.machines[g.index], &m.machines[other.index]
			if mach.pool == pool && mach.capacity == own.capacity && g.users.within(other.users) && m.sellers[pool].affordable(m.machines[other.index].size) > 0 {
				company = append(company, other)
			}
		}
		if room, size := m.companyOf(g, company, minimums); room != nil {
			g.room, g.size = room, size
			kept = append(kept, g)
		} else if m.policy == MinValuesBestEffort {
			kept = append(kept, g)
		}
	}
	return kept
}

// companyOf is the room that a machine shares with the others it needs for the minimums, and the largest capacity of
// them: those that take the least room from it, and of equal ones the cheapest. There is no room if they are not enough.
func (m *market) companyOf(g good, goods []good, minimums []minimum) (room []int64, size Resources) {
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
	room, size = slices.Clone(g.room), g.size
	tally.add(g.index)
	for _, c := range candidates {
		if tally.met() {
			return room, size
		}
		if tally.adds(c.index) {
			tally.add(c.index)
			size = size.Max(m.machines[c.index].size)
			for d := range room {
				room[d] = min(room[d], c.room[d])
			}
		}
	}
	if tally.met() {
		return room, size
	}
	return nil, Resources{}
}

// leavesChoice says whether enough machines hold a content for its pool's minValues. What goods share is room; zones and
// alternatives of node affinity may still stand in the way.
func (m *market) leavesChoice(index int, zones uint64, content []solve.Count, demands []stocked) bool {
	s := m.sellers[m.machines[index].pool]
	if len(s.minimums) == 0 || m.policy == MinValuesBestEffort {
		return true
	}
	full := bin{machine: index, zones: zones, used: make([]int64, m.dims.count())}
	for _, c := range content {
		d := demands[c.Demand]
		take(full.used, d.request, -c.N)
		full.content = append(full.content, portion{variant: &d.variants[c.Way], count: c.N})
	}
	return m.enough(s, m.holders(s, &full))
}

// enough says whether machines of a pool meet its minValues.
func (m *market) enough(s *seller, set bitset) bool {
	tally := m.newTally(s.minimums)
	for i := range set.all {
		tally.add(i)
	}
	return tally.met()
}

// oneVariant leaves an item a single alternative in each pool with minValues: the one with the most machines. The
// machines of a launch have to meet the same alternative.
func (m *market) oneVariant(it *item) {
	if len(it.variants) < 2 {
		return
	}
	for _, s := range m.sellers {
		if len(s.minimums) == 0 {
			continue
		}
		most, best := 0, 0
		for v := range it.variants {
			machines := 0
			for i := s.first; i < s.last; i++ {
				if it.variants[v].machines.has(i) {
					machines++
				}
			}
			if machines > most {
				most, best = machines, v
			}
		}
		for v := range it.variants {
			for i := s.first; i < s.last && v != best; i++ {
				it.variants[v].machines.clear(i)
			}
		}
	}
	clear(it.allowed)
	for v := range it.variants {
		it.allowed.unite(it.variants[v].machines)
	}
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
				if value := m.zoneLabels[z][key]; value != "" {
					values = append(values, value)
				}
			}
		}
		return values
	}
	if key == karpv1.CapacityTypeLabelKey {
		// A launch has one capacity type. Which others there are says whether there was a choice.
		var values []string
		s := m.sellers[m.machines[index].pool]
		for i := s.first; i < s.last; i++ {
			if m.machines[i].typ == m.machines[index].typ && m.machines[i].zones != 0 {
				values = append(values, capacityTypes[m.machines[i].capacity])
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
