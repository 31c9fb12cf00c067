package plan

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// condition is what one requirement asks of the value of one label.
type condition struct {
	key      string
	operator corev1.NodeSelectorOperator
	// values are sorted.
	values []string
	// bound is the integer Gt, Lt, Gte and Lte compare with; without one they admit nothing.
	bound   int64
	bounded bool
}

func newCondition(key string, operator corev1.NodeSelectorOperator, values []string) condition {
	c := condition{key: key, operator: operator, values: values}
	if !slices.IsSorted(values) {
		c.values = slices.Sorted(slices.Values(values))
	}
	if len(values) == 1 {
		bound, err := strconv.ParseInt(values[0], 10, 64)
		c.bound, c.bounded = bound, err == nil
	}
	return c
}

// admits says whether a label with this value, or the absence of the label, meets the condition. The rules are those of
// k8s.io/apimachinery/pkg/labels.Requirement.Matches, with Gte and Lte beside Gt and Lt.
func (c *condition) admits(value string, present bool) bool {
	switch c.operator {
	case corev1.NodeSelectorOpIn:
		return present && c.lists(value)
	case corev1.NodeSelectorOpNotIn:
		return !present || !c.lists(value)
	case corev1.NodeSelectorOpExists:
		return present
	case corev1.NodeSelectorOpDoesNotExist:
		return !present
	}
	if !present || !c.bounded {
		return false
	}
	number, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return false
	}
	switch c.operator {
	case corev1.NodeSelectorOpGt:
		return number > c.bound
	case corev1.NodeSelectorOpLt:
		return number < c.bound
	case karpv1.NodeSelectorOpGte:
		return number >= c.bound
	case karpv1.NodeSelectorOpLte:
		return number <= c.bound
	}
	return false
}

func (c *condition) lists(value string) bool {
	_, found := slices.BinarySearch(c.values, value)
	return found
}

// id tells conditions apart.
func (c *condition) id() string {
	return c.key + "\x00" + string(c.operator) + "\x00" + strings.Join(c.values, "\x00")
}

// String is for people: "kubernetes.io/arch In [amd64]".
func (c *condition) String() string {
	text := c.key + " " + string(c.operator)
	switch c.operator {
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		return text
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		return text + " [" + strings.Join(c.values, " ") + "]"
	}
	return text + " " + strings.Join(c.values, " ")
}

// term is a conjunction of conditions.
type term []condition

// admits says whether labels meet every condition.
func (t term) admits(labels map[string]string) bool {
	for i := range t {
		value, present := labels[t[i].key]
		if !t[i].admits(value, present) {
			return false
		}
	}
	return true
}

// normalized returns the term with deprecated label keys replaced by those that machines are described with.
func (t term) normalized() term {
	for i := range t {
		if karpv1.NormalizedLabelKey(t[i].key) == t[i].key {
			continue
		}
		clone := slices.Clone(t)
		for j := range clone {
			clone[j].key = karpv1.NormalizedLabelKey(clone[j].key)
		}
		return clone
	}
	return t
}

// termsOf are the alternatives a class leaves for its node's labels: any one of them will do. A class without
// requirements has one empty term; a class whose affinity matches nothing has none.
func termsOf(class *Class) []term {
	var base term
	for _, key := range sortedKeys(class.NodeSelector) {
		base = append(base, newCondition(key, corev1.NodeSelectorOpIn, []string{class.NodeSelector[key]}))
	}
	if class.NodeAffinity == nil {
		return []term{base}
	}
	var terms []term
	for _, alternative := range class.NodeAffinity.NodeSelectorTerms {
		if len(alternative.MatchExpressions) == 0 || len(alternative.MatchFields) > 0 {
			continue // a term without expressions matches no node, and one with fields a node that exists: the kube-scheduler knows it
		}
		t := slices.Clone(base)
		for _, expression := range alternative.MatchExpressions {
			t = append(t, newCondition(expression.Key, expression.Operator, expression.Values))
		}
		terms = append(terms, t)
	}
	return terms
}

// conditionsOf compiles a NodePool's or NodeClaim's requirements.
func conditionsOf(requirements []karpv1.NodeSelectorRequirementWithMinValues) term {
	t := make(term, 0, len(requirements))
	for _, r := range requirements {
		t = append(t, newCondition(karpv1.NormalizedLabelKey(r.Key), r.Operator, r.Values))
	}
	return t
}

// tolerates says whether the tolerations tolerate a taint, by the rules of
// k8s.io/api/core/v1.Toleration.ToleratesTaint without comparison operators.
func tolerates(tolerations []corev1.Toleration, taint *corev1.Taint) bool {
	for i := range tolerations {
		t := &tolerations[i]
		if t.Effect != "" && t.Effect != taint.Effect {
			continue
		}
		if t.Key != "" && t.Key != taint.Key {
			continue
		}
		switch t.Operator {
		case corev1.TolerationOpExists:
			return true
		case "", corev1.TolerationOpEqual:
			if t.Value == taint.Value {
				return true
			}
		}
	}
	return false
}

// repelledBy returns the first taint that keeps a pod with these tolerations off a node, or nil.
func repelledBy(taints []corev1.Taint, tolerations []corev1.Toleration) *corev1.Taint {
	for i := range taints {
		if taints[i].Effect == corev1.TaintEffectPreferNoSchedule {
			continue
		}
		if !tolerates(tolerations, &taints[i]) {
			return &taints[i]
		}
	}
	return nil
}
