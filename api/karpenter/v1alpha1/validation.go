package v1alpha1

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// restricted are the resources that overlays cannot change.
var restricted = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods}

// Validate returns what is wrong with the overlay, whether or not an API server has seen it. Every error names the field and
// says what to write instead. An overlay with errors does not apply.
func (in *NodeOverlay) Validate() field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	for i, r := range in.Spec.Requirements {
		at := spec.Child("requirements").Index(i)
		errs = append(errs, karpv1.ValidateRequirement(karpv1.NodeSelectorRequirementWithMinValues{Key: r.Key, Operator: r.Operator, Values: r.Values}, at)...)
		if r.Operator == corev1.NodeSelectorOpNotIn && len(r.Values) == 0 {
			errs = append(errs, field.Required(at.Child("values"), "the operator NotIn needs at least one value"))
		}
	}
	if _, err := in.priceChange(); err != nil {
		at, text := spec.Child("price"), in.Spec.Price
		if text == nil {
			at, text = spec.Child("priceAdjustment"), in.Spec.PriceAdjustment
		}
		errs = append(errs, field.Invalid(at, *text, err.Error()))
	}
	if in.Spec.Price != nil && in.Spec.PriceAdjustment != nil {
		errs = append(errs, field.Forbidden(spec.Child("priceAdjustment"), "price is set as well; remove one of them"))
	}
	for _, name := range sets.List(sets.KeySet(in.Spec.Capacity)) {
		if slices.Contains(restricted, name) {
			errs = append(errs, field.Forbidden(spec.Child("capacity").Key(string(name)), "overlays add extended resources only; remove it"))
		}
		if quantity := in.Spec.Capacity[name]; quantity.Sign() < 0 {
			errs = append(errs, field.Invalid(spec.Child("capacity").Key(string(name)), quantity.String(), "must not be negative"))
		}
	}
	if _, err := in.DeviceTemplates(); err != nil {
		at := field.NewPath("metadata", "annotations").Key(DeviceTemplatesAnnotationKey)
		errs = append(errs, field.Invalid(at, in.Annotations[DeviceTemplatesAnnotationKey], err.Error()))
	}
	return errs
}
