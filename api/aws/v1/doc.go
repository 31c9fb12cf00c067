// Package v1 holds the resource of the group karpenter.k8s.aws/v1: EC2NodeClass, which says how nodes are set up on
// EC2. It is to a NodePool what a StorageClass is to a volume claim.
//
// The types are wire-compatible with those of Karpenter's AWS provider: spec.kubelet is the typed block of v1.14, every
// other field is as in the release after it. As in package api/karpenter/v1, what a schema can say is said by markers
// and CEL rules, which become the CustomResourceDefinition in deploy/crds; what it cannot is in Validate.
//
// The package is pure: it makes no calls and reads no clock.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.k8s.aws
package v1
