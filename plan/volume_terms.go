package plan

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// mostAlternatives bounds the alternatives that a pod's volumes multiply to. Zones and hosts of one volume are one
// alternative, so that only volumes in many places by several labels each come near it. What is beyond is left out: the
// pod then has less choice than it might, and is never misplaced.
const mostAlternatives = 64

// both are the alternatives that meet one of a and one of b. A node meets the result exactly when it meets a and b.
func both(a, b []term) []term {
	joined := make([]term, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			joined = append(joined, slices.Concat(x, y))
		}
	}
	joined = simplified(joined)
	if len(joined) > mostAlternatives {
		joined = joined[:mostAlternatives]
	}
	return joined
}

// simplified writes alternatives in one way: what contradicts itself is dropped, alternatives that differ in the values of
// a single key are one, those that another implies are dropped, and conditions and alternatives are ordered.
func simplified(alternatives []term) []term {
	var settled []term
	for _, t := range alternatives {
		if s, ok := t.settled(); ok {
			settled = append(settled, s)
		}
	}
	for {
		count := len(settled)
		for _, key := range listedKeys(settled) {
			settled = unitedBy(key, settled)
		}
		if len(settled) == count {
			break
		}
	}
	slices.SortFunc(settled, func(a, b term) int { return strings.Compare(a.id(), b.id()) })
	settled = slices.CompactFunc(settled, func(a, b term) bool { return a.id() == b.id() })
	if len(settled) > mostAlternatives {
		return settled // only to save the quadratic work
	}
	var wide []term
	for i, t := range settled {
		implied := slices.ContainsFunc(settled[:i], t.implies) || slices.ContainsFunc(settled[i+1:], t.implies)
		if !implied {
			wide = append(wide, t)
		}
	}
	return wide
}

// settled writes a conjunction in one way. It is not ok when no labels can meet it because of values it lists.
func (t term) settled() (term, bool) {
	byKey := map[string]term{}
	for _, c := range t {
		byKey[c.key] = append(byKey[c.key], c)
	}
	result := term{}
	for _, key := range sortedKeys(byKey) {
		conditions := byKey[key]
		if !slices.ContainsFunc(conditions, isList) {
			slices.SortFunc(conditions, func(a, b condition) int { return strings.Compare(a.id(), b.id()) })
			result = append(result, slices.CompactFunc(conditions, func(a, b condition) bool { return a.id() == b.id() })...)
			continue
		}
		values := slices.DeleteFunc(conditions.candidates(), func(value string) bool { return !conditions.allAdmit(value, true) })
		if len(values) == 0 {
			return nil, false
		}
		result = append(result, newCondition(key, corev1.NodeSelectorOpIn, values))
	}
	return result, true
}

func isList(c condition) bool { return c.operator == corev1.NodeSelectorOpIn }

// listedKeys are the keys for which some alternative lists values.
func listedKeys(alternatives []term) []string {
	keys := map[string]bool{}
	for _, t := range alternatives {
		for i := range t {
			if isList(t[i]) {
				keys[t[i].key] = true
			}
		}
	}
	return sortedKeys(keys)
}

// unitedBy makes one of the settled alternatives that differ only in the values they list for a key.
func unitedBy(key string, alternatives []term) []term {
	at := map[string]int{}
	united := alternatives[:0:0]
	for _, t := range alternatives {
		i := slices.IndexFunc(t, func(c condition) bool { return c.key == key && isList(c) })
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
		values := slices.Concat(united[first][i].values, t[i].values)
		slices.Sort(values)
		united[first][i] = newCondition(key, corev1.NodeSelectorOpIn, slices.Compact(values))
	}
	return united
}

// implies says whether all labels that meet t are known to meet other. Both are settled.
func (t term) implies(other term) bool {
	for i := range other {
		if !slices.ContainsFunc(t, other[i].impliedBy) {
			return false
		}
	}
	return true
}

func (c condition) impliedBy(other condition) bool {
	if c.key != other.key {
		return false
	}
	if isList(c) && isList(other) {
		return !slices.ContainsFunc(other.values, func(value string) bool { return !c.lists(value) })
	}
	if isList(other) {
		return !slices.ContainsFunc(other.values, func(value string) bool { return !c.admits(value, true) })
	}
	return c.id() == other.id()
}

// id tells settled conjunctions apart.
func (t term) id() string {
	ids := make([]string, len(t))
	for i := range t {
		ids[i] = t[i].id()
	}
	return strings.Join(ids, "\x01")
}

// idOf tells lists of simplified alternatives apart.
func idOf(alternatives []term) string {
	ids := make([]string, len(alternatives))
	for i, t := range alternatives {
		ids[i] = "\x02" + t.id()
	}
	return strings.Join(ids, "")
}

// inWords is for people: "topology.kubernetes.io/zone In [a] and x Exists".
func (t term) inWords() string {
	words := make([]string, len(t))
	for i := range t {
		words[i] = t[i].String()
	}
	return strings.Join(words, " and ")
}
