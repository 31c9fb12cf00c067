package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ActiveCapacity is the provisioning strategy that keeps nodes running for the buffer. Buffers of any other strategy are
// for somebody else.
const ActiveCapacity = "buffer.x-k8s.io/active-capacity"

// CapacityBuffer asks for room that is kept free for pods of a certain shape.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=capacitybuffers,scope=Namespaced,shortName=cb
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Strategy",type="string",JSONPath=".spec.provisioningStrategy"
// +kubebuilder:printcolumn:name="PodTemplate",type="string",JSONPath=".status.podTemplateRef.name"
// +kubebuilder:printcolumn:name="Replicas",type="integer",JSONPath=".status.replicas"
// +kubebuilder:printcolumn:name="ConditionsType",type="string",JSONPath=".status.conditions[*].type"
// +kubebuilder:printcolumn:name="ConditionsStatus",type="string",JSONPath=".status.conditions[*].status"
// +kubebuilder:printcolumn:name="ConditionsReason",type="string",JSONPath=".status.conditions[*].reason"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type CapacityBuffer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec CapacityBufferSpec `json:"spec"`
	// +optional
	Status CapacityBufferStatus `json:"status,omitempty"`
}

// CapacityBufferList is a list of CapacityBuffers.
// +kubebuilder:object:root=true
type CapacityBufferList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CapacityBuffer `json:"items"`
}

// CapacityBufferSpec is how much room is wanted, and for which pods.
// +kubebuilder:validation:XValidation:message="If podTemplateRef is set, replicas or limits must also be set",rule="!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)"
// +kubebuilder:validation:XValidation:message="You must define either PodTemplateRef or ScalableRef, but not both",rule="!(has(self.podTemplateRef) && has(self.scalableRef))"
type CapacityBufferSpec struct {
	// provisioningStrategy is how the room is held ready.
	// +kubebuilder:default="buffer.x-k8s.io/active-capacity"
	// +optional
	ProvisioningStrategy *string `json:"provisioningStrategy,omitempty"`

	// podTemplateRef names a PodTemplate of the buffer's namespace: the room is for pods like it.
	// +optional
	PodTemplateRef *LocalObjectRef `json:"podTemplateRef,omitempty"`

	// scalableRef names a Deployment, StatefulSet or ReplicaSet of the buffer's namespace: the room is for more of its
	// pods.
	// +optional
	ScalableRef *ScalableRef `json:"scalableRef,omitempty"`

	// replicas is the number of pods there is to be room for. With percentage, the larger of the two counts.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// percentage is the room in percent of the replicas of scalableRef, rounded up.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Percentage *int32 `json:"percentage,omitempty"`

	// limits bound the sum of the requests of all pods there is room for. Without replicas and percentage, they are what
	// decides how many pods that is.
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`
}

// Active tells whether the buffer asks for nodes that run, which is the default.
func (in *CapacityBuffer) Active() bool {
	strategy := in.Spec.ProvisioningStrategy
	return strategy == nil || *strategy == "" || *strategy == ActiveCapacity
}

// Condition returns the condition of a type, or nil. It points into the status.
func (in *CapacityBuffer) Condition(conditionType string) *metav1.Condition {
	return meta.FindStatusCondition(in.Status.Conditions, conditionType)
}

// SetCondition sets a condition and tells whether anything changed. LastTransitionTime is kept while the status stays.
func (in *CapacityBuffer) SetCondition(c metav1.Condition) bool {
	c.ObservedGeneration = in.Generation
	return meta.SetStatusCondition(&in.Status.Conditions, c)
}
