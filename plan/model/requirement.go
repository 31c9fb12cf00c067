package model

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// List joins words: "a, b or c".
func List(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " " + last + " " + words[len(words)-1]
}

// Condition is what one requirement asks of the value of one label.
type Condition struct {
	Key      string
	Operator corev1.NodeSelectorOperator
	// Values are sorted.
	Values []string
}

// NewCondition compiles one requirement on a label.
func NewCondition(key string, operator corev1.NodeSelectorOperator, values []string) Condition {
	if !slices.IsSorted(values) {
		values = slices.Sorted(slices.Values(values))
	}
	return Condition{Key: key, Operator: operator, Values: values}
}

// bound is the integer that Gt, Lt, Gte and Lte compare with; without one they admit nothing.
func (c *Condition) bound() (bound int64, ok bool) {
	if len(c.Values) != 1 {
		return 0, false
	}
	bound, err := strconv.ParseInt(c.Values[0], 10, 64)
	return bound, err == nil
}

// Admits says whether a label with this value, or the absence of the label, meets the condition. The rules are those of
// k8s.io/apimachinery/pkg/labels.Requirement.Matches, with Gte and Lte beside Gt and Lt.
func (c *Condition) Admits(value string, present bool) bool {
	switch c.Operator {
	case corev1.NodeSelectorOpIn:
		return present && c.Lists(value)
	case corev1.NodeSelectorOpNotIn:
		return !present || !c.Lists(value)
	case corev1.NodeSelectorOpExists:
		return present
	case corev1.NodeSelectorOpDoesNotExist:
		return !present
	}
	bound, bounded := c.bound()
	number, err := strconv.ParseInt(value, 10, 64)
	if !present || !bounded || err != nil {
		return false
	}
	switch c.Operator {
	case corev1.NodeSelectorOpGt:
		return number > bound
	case corev1.NodeSelectorOpLt:
		return number < bound
	case karpv1.NodeSelectorOpGte:
		return number >= bound
	case karpv1.NodeSelectorOpLte:
		return number <= bound
	}
	return false
}

// Lists says whether a condition names a value.
func (c *Condition) Lists(value string) bool {
	_, found := slices.BinarySearch(c.Values, value)
	return found
}

// ID tells conditions apart.
func (c *Condition) ID() string {
	return c.Key + "\x00" + string(c.Operator) + "\x00" + strings.Join(c.Values, "\x00")
}

// String is for people: "kubernetes.io/arch In [amd64]".
func (c *Condition) String() string {
	text := c.Key + " " + string(c.Operator)
	switch c.Operator {
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		return text
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		return text + " [" + strings.Join(c.Values, " ") + "]"
	}
	return text + " " + strings.Join(c.Values, " ")
}

// Term is a conjunction of conditions.
type Term []Condition

// String is for people: "topology.kubernetes.io/zone In [a] and x Exists".
func (t Term) String() string { return List(t.each((*Condition).String), "and") }

// id tells settled conjunctions apart.
func (t Term) id() string { return strings.Join(t.each((*Condition).ID), "\x01") }

func (t Term) each(text func(*Condition) string) []string {
	texts := make([]string, len(t))
	for i := range t {
		texts[i] = text(&t[i])
	}
	return texts
}

// Admits says whether labels meet every condition.
func (t Term) Admits(labels map[string]string) bool {
	for i := range t {
		value, present := labels[t[i].Key]
		if !t[i].Admits(value, present) {
			return false
		}
	}
	return true
}

// Normalized returns the term with deprecated label keys replaced by those that machines are described with.
func (t Term) Normalized() Term {
	if !slices.ContainsFunc(t, func(c Condition) bool { return NormalizedKey(c.Key) != c.Key }) {
		return t
	}
	normal := slices.Clone(t)
	for i := range normal {
		normal[i].Key = NormalizedKey(normal[i].Key)
	}
	return normal
}

// A NodePool may leave the value of a custom label to the pods: a requirement with Exists, or with several values.
// What the pods of one node ask for then settles the value the node is labelled with.

// Resolve finds a value for the label that all conditions admit. It prefers a value that a condition names, the first in
// alphabetical order. If no condition needs the label, it is left out (present is false).
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

// Only says whether the conditions leave a single possibility, and returns it.
func (t Term) Only() (value string, present, single bool) {
	if slices.ContainsFunc(t, func(c Condition) bool { return c.Operator == corev1.NodeSelectorOpDoesNotExist }) {
		return "", false, true
	}
	if admitted := t.admitted(); len(admitted) == 1 {
		return admitted[0], true, true
	}
	return "", false, false
}

// admitted returns the values that some condition names and all conditions admit.
func (t Term) admitted() []string {
	return slices.DeleteFunc(t.Candidates(), func(value string) bool { return !t.AllAdmit(value, true) })
}

// AllAdmit says whether all conditions admit a label's value.
func (t Term) AllAdmit(value string, present bool) bool {
	return !slices.ContainsFunc(t, func(c Condition) bool { return !c.Admits(value, present) })
}

// About returns the conditions on one label.
func (t Term) About(key string) Term {
	return slices.DeleteFunc(slices.Clone(t), func(c Condition) bool { return c.Key != key })
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

// inventions returns values to try for conditions that name none: true, false and any, and the nearest integers within the
// bounds.
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

// TermsOf are the alternatives a class leaves for its node's labels: any one of them will do. A class without
// requirements has one empty term; a class whose affinity matches nothing has none.
func TermsOf(class *Class) []Term {
	var base Term
	for _, key := range SortedKeys(class.NodeSelector) {
		base = append(base, NewCondition(key, corev1.NodeSelectorOpIn, []string{class.NodeSelector[key]}))
	}
	return alternatives(base, class.NodeAffinity)
}

// alternatives returns the terms of a selector, each combined with the base, which always applies.
func alternatives(base Term, selector *corev1.NodeSelector) []Term {
	if selector == nil {
		return []Term{base}
	}
	var terms []Term
	for i := range selector.NodeSelectorTerms {
		alternative := &selector.NodeSelectorTerms[i]
		if len(alternative.MatchExpressions) == 0 || len(alternative.MatchFields) > 0 {
			continue // without expressions it matches no node, and with fields only an existing one, which the kube-scheduler knows
		}
		terms = append(terms, slices.Concat(base, Expressions(alternative.MatchExpressions)))
	}
	return terms
}

// ConditionsOf compiles a NodePool's or NodeClaim's requirements.
func ConditionsOf(requirements []karpv1.NodeSelectorRequirementWithMinValues) Term {
	t := make(Term, 0, len(requirements))
	for _, r := range requirements {
		t = append(t, NewCondition(karpv1.NormalizedLabelKey(r.Key), r.Operator, r.Values))
	}
	return t
}

// Tolerates says whether the tolerations tolerate a taint. It does not support the operators that compare numbers.
func Tolerates(tolerations []corev1.Toleration, taint *corev1.Taint) bool {
	return corev1helpers.TolerationsTolerateTaint(klog.Logger{}, tolerations, taint, false)
}

// RepelledBy returns the first taint that keeps a pod with these tolerations off a node, or nil.
func RepelledBy(taints []corev1.Taint, tolerations []corev1.Toleration) *corev1.Taint {
	for i := range taints {
		if taints[i].Effect != corev1.TaintEffectPreferNoSchedule && !Tolerates(tolerations, &taints[i]) {
			return &taints[i]
		}
	}
	return nil
}

// Expressions compiles the conditions of a node selector's term.
func Expressions(expressions []corev1.NodeSelectorRequirement) Term {
	t := make(Term, 0, len(expressions))
	for _, e := range expressions {
		t = append(t, NewCondition(e.Key, e.Operator, e.Values))
	}
	return t
}

// NormalizedKey is the label that machines are described with.
func NormalizedKey(key string) string { return karpv1.NormalizedLabelKey(key) }
