package v1

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate returns what is wrong with the pool beyond what the API server refuses. Every error names the field and says
// what to write instead. A pool with errors is not used.
func (in *NodePool) Validate() field.ErrorList {
	template := field.NewPath("spec", "template")
	spec := in.Spec.Template.Spec
	var errs field.ErrorList
	for _, problem := range validation.IsValidLabelValue(in.Name) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), in.Name,
			fmt.Sprintf("its nodes carry the name as the value of label %s, which %s; make the pool again under another name", NodePoolLabelKey, problem)))
	}
	errs = append(errs, validateLabels(in.Spec.Template.Labels, template.Child("metadata", "labels"))...)
	errs = append(errs, validateTaints(spec.Taints, spec.StartupTaints, template.Child("spec"))...)
	errs = append(errs, validateRequirements(spec.Requirements, template.Child("spec", "requirements"))...)
	for i, r := range spec.Requirements {
		if r.Key == NodePoolLabelKey {
			errs = append(errs, field.Forbidden(template.Child("spec", "requirements").Index(i).Child("key"),
				fmt.Sprintf("label %q is restricted: it is always the name of this NodePool; remove the requirement", r.Key)))
		}
	}
	return append(errs, validateBudgets(in.Spec.Disruption.Budgets, field.NewPath("spec", "disruption", "budgets"))...)
}

// Validate returns what is wrong with the claim beyond what the API server refuses. A claim with errors cannot be
// launched.
func (in *NodeClaim) Validate() field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateTaints(in.Spec.Taints, in.Spec.StartupTaints, spec)
	return append(errs, validateRequirements(in.Spec.Requirements, spec.Child("requirements"))...)
}

func validateLabels(labels map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range sets.List(sets.KeySet(labels)) {
		at := path.Key(key)
		for _, problem := range validation.IsQualifiedName(key) {
			errs = append(errs, field.Invalid(at, key, problem))
		}
		for _, problem := range validation.IsValidLabelValue(labels[key]) {
			errs = append(errs, field.Invalid(at, labels[key], problem))
		}
		if key == NodePoolLabelKey {
			errs = append(errs, field.Forbidden(at, fmt.Sprintf("label %q is restricted: it is always the name of this NodePool; remove the label", key)))
		}
		if err := RestrictedLabel(key); err != nil {
			errs = append(errs, field.Forbidden(at, err.Error()))
		}
	}
	return errs
}

// validateTaints holds that taints are well formed, and that no two of them, startup taints included, have the same key
// and effect: a node can only have one of those.
func validateTaints(taints, startupTaints []corev1.Taint, path *field.Path) field.ErrorList {
	type keyEffect struct {
		key    string
		effect corev1.TaintEffect
	}
	var errs field.ErrorList
	first := map[keyEffect]*field.Path{}
	check := func(taints []corev1.Taint, path *field.Path) {
		for i, taint := range taints {
			at := path.Index(i)
			for _, problem := range validation.IsQualifiedName(taint.Key) {
				errs = append(errs, field.Invalid(at.Child("key"), taint.Key, problem))
			}
			for _, problem := range validation.IsValidLabelValue(taint.Value) {
				errs = append(errs, field.Invalid(at.Child("value"), taint.Value, problem))
			}
			effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
			if !slices.Contains(effects, taint.Effect) {
				errs = append(errs, field.NotSupported(at.Child("effect"), taint.Effect, effects))
			}
			id := keyEffect{taint.Key, taint.Effect}
			if earlier, ok := first[id]; ok {
				duplicate := field.Duplicate(at, fmt.Sprintf("%s:%s", taint.Key, taint.Effect))
				duplicate.Detail = fmt.Sprintf("%s has the same key and effect; remove one of them", earlier)
				errs = append(errs, duplicate)
				continue
			}
			first[id] = at
		}
	}
	check(taints, path.Child("taints"))
	check(startupTaints, path.Child("startupTaints"))
	return errs
}

func validateRequirements(requirements []NodeSelectorRequirementWithMinValues, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, r := range requirements {
		errs = append(errs, ValidateRequirement(r, path.Index(i))...)
	}
	return errs
}

// ValidateRequirement returns what is wrong with a requirement beyond what the API server refuses.
func ValidateRequirement(r NodeSelectorRequirementWithMinValues, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range validation.IsQualifiedName(r.Key) {
		errs = append(errs, field.Invalid(path.Child("key"), r.Key, problem))
	}
	if err := RestrictedLabel(NormalizedLabelKey(r.Key)); err != nil {
		errs = append(errs, field.Forbidden(path.Child("key"), err.Error()))
	}
	for i, value := range r.Values {
		for _, problem := range validation.IsValidLabelValue(value) {
			errs = append(errs, field.Invalid(path.Child("values").Index(i), value, problem))
		}
	}
	return append(errs, validateOperator(r, path)...)
}

// validateOperator holds that a requirement has as many values as its operator takes, and enough of those that exist.
func validateOperator(r NodeSelectorRequirementWithMinValues, path *field.Path) field.ErrorList {
	values := path.Child("values")
	switch r.Operator {
	case corev1.NodeSelectorOpIn:
		if len(r.Values) == 0 {
			return field.ErrorList{field.Required(values, "the operator In needs at least one value")}
		}
		usable := r.Values
		if known := knownValues(NormalizedLabelKey(r.Key)); known != nil {
			usable = slices.DeleteFunc(slices.Clone(usable), func(v string) bool { return !slices.Contains(known, v) })
			if len(usable) == 0 {
				return field.ErrorList{field.NotSupported(values, strings.Join(r.Values, ", "), known)}
			}
		}
		if r.MinValues != nil && len(sets.New(usable...)) < *r.MinValues {
			return field.ErrorList{field.Invalid(path.Child("minValues"), *r.MinValues,
				fmt.Sprintf("must not be more than the %d different usable entries of values", len(sets.New(usable...))))}
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt, NodeSelectorOpGte, NodeSelectorOpLte:
		if len(r.Values) != 1 {
			return field.ErrorList{field.Invalid(values, r.Values, fmt.Sprintf("the operator %s needs exactly one value", r.Operator))}
		}
		if n, err := strconv.Atoi(r.Values[0]); err != nil || n < 0 {
			return field.ErrorList{field.Invalid(values.Index(0), r.Values[0],
				fmt.Sprintf("the operator %s needs an integer that is not negative", r.Operator))}
		}
	case corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
	default:
		return field.ErrorList{field.NotSupported(path.Child("operator"), r.Operator, []corev1.NodeSelectorOperator{
			corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist,
			corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt, NodeSelectorOpGte, NodeSelectorOpLte,
		})}
	}
	return nil
}

// knownValues returns all the values a label can have, or nil if they are not known.
func knownValues(key string) []string {
	switch key {
	case CapacityTypeLabelKey:
		return []string{CapacityTypeOnDemand, CapacityTypeReserved, CapacityTypeSpot}
	case AWSLabelDomain + "/instance-tenancy":
		return []string{"dedicated", "default"}
	}
	return nil
}

func validateBudgets(budgets []Budget, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range budgets {
		budget, at := &budgets[i], path.Index(i)
		if _, _, err := budget.parseNodes(); err != nil {
			errs = append(errs, field.Invalid(at.Child("nodes"), budget.Nodes, "must be a number such as 5, or a percentage from 0% to 100%"))
		}
		if (budget.Schedule == nil) != (budget.Duration == nil) {
			errs = append(errs, field.Invalid(at, "", "schedule and duration must be set together"))
		}
		if budget.Schedule != nil {
			if _, err := parseSchedule(*budget.Schedule); err != nil {
				errs = append(errs, field.Invalid(at.Child("schedule"), *budget.Schedule, err.Error()))
			}
		}
		if budget.Duration != nil && budget.Duration.Duration <= 0 {
			errs = append(errs, field.Invalid(at.Child("duration"), budget.Duration.Duration.String(), "must be longer than zero"))
		}
	}
	return errs
}
