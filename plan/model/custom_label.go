package model

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// A NodePool may leave the value of a custom label to the pods: a requirement with Exists, or with several values.
// What the pods of one node ask for then settles the value the node is labelled with.

// Resolve finds the value for a label that all conditions admit. It prefers a value somebody named, the first in
// alphabetical order; a label nobody needs is left out (present is false).
func (t Term) Resolve() (value string, present, ok bool) {
	if admitted := t.admitted(); len(admitted) > 0 {
		return admitted[0], true, true
	}
	if t.AllAdmit("", false) {
		return "", false, true
	}
	for _, candidate := range t.inventions() {
		if t.AllAdmit(candidate, true) {
			return candidate, true, true
		}
	}
	return "", false, false
}

// Only says whether the conditions leave no choice, and what it then is.
func (t Term) Only() (value string, present, single bool) {
	if slices.ContainsFunc(t, func(c Condition) bool { return c.Operator == corev1.NodeSelectorOpDoesNotExist }) {
		return "", false, true
	}
	if admitted := t.admitted(); len(admitted) == 1 {
		return admitted[0], true, true
	}
	return "", false, false
}

// admitted are the values that are named and that all conditions admit.
func (t Term) admitted() []string {
	return slices.DeleteFunc(t.Candidates(), func(value string) bool { return !t.AllAdmit(value, true) })
}

// AllAdmit says whether all conditions admit a label's value.
func (t Term) AllAdmit(value string, present bool) bool {
	return !slices.ContainsFunc(t, func(c Condition) bool { return !c.Admits(value, present) })
}

// Candidates are the values the conditions name with In.
func (t Term) Candidates() []string {
	var values []string
	for i := range t {
		if isList(t[i]) {
			values = append(values, t[i].Values...)
		}
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// inventions are values for conditions that name none: the nearest integers within the bounds, or the word true.
func (t Term) inventions() []string {
	values := []string{"true", "false", "any"}
	for i := range t {
		bound, bounded := t[i].bound()
		switch t[i].Operator {
		case corev1.NodeSelectorOpGt:
			bound++
		case corev1.NodeSelectorOpLt:
			bound--
		case karpv1.NodeSelectorOpGte, karpv1.NodeSelectorOpLte:
		default:
			continue
		}
		if bounded {
			values = append(values, strconv.FormatInt(bound, 10))
		}
	}
	return values
}
