package aws

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/cloud"
)

// RepairPolicies implements cloud.Provider. They are Karpenter's: Ready is the kubelet's own condition, the others are
// those of the EKS node monitoring agent, and a broken accelerator is tolerated for the shortest time.
func (p *Provider) RepairPolicies() []cloud.RepairPolicy {
	const patience = 30 * time.Minute
	return []cloud.RepairPolicy{
		{Condition: corev1.NodeReady, Status: corev1.ConditionFalse, Tolerated: patience},
		{Condition: corev1.NodeReady, Status: corev1.ConditionUnknown, Tolerated: patience},
		{Condition: "AcceleratedHardwareReady", Status: corev1.ConditionFalse, Tolerated: 10 * time.Minute},
		{Condition: "StorageReady", Status: corev1.ConditionFalse, Tolerated: patience},
		{Condition: "NetworkingReady", Status: corev1.ConditionFalse, Tolerated: patience},
		{Condition: "KernelReady", Status: corev1.ConditionFalse, Tolerated: patience},
		{Condition: "ContainerRuntimeReady", Status: corev1.ConditionFalse, Tolerated: patience},
	}
}
