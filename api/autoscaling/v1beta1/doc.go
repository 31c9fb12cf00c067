// Package v1beta1 holds CapacityBuffer of the group autoscaling.x-k8s.io/v1beta1: room that people want kept free, so
// that pods which come suddenly need not wait for a node.
//
// The resource belongs to SIG Autoscaling and is shared with the cluster-autoscaler and with Karpenter; the types are
// wire-compatible with theirs. What the schema cannot say (that exactly one of podTemplateRef and scalableRef is set, and
// that what they name exists) is reported as the condition ReadyForProvisioning.
//
// The package is pure: it reads no clock, no network and no environment.
//
// +kubebuilder:object:generate=true
// +groupName=autoscaling.x-k8s.io
package v1beta1
