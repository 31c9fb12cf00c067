package market

import (
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan/model"
)

func minimumsOf(pool *karpv1.NodePool) []Minimum {
	var minimums []Minimum
	for _, r := range pool.Spec.Template.Spec.Requirements {
		if r.MinValues != nil && *r.MinValues > 1 {
			minimums = append(minimums, Minimum{karpv1.NormalizedLabelKey(r.Key), *r.MinValues})
		}
	}
	return minimums
}

// Enough says whether machines of a pool meet its minValues.
func Enough(m *Market, s *Seller, set Bitset) bool {
	tally := NewTally(m, s.Minimums)
	for i := range set.All {
		tally.Add(i)
	}
	return tally.Met()
}

// tally counts distinct values against minimums.
type tally struct {
	m        *Market
	minimums []Minimum
	Seen     []map[string]bool
}

// NewTally counts towards some minimums.
func NewTally(m *Market, minimums []Minimum) *tally {
	t := &tally{m: m, minimums: minimums}
	for range minimums {
		t.Seen = append(t.Seen, map[string]bool{})
	}
	return t
}

// Met says whether all minimums are met.
func (t *tally) Met() bool {
	for i := range t.minimums {
		if len(t.Seen[i]) < t.minimums[i].Count {
			return false
		}
	}
	return true
}

// Adds says whether the machine brings a value that is still missing.
func (t *tally) Adds(index int) bool {
	for i := range t.minimums {
		if len(t.Seen[i]) >= t.minimums[i].Count {
			continue
		}
		for _, value := range valuesOf(t.m, index, t.minimums[i].Key) {
			if !t.Seen[i][value] {
				return true
			}
		}
	}
	return false
}

// Add counts a machine's values.
func (t *tally) Add(index int) {
	for i := range t.minimums {
		for _, value := range valuesOf(t.m, index, t.minimums[i].Key) {
			t.Seen[i][value] = true
		}
	}
}

// valuesOf are the values a label may have on a machine: several where it follows from the zone.
func valuesOf(m *Market, index int, key string) []string {
	if m.Zonal(key) {
		var values []string
		for z := range m.Zones {
			if m.Machines[index].Zones&(1<<z) != 0 {
				if value := m.ZoneLabels[z][key]; value != "" {
					values = append(values, value)
				}
			}
		}
		return values
	}
	if key == karpv1.CapacityTypeLabelKey {
		// A launch has one capacity type. Which others there are says whether there was a choice.
		var values []string
		s := m.Sellers[m.Machines[index].Pool]
		for i := s.First; i < s.Last; i++ {
			if m.Machines[i].Typ == m.Machines[index].Typ && m.Machines[i].Zones != 0 {
				values = append(values, CapacityTypes[m.Machines[i].Capacity])
			}
		}
		return values
	}
	col := m.Column(key)
	if id := col.Ids[index]; id >= 0 {
		return col.Values[id : id+1]
	}
	return nil
}

// Choose picks the machines a launch may choose from, at most MaxInstanceTypes, the cheapest first, so that the
// minimums are met. candidates are sorted by price and each of another instance type.
func Choose(m *Market, candidates []int, minimums []Minimum) (chosen []int, met bool) {
	tally := NewTally(m, minimums)
	picked := map[int]bool{}
	for _, index := range candidates {
		if tally.Met() {
			break
		}
		if len(picked) < model.MaxInstanceTypes && (len(picked) == 0 || tally.Adds(index)) {
			tally.Add(index)
			picked[index] = true
		}
	}
	for _, index := range candidates {
		if len(picked) >= model.MaxInstanceTypes {
			break
		}
		picked[index] = true
	}
	for _, index := range candidates {
		if picked[index] {
			chosen = append(chosen, index)
		}
	}
	return chosen, tally.Met()
}
