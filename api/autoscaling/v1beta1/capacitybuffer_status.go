package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Conditions of a CapacityBuffer.
const (
	// ConditionReadyForProvisioning is True when it is known how many pods of which shape there is to be room for.
	ConditionReadyForProvisioning = "ReadyForProvisioning"
	// ConditionProvisioning is True while room is held or made for the buffer; its reason tells the two apart.
	ConditionProvisioning = "Provisioning"
)

// Reasons of the condition ReadyForProvisioning.
const (
	// ReasonResolved goes with True.
	ReasonResolved = "Resolved"
	// ReasonScalableRefNotFound says that what scalableRef names does not exist.
	ReasonScalableRefNotFound = "ScalableRefNotFound"
	// ReasonPodTemplateNotFound says that the PodTemplate does not exist.
	ReasonPodTemplateNotFound = "PodTemplateNotFound"
	// ReasonResolutionFailed says that the buffer cannot be understood.
	ReasonResolutionFailed = "ResolutionFailed"
)

// Reasons of the condition Provisioning.
const (
	// ReasonFitsExistingCapacity goes with True: all the room is there.
	ReasonFitsExistingCapacity = "FitsExistingCapacity"
	// ReasonRequiresNewCapacity goes with True: some of the room is on its way, or cannot be had for now.
	ReasonRequiresNewCapacity = "RequiresNewCapacity"
	// ReasonNotReadyForProvisioning goes with False while ReadyForProvisioning is False.
	ReasonNotReadyForProvisioning = "NotReadyForProvisioning"
	// ReasonBufferEmpty goes with False: the buffer asks for no pods at all.
	ReasonBufferEmpty = "BufferEmpty"
)

// CapacityBufferStatus is what was made of the spec.
type CapacityBufferStatus struct {
	// podTemplateRef is the PodTemplate in use.
	// +optional
	PodTemplateRef *LocalObjectRef `json:"podTemplateRef,omitempty"`

	// podTemplateGeneration is the generation of the PodTemplate, or of what scalableRef names, that is in use.
	// +optional
	PodTemplateGeneration *int64 `json:"podTemplateGeneration,omitempty"`

	// replicas is the number of pods there is to be room for.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// provisioningStrategy is the strategy in use.
	// +optional
	ProvisioningStrategy *string `json:"provisioningStrategy,omitempty"`

	// conditions say whether the buffer is understood, and whether its room is there.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
