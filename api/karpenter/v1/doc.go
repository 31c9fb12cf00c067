// Package v1 holds the resources of the group karpenter.sh/v1 that people write and read: NodePool, the rules under
// which nodes may exist, and NodeClaim, one node asked for.
//
// The types are wire-compatible with Karpenter's: the same fields, defaults, bounds and messages, so that manifests,
// dashboards and scripts made for Karpenter keep working. Go names follow the JSON names.
//
// Three layers say what is valid. The schema markers on the types (and the CEL rules among them) become the
// CustomResourceDefinitions in deploy/crds, and the API server refuses what breaks them. Validate, in validation.go,
// holds what a schema cannot express: duplicate taints, label domains that only kubelets may use, cron expressions. It
// is reported as the condition ValidationSucceeded, never by crashing or guessing. Everything else is taken as it is.
//
// The package is pure: it reads no clock, no network and no environment. Functions that depend on time take it.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.sh
package v1
