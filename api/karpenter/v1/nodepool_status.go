package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Conditions of a NodePool. The first two make up Ready.
const (
	// ConditionTypeValidationSucceeded is False when the pool breaks a rule the API server could not check.
	ConditionTypeValidationSucceeded = "ValidationSucceeded"
	// ConditionTypeNodeClassReady is True while the pool's node class exists and is ready.
	ConditionTypeNodeClassReady = "NodeClassReady"
	// ConditionTypePaused is True while work for the pool is paused, or the pool is only observed; absent otherwise.
	ConditionTypePaused = "Paused"
	// ConditionTypeMaintenanceWindow is True while maintenance windows are open for every reason that waits for one, False while
	// they are closed for some or cannot be read; absent for pools without windows. It does not affect Ready.
	ConditionTypeMaintenanceWindow = "MaintenanceWindow"
	// ConditionTypeDisruptionLimited is True while a budget of the whole cluster, its rate or the pool's is used up; absent
	// otherwise. It does not affect Ready.
	ConditionTypeDisruptionLimited = "DisruptionLimited"
	// ConditionTypeNodeRegistrationHealthy is False when recent launches of the pool did not become nodes.
	ConditionTypeNodeRegistrationHealthy = "NodeRegistrationHealthy"
)

// Reasons of the conditions of a NodePool.
const (
	// ReasonNodePoolValidationFailed goes with ValidationSucceeded=False.
	ReasonNodePoolValidationFailed = "NodePoolValidationFailed"
	// ReasonNodeClassNotFound goes with NodeClassReady=False: no class has that name.
	ReasonNodeClassNotFound = "NodeClassNotFound"
	// ReasonNodeClassTerminating goes with NodeClassReady=False: the class is being deleted.
	ReasonNodeClassTerminating = "NodeClassTerminating"
	// ReasonNodeClassReadinessUnknown goes with NodeClassReady=Unknown: the class does not say yet.
	ReasonNodeClassReadinessUnknown = "NodeClassReadinessUnknown"
)

// NodePoolStatus is what is known about a pool.
type NodePoolStatus struct {
	// nodeClassObservedGeneration is the generation of the node class that NodeRegistrationHealthy was found with.
	// +optional
	NodeClassObservedGeneration int64 `json:"nodeClassObservedGeneration,omitempty"`

	// resources is the sum of the capacity of the pool's nodes.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`

	// nodes is the number of the pool's nodes.
	// +kubebuilder:default=0
	// +optional
	Nodes *int64 `json:"nodes,omitempty"`

	// conditions say whether the pool is used, and why not.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ReadyParts returns the conditions whose roll-up is Ready.
func (in *NodePool) ReadyParts() []string {
	return []string{ConditionTypeValidationSucceeded, ConditionTypeNodeClassReady}
}

// Condition returns the condition of a type, or nil. It points into the status.
func (in *NodePool) Condition(conditionType string) *metav1.Condition {
	return meta.FindStatusCondition(in.Status.Conditions, conditionType)
}

// IsTrue tells whether the condition of a type is True.
func (in *NodePool) IsTrue(conditionType string) bool {
	return meta.IsStatusConditionTrue(in.Status.Conditions, conditionType)
}

// SetCondition sets a condition (Type, Status, Reason and Message; an empty reason becomes the type), rolls Ready up
// again and tells whether anything changed. LastTransitionTime is kept while the status stays the same; set it in c to
// have it taken instead of the clock when the status changes.
func (in *NodePool) SetCondition(c metav1.Condition) bool {
	return SetCondition(&in.Status.Conditions, in.Generation, c, in.ReadyParts)
}

// ClearCondition removes a condition and tells whether it was there.
func (in *NodePool) ClearCondition(conditionType string) bool {
	return meta.RemoveStatusCondition(&in.Status.Conditions, conditionType)
}
