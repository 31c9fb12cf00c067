// Package v1beta1 stands in for the package of this name in karpenter-core v0.32, which is no longer published. It has
// the names that karpenter v0.32 uses.
package v1beta1

import "k8s.io/apimachinery/pkg/util/sets"

// Names of v1beta1.
const (
	ArchitectureAmd64      = "amd64"
	ArchitectureArm64      = "arm64"
	NodePoolLabelKey       = "karpenter.sh/nodepool"
	ManagedByAnnotationKey = "karpenter.sh/managed-by"
)

// The provider adds its labels to these.
var (
	RestrictedLabelDomains = sets.New[string]()
	WellKnownLabels        = sets.New[string]()
)
