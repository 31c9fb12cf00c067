package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Conditions of a NodeClaim. The first three make up Ready.
const (
	// ConditionTypeLaunched is True once the instance exists.
	ConditionTypeLaunched = "Launched"
	// ConditionTypeRegistered is True once the instance's Node carries the claim's labels and taints.
	ConditionTypeRegistered = "Registered"
	// ConditionTypeInitialized is True once the Node is ready for ordinary pods.
	ConditionTypeInitialized = "Initialized"
	// ConditionTypeConsolidatable is True while the node has been quiet for the pool's consolidateAfter.
	ConditionTypeConsolidatable = "Consolidatable"
	// ConditionTypeDrifted is True when the node is no longer what its pool and class would launch.
	ConditionTypeDrifted = "Drifted"
	// ConditionTypeDrained is True once every pod that has to leave the node has left it.
	ConditionTypeDrained = "Drained"
	// ConditionTypeVolumesDetached is True once the volumes of the pods that left are detached.
	ConditionTypeVolumesDetached = "VolumesDetached"
	// ConditionTypeInstanceTerminating is True once the provider has been asked to terminate the instance.
	ConditionTypeInstanceTerminating = "InstanceTerminating"
	// ConditionTypeConsistentStateFound is False when the node is clearly smaller than what was bought.
	ConditionTypeConsistentStateFound = "ConsistentStateFound"
	// ConditionTypeDisruptionReason is True while the node is being disrupted; its reason says why.
	ConditionTypeDisruptionReason = "DisruptionReason"
)

// NodeClaimStatus is what became of a claim.
type NodeClaimStatus struct {
	// nodeName is the name of the claim's Node.
	// +optional
	NodeName string `json:"nodeName,omitempty"`

	// providerID is the instance in the provider's words, as in the Node's spec.providerID.
	// +optional
	ProviderID string `json:"providerID,omitempty"`

	// imageID is the machine image the instance was launched from.
	// +optional
	ImageID string `json:"imageID,omitempty"`

	// capacity is what the node has, estimated from the instance type until the Node reports it.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// allocatable is what the node has for pods, estimated likewise.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`

	// conditions follow the claim through its life.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// lastPodEventTime is when a pod was last bound to the node, ended or left. DaemonSet pods do not count.
	// +optional
	LastPodEventTime metav1.Time `json:"lastPodEventTime,omitzero"`
}

// ReadyParts returns the conditions whose roll-up is Ready.
func (in *NodeClaim) ReadyParts() []string {
	return []string{ConditionTypeLaunched, ConditionTypeRegistered, ConditionTypeInitialized}
}

// Condition returns the condition of a type, or nil. It points into the status.
func (in *NodeClaim) Condition(conditionType string) *metav1.Condition {
	return meta.FindStatusCondition(in.Status.Conditions, conditionType)
}

// IsTrue tells whether the condition of a type is True.
func (in *NodeClaim) IsTrue(conditionType string) bool {
	return meta.IsStatusConditionTrue(in.Status.Conditions, conditionType)
}

// SetCondition sets a condition (Type, Status, Reason and Message; an empty reason becomes the type), rolls Ready up
// again and tells whether anything changed. LastTransitionTime is kept while the status stays the same; set it in c to
// have it taken instead of the clock when the status changes.
func (in *NodeClaim) SetCondition(c metav1.Condition) bool {
	return SetCondition(&in.Status.Conditions, in.Generation, c, in.ReadyParts)
}

// ClearCondition removes a condition and tells whether it was there.
func (in *NodeClaim) ClearCondition(conditionType string) bool {
	return meta.RemoveStatusCondition(&in.Status.Conditions, conditionType)
}
