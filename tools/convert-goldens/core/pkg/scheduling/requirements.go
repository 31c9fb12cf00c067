// Package scheduling stands in for the package of this name in karpenter-core v0.32, which is no longer published.
package scheduling

import corev1 "k8s.io/api/core/v1"

// Requirements are the keys of some requirements.
type Requirements map[string]bool

// NewNodeSelectorRequirements returns the keys of requirements.
func NewNodeSelectorRequirements(requirements ...corev1.NodeSelectorRequirement) Requirements {
	keys := Requirements{}
	for _, r := range requirements {
		keys[r.Key] = true
	}
	return keys
}

// Has reports whether there is a requirement on a key.
func (r Requirements) Has(key string) bool { return r[key] }
