package plan

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// A claim says what its pods ask of the machine, beside what the pool asks: people and tools read it, and a launch that is
// tried again holds to it. Nothing is lost by that. Every machine that a claim lists meets what its pods ask, so that their
// conditions leave all of them.

// constrained are a claim's requirements with what its pods ask for in any case. The requirements are in the order of
// narrowed; those on labels that it has settled stay as they are.
func (m *market) constrained(requirements []karpv1.NodeSelectorRequirementWithMinValues, b *bin, settled int) []karpv1.NodeSelectorRequirementWithMinValues {
	byKey := map[string]term{}
	for _, p := range b.content {
		for _, pod := range p.pods {
			for _, c := range m.asksOf(pod.Class) {
				byKey[c.key] = byKey[c.key].and(c)
			}
		}
	}
	if len(byKey) == 0 {
		return requirements
	}
	result := slices.Clone(requirements[:settled])
	for i := range result {
		delete(byKey, result[i].Key)
	}
	for _, r := range requirements[settled:] {
		key := karpv1.NormalizedLabelKey(r.Key)
		switch asked := byKey[key]; {
		case r.MinValues != nil:
			result = append(result, r)
			delete(byKey, key)
		case asked == nil:
			result = append(result, r)
		default:
			byKey[key] = asked.and(newCondition(key, r.Operator, r.Values))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		for _, c := range byKey[key] {
			result = append(result, karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: c.operator, Values: c.values})
		}
	}
	return result
}

// asksOf are the conditions on labels of machines that hold in all alternatives of a class, ordered by label. What a claim
// says of every node in its own way is left out.
func (m *market) asksOf(class *Class) term {
	asks, known := m.asks[class]
	if known {
		return asks
	}
	terms := termsOf(class)
	for i := range terms {
		t := terms[i].normalized()
		if i == 0 {
			asks = slices.Clone(t)
			continue
		}
		asks = slices.DeleteFunc(asks, func(c condition) bool {
			return !slices.ContainsFunc(t, func(other condition) bool { return other.id() == c.id() })
		})
	}
	asks = slices.DeleteFunc(asks, func(c condition) bool {
		return !m.wellKnown[c.key] || c.key == karpv1.NodePoolLabelKey || c.key == corev1.LabelInstanceTypeStable || m.openAnywhere(c.key)
	})
	slices.SortStableFunc(asks, func(a, b condition) int { return strings.Compare(a.key, b.key) })
	m.asks[class] = asks
	return asks
}

// and is the term with one more condition on the label that all of it is about. Lists of values become one.
func (t term) and(c condition) term {
	for i := range t {
		switch {
		case t[i].id() == c.id():
			return t
		case t[i].operator != c.operator:
		case c.operator == corev1.NodeSelectorOpIn:
			both := slices.DeleteFunc(slices.Clone(t[i].values), func(value string) bool { return !c.lists(value) })
			t = slices.Clone(t)
			t[i] = newCondition(c.key, c.operator, both)
			return t
		case c.operator == corev1.NodeSelectorOpNotIn:
			all := slices.Sorted(slices.Values(slices.Concat(t[i].values, c.values)))
			t = slices.Clone(t)
			t[i] = newCondition(c.key, c.operator, slices.Compact(all))
			return t
		}
	}
	return append(slices.Clip(t), c)
}
