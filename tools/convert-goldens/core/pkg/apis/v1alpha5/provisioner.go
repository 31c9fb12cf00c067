// Package v1alpha5 stands in for the package of this name in karpenter-core v0.32, which is no longer published. It has
// the names that the conversions in karpenter v0.32 use, and no logic.
package v1alpha5

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Names of v1alpha5.
const (
	ExtensionsGroup               = "extensions.karpenter.sh"
	ArchitectureAmd64             = "amd64"
	ArchitectureArm64             = "arm64"
	ProvisionerNameLabelKey       = "karpenter.sh/provisioner-name"
	LabelCapacityType             = "karpenter.sh/capacity-type"
	MachineManagedByAnnotationKey = "karpenter.sh/managed-by"
)

// The provider adds its labels to these.
var (
	RestrictedLabelDomains = sets.New[string]()
	WellKnownLabels        = sets.New[string]()
)

// Provisioner has the fields that defaulting reads and writes.
type Provisioner struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ProvisionerSpec   `json:"spec,omitempty"`
	Status            ProvisionerStatus `json:"status,omitempty"`
}

// ProvisionerSpec is the part of the spec that defaulting knows.
type ProvisionerSpec struct {
	Requirements []corev1.NodeSelectorRequirement `json:"requirements,omitempty"`
	Provider     *runtime.RawExtension            `json:"provider,omitempty"`
}

// ProvisionerStatus is empty.
type ProvisionerStatus struct{}

// DeepCopyInto copies the spec.
func (in *ProvisionerSpec) DeepCopyInto(out *ProvisionerSpec) {
	*out = ProvisionerSpec{Requirements: slices.Clone(in.Requirements), Provider: in.Provider.DeepCopy()}
	for i := range out.Requirements {
		in.Requirements[i].DeepCopyInto(&out.Requirements[i])
	}
}

// DeepCopyInto copies the status.
func (in *ProvisionerStatus) DeepCopyInto(out *ProvisionerStatus) { *out = *in }
