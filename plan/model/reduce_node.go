package model

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Node reduces a Node, ignoring any claim. The caller adds its Pods (Node.WithPods).
func (i *Interner) Node(node *corev1.Node) *Node {
	n := &Node{
		Name:        i.String(node.Name),
		UID:         node.UID,
		ProviderID:  node.Spec.ProviderID,
		Taints:      unexpecting(node.Spec.Taints),
		Capacity:    ResourcesOf(node.Status.Capacity),
		Allocatable: ResourcesOf(node.Status.Allocatable),
		Launched:    true,
		Registered:  true,
		Cordoned:    node.Spec.Unschedulable,
	}
	i.describe(n, node)
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			n.Ready = condition.Status == corev1.ConditionTrue
			n.InitializedAt = condition.LastTransitionTime.Time
		}
	}
	n.Initialized = n.Ready
	for _, taint := range node.Spec.Taints {
		switch taint.Key {
		case karpv1.DisruptedTaintKey:
			n.Disrupted, n.Deleting = true, true
		case karpv1.UnregisteredTaintKey:
			n.Registered = false
		}
	}
	return n
}

// describe reads what Nodes and claims have in common.
func (i *Interner) describe(n *Node, object metav1.Object) {
	n.Labels = i.Labels(object.GetLabels())
	n.Pool = n.Labels[karpv1.NodePoolLabelKey]
	n.InstanceType = n.Labels[corev1.LabelInstanceTypeStable]
	n.Zone = n.Labels[corev1.LabelTopologyZone]
	n.CapacityType = n.Labels[karpv1.CapacityTypeLabelKey]
	n.Deleting = object.GetDeletionTimestamp() != nil
	n.Replacement = object.GetAnnotations()[karpv1.ReplacementAnnotationKey]
	n.Created = object.GetCreationTimestamp().Time
	n.protect(object.GetAnnotations())
}

// Claim reduces a NodeClaim, ignoring the Node of its machine.
func (i *Interner) Claim(claim *karpv1.NodeClaim) *Node {
	n := &Node{
		Claim:         i.String(claim.Name),
		ClaimUID:      claim.UID,
		ProviderID:    claim.Status.ProviderID,
		Requirements:  ConditionsOf(claim.Spec.Requirements),
		Requests:      ResourcesOf(claim.Spec.Resources.Requests),
		Taints:        unexpecting(claim.Spec.Taints),
		StartupTaints: unexpecting(claim.Spec.StartupTaints),
		Capacity:      ResourcesOf(claim.Status.Capacity),
		Allocatable:   ResourcesOf(claim.Status.Allocatable),
		Launched:      claim.IsTrue(karpv1.ConditionTypeLaunched),
		Registered:    claim.IsTrue(karpv1.ConditionTypeRegistered),
		Initialized:   claim.IsTrue(karpv1.ConditionTypeInitialized),
		EndsAt:        claim.EndsAt(),
		Terminating:   claim.IsTrue(karpv1.ConditionTypeInstanceTerminating),
		LastPodEvent:  claim.Status.LastPodEventTime.Time,
	}
	i.describe(n, claim)
	if condition := claim.Condition(karpv1.ConditionTypeInitialized); condition != nil && n.Initialized {
		n.InitializedAt = condition.LastTransitionTime.Time
	}
	if drifted := claim.Condition(karpv1.ConditionTypeDrifted); drifted != nil && drifted.Status == metav1.ConditionTrue {
		n.Drifted, n.DriftedFor, n.DriftedAt = true, i.String(drifted.Reason), drifted.LastTransitionTime.Time
		n.DriftHash = claim.DriftHash()
	}
	n.Approvals = karpv1.ReadApprovals(claim.Annotations[karpv1.ApprovalsAnnotationKey])
	if after := claim.Spec.ExpireAfter; !after.IsNever() {
		n.ExpireAfter = *after.Duration
	}
	var err error
	if n.ExpireOrder, err = claim.ExpireOrder(); err != nil {
		n.ExpireMisread = err.Error()
	}
	if grace := claim.Spec.TerminationGracePeriod; grace != nil {
		n.TerminationGracePeriod = &grace.Duration
	}
	for _, r := range claim.Spec.Requirements {
		// A requirement with one value is a label of the node, whatever it becomes.
		if _, labelled := n.Labels[r.Key]; !labelled && r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1 {
			if n.Labels == nil {
				n.Labels = map[string]string{}
			}
			n.Labels[i.String(r.Key)] = i.String(r.Values[0])
		}
	}
	return n
}

// Join merges n, a reduced claim, with the reduced Node of its machine.
func (n *Node) Join(node *Node) *Node {
	joined := *n
	joined.Name, joined.UID, joined.Pods = node.Name, node.UID, node.Pods
	joined.Labels, joined.Taints = node.Labels, node.Taints
	joined.Capacity, joined.Allocatable = node.Capacity, node.Allocatable
	joined.AttachLimits, joined.Attached = node.AttachLimits, node.Attached
	joined.Ready, joined.Disrupted, joined.Cordoned = node.Ready, node.Disrupted, node.Cordoned
	joined.Deleting = n.Deleting || node.Deleting
	joined.InstanceType = cmp.Or(node.InstanceType, n.InstanceType)
	joined.Zone = cmp.Or(node.Zone, n.Zone)
	joined.CapacityType = cmp.Or(node.CapacityType, n.CapacityType)
	joined.Replacement = cmp.Or(node.Replacement, n.Replacement)
	joined.LastPodEvent = Later(n.LastPodEvent, node.LastPodEvent)
	joined.NominatedUntil = Later(n.NominatedUntil, node.NominatedUntil)
	joined.protectAlso(node)
	if !n.Registered {
		// Until it registers, the Node does not show all that the claim promises.
		joined.Labels = map[string]string{}
		maps.Copy(joined.Labels, node.Labels)
		maps.Copy(joined.Labels, n.Labels)
		joined.Taints = n.Taints
	}
	if !n.Initialized {
		// A device plugin that has not started yet reports none of its devices; the claim foresees them.
		joined.Capacity = node.Capacity.Max(n.Capacity)
		joined.Allocatable = node.Allocatable.or(n.Allocatable)
	}
	return &joined
}

// unexpecting removes the taint that only reserves a node, until it is Ready, for the pods that were planned for it.
func unexpecting(taints []corev1.Taint) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool { return t.Key == karpv1.ExpectingTaintKey })
}
