package market

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan/model"
)

// minimumsOf returns the minValues above 1 among requirements.
func minimumsOf(requirements []karpv1.NodeSelectorRequirementWithMinValues) []Minimum {
	var minimums []Minimum
	for _, r := range requirements {
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
		if tally.Add(i); tally.Met() { // the solver asks for every content it tries, and a few machines often suffice
			return true
		}
	}
	return tally.Met()
}

// Unsellable returns the NodePools of which nothing can be launched now, whatever pods ask for.
func (m *Market) Unsellable() []model.Unsellable {
	var all []model.Unsellable
	for _, s := range m.Sellers {
		available := NewBitset(len(m.Machines))
		for i := s.First; i < s.Last; i++ {
			if m.Machines[i].Zones != 0 {
				available.Set(i)
			}
		}
		switch {
		case s.Unmatched, s.Closed == "" && available.Empty():
			all = append(all, model.Unsellable{NodePool: s.Name})
		case s.Closed == "" && m.Policy != model.MinValuesBestEffort && !Enough(m, s, available):
			all = append(all, model.Unsellable{NodePool: s.Name, MinValues: true})
		}
	}
	return all
}

// tally counts distinct values against minimums.
type tally struct {
	minimums []Minimum
	// values returns the values that a label may have on a candidate.
	values func(candidate int, key string) []string
	Seen   []sets.Set[string]
}

// NewTally returns a tally that counts the values of machines against minimums.
func NewTally(m *Market, minimums []Minimum) *tally {
	return newTally(minimums, func(index int, key string) []string { return valuesOf(m, index, key) })
}

func newTally(minimums []Minimum, values func(candidate int, key string) []string) *tally {
	t := &tally{minimums: minimums, values: values}
	for range minimums {
		t.Seen = append(t.Seen, sets.Set[string]{})
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

// Adds says whether a candidate has a value that is still missing.
func (t *tally) Adds(candidate int) bool {
	for i, minimum := range t.minimums {
		if len(t.Seen[i]) < minimum.Count && !t.Seen[i].HasAll(t.values(candidate, minimum.Key)...) {
			return true
		}
	}
	return false
}

// Add counts a candidate's values.
func (t *tally) Add(candidate int) {
	for i, minimum := range t.minimums {
		t.Seen[i].Insert(t.values(candidate, minimum.Key)...)
	}
}

// Choose picks the candidates that a launch may choose from: at most MaxInstanceTypes, the cheapest first, and so that the
// minimums are met if possible. Candidates are sorted by price, and each is of a different instance type.
func (t *tally) Choose(candidates []int) (chosen []int, met bool) {
	picked := map[int]bool{}
	for _, candidate := range candidates {
		if t.Met() {
			break
		}
		if len(picked) < model.MaxInstanceTypes && (len(picked) == 0 || t.Adds(candidate)) {
			t.Add(candidate)
			picked[candidate] = true
		}
	}
	for _, candidate := range candidates {
		if picked[candidate] || len(picked) < model.MaxInstanceTypes {
			picked[candidate] = true
			chosen = append(chosen, candidate)
		}
	}
	return chosen, t.Met()
}

// valuesOf returns the values that a label may have on a machine: several if it follows from the zone.
func valuesOf(m *Market, index int, key string) (values []string) {
	mach := &m.Machines[index]
	switch {
	case m.Zonal(key):
		return slices.DeleteFunc(m.ZoneValues(mach.Zones, key), func(value string) bool { return value == "" })
	case key == karpv1.CapacityTypeLabelKey:
		// A launch has one capacity type. Whether there are others shows whether there was a choice.
		s := m.Sellers[mach.Pool]
		for _, other := range m.Machines[s.First:s.Last] {
			if other.Typ == mach.Typ && other.Zones != 0 {
				values = append(values, CapacityTypes[other.Capacity])
			}
		}
	default:
		if value, present := m.Label(mach, key); present {
			return []string{value}
		}
	}
	return values
}
