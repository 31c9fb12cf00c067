package nominate

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/activities/readiness"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// opening reports whether nothing keeps pods off a node but the taints that Kubernetes removes when it sees that the node
// is Ready.
func opening(node *corev1.Node, claim *karpv1.NodeClaim) bool {
	if !readiness.Ready(node) || node.Spec.Unschedulable || !node.DeletionTimestamp.IsZero() {
		return false
	}
	var starting []corev1.Taint
	if claim != nil {
		if !claim.DeletionTimestamp.IsZero() || !readiness.Registered(node) {
			return false
		}
		starting = claim.Spec.StartupTaints
	}
	return !slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key != corev1.TaintNodeNotReady && readiness.Ephemeral(taint) || taint.Key == karpv1.DisruptedTaintKey ||
			slices.ContainsFunc(starting, func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
	})
}

// readySince returns when a node became Ready, or now if the node does not say.
func readySince(node *corev1.Node, now time.Time) time.Time {
	for _, c := range node.Status.Conditions {
		if at := c.LastTransitionTime.Time; c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && !at.IsZero() && at.Before(now) {
			return at
		}
	}
	return now
}
