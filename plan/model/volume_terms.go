package model

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Both returns the alternatives that meet one of a and one of b. A node meets the result exactly when it meets a and b.
func Both(a, b []Term) []Term {
	both := make([]Term, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			both = append(both, slices.Concat(x, y))
		}
	}
	return both
}

// Simplified returns alternatives in canonical form: contradictory ones are dropped, those that differ only in the values
// of a single key are merged, and conditions and alternatives are ordered. The result is never nil.
func Simplified(alternatives []Term) []Term {
	settled := []Term{}
	keys := map[string]bool{}
	for _, t := range alternatives {
		if s, ok := t.settled(); ok {
			settled = append(settled, s)
			for i := range s {
				keys[s[i].Key] = true
			}
		}
	}
	for _, key := range SortedKeys(keys) {
		settled = unitedBy(key, settled)
	}
	return distinct(settled, Term.id)
}

// settled returns a conjunction in canonical form. It is not ok if no label value meets the conditions on a key that list
// values.
func (t Term) settled() (Term, bool) {
	byKey := map[string]Term{}
	for _, c := range t {
		byKey[c.Key] = append(byKey[c.Key], c)
	}
	result := Term{}
	for _, key := range SortedKeys(byKey) {
		conditions := byKey[key]
		if !slices.ContainsFunc(conditions, isList) {
			result = append(result, distinct(conditions, func(c Condition) string { return c.ID() })...)
			continue
		}
		values := conditions.admitted()
		if len(values) == 0 {
			return nil, false
		}
		result = append(result, NewCondition(key, corev1.NodeSelectorOpIn, values))
	}
	return result, true
}

// distinct sorts a list by id and removes duplicates.
func distinct[T any](list []T, id func(T) string) []T {
	slices.SortFunc(list, func(a, b T) int { return strings.Compare(id(a), id(b)) })
	return slices.CompactFunc(list, func(a, b T) bool { return id(a) == id(b) })
}

func isList(c Condition) bool { return c.Operator == corev1.NodeSelectorOpIn }

// unitedBy merges settled alternatives that differ only in the values they list for a key.
func unitedBy(key string, alternatives []Term) []Term {
	at := map[string]int{}
	united := alternatives[:0:0]
	for _, t := range alternatives {
		i := slices.IndexFunc(t, func(c Condition) bool { return c.Key == key && isList(c) })
		if i < 0 {
			united = append(united, t)
			continue
		}
		rest := slices.Delete(slices.Clone(t), i, i+1).id()
		first, seen := at[rest]
		if !seen {
			at[rest] = len(united)
			united = append(united, slices.Clone(t))
			continue
		}
		united[first][i] = NewCondition(key, corev1.NodeSelectorOpIn, Term{united[first][i], t[i]}.Candidates())
	}
	return united
}

// IdOf tells lists of simplified alternatives apart.
func IdOf(alternatives []Term) string {
	var id strings.Builder
	for _, t := range alternatives {
		id.WriteString("\x02" + t.id())
	}
	return id.String()
}
