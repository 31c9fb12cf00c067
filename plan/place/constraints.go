package place

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
)

// A claim carries the requirements of its pods beside those of its pool: people and tools read them, and a retried
// launch keeps to them. This excludes no machine, because every machine that a claim lists meets what its pods ask.

// constrained adds to a claim's requirements what its pods ask for in every alternative. The requirements are as
// model.Narrowed returns them: the first settled of them are on labels that the claim has settled, and stay as they
// are.
func constrained(m *market.Market, requirements []karpv1.NodeSelectorRequirementWithMinValues, b *PlannedNode, settled int) []karpv1.NodeSelectorRequirementWithMinValues {
	byKey := map[string]model.Term{}
	for pod := range b.pods {
		for _, c := range asksOf(m, pod.Class) {
			byKey[c.Key] = and(byKey[c.Key], c)
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
		if asked := byKey[key]; asked != nil && r.MinValues == nil {
			byKey[key] = and(asked, model.NewCondition(key, r.Operator, r.Values))
			continue
		}
		result = append(result, r)
		delete(byKey, key)
	}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		for _, c := range byKey[key] {
			result = append(result, karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: c.Operator, Values: c.Values})
		}
	}
	return result
}

// asksOf returns the conditions on labels of machines that hold in all alternatives of a class, sorted by label. It
// leaves out what every claim states in its own way.
func asksOf(m *market.Market, class *model.Class) model.Term {
	return m.Asks.Of(class, func() model.Term {
		terms := model.TermsOf(class)
		for i := range terms {
			terms[i] = terms[i].Normalized()
		}
		asks := slices.DeleteFunc(slices.Clone(terms[0]), func(c model.Condition) bool {
			lacks := func(t model.Term) bool {
				return !slices.ContainsFunc(t, func(other model.Condition) bool { return other.ID() == c.ID() })
			}
			return !m.WellKnown.Has(c.Key) || c.Key == karpv1.NodePoolLabelKey || c.Key == corev1.LabelInstanceTypeStable || m.OpenAnywhere(c.Key) ||
				slices.ContainsFunc(terms, lacks)
		})
		slices.SortStableFunc(asks, func(a, b model.Condition) int { return strings.Compare(a.Key, b.Key) })
		return asks
	})
}

// and returns the term with one more condition on the label that all of it is about. Lists of values are merged.
func and(t model.Term, c model.Condition) model.Term {
	for i := range t {
		values := t[i].Values
		switch {
		case t[i].ID() == c.ID():
			return t
		case t[i].Operator != c.Operator:
			continue
		case c.Operator == corev1.NodeSelectorOpIn:
			values = slices.DeleteFunc(slices.Clone(values), func(value string) bool { return !c.Lists(value) })
		case c.Operator == corev1.NodeSelectorOpNotIn:
			values = slices.Compact(slices.Sorted(slices.Values(slices.Concat(values, c.Values))))
		default:
			continue
		}
		t = slices.Clone(t)
		t[i] = model.NewCondition(c.Key, c.Operator, values)
		return t
	}
	return append(slices.Clip(t), c)
}
