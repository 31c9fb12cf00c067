// Package v1alpha1 holds NodeOverlay of the group karpenter.sh/v1alpha1: what people know better about instance types than the
// cloud's own lists, such as a discount, or a device that a plugin adds.
//
// The types are wire-compatible with Karpenter's, and so are defaults and schema. What the schema cannot say is reported as
// the condition ValidationSucceeded.
//
// The package is pure: it reads no clock, no network and no environment.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.sh
package v1alpha1
