package activities

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// cordonedAnnotation marks a node that is not Tenon's and that a drain has made unschedulable, so that cancelling the drain
// does not lift somebody else's cordon.
const cordonedAnnotation = "tenon.sh/cordoned"

// drainedAnnotation marks the node of a claim that somebody drained by hand: it stays closed afterwards if its claim is
// kept.
const drainedAnnotation = "tenon.sh/drained-by-hand"

// cordonTaint returns the taint that keeps pods off a node while it is drained. Nodes of a claim carry Karpenter's taint,
// which other tools know. A node that is not Tenon's gets the ordinary cordon, spec.unschedulable, because that is what its
// owner and `kubectl uncordon` understand; pods of DaemonSets tolerate it, and so stay.
func cordonTaint(claimed bool) corev1.Taint {
	if claimed {
		return karpv1.DisruptedNoScheduleTaint()
	}
	return corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
}

// cordonClaimed adds Karpenter's taint and label for a node that will be removed to the node of a claim.
func cordonClaimed(node *corev1.Node) {
	taintDisrupted(node)
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	node.Labels[corev1.LabelNodeExcludeBalancers] = karpv1.ExcludeFromLoadBalancersValue
}

// taintDisrupted adds Karpenter's taint for a node that will be removed.
func taintDisrupted(node *corev1.Node) {
	if taint := cordonTaint(true); !disrupted(node) {
		node.Spec.Taints = append(node.Spec.Taints, taint)
	}
}

// disrupted reports whether a node carries Karpenter's taint for a node that will be removed.
func disrupted(node *corev1.Node) bool {
	taint := cordonTaint(true)
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
}

// cordonForeign makes a node that is not Tenon's unschedulable, and marks it unless it already was.
func cordonForeign(node *corev1.Node) {
	if node.Spec.Unschedulable {
		return
	}
	node.Spec.Unschedulable = true
	setAnnotation(node, cordonedAnnotation, "true")
}

// uncordonNode undoes cordonClaimed and cordonForeign.
func uncordonNode(node *corev1.Node) {
	taint := cordonTaint(true)
	delete(node.Annotations, drainedAnnotation)
	forgetBlocked(node)
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
	if node.Labels[corev1.LabelNodeExcludeBalancers] == karpv1.ExcludeFromLoadBalancersValue {
		delete(node.Labels, corev1.LabelNodeExcludeBalancers)
	}
	if _, ours := node.Annotations[cordonedAnnotation]; ours {
		node.Spec.Unschedulable = false
		delete(node.Annotations, cordonedAnnotation)
	}
}

// noteBlocked records on a node since when its drain has been blocked, unless that is recorded already.
func noteBlocked(since time.Time) func(*corev1.Node) {
	return func(node *corev1.Node) {
		if node.Annotations[karpv1.DrainBlockedAnnotationKey] == "" {
			setAnnotation(node, karpv1.DrainBlockedAnnotationKey, since.UTC().Format(time.RFC3339))
		}
	}
}

func forgetBlocked(node *corev1.Node) { delete(node.Annotations, karpv1.DrainBlockedAnnotationKey) }

func setAnnotation(node *corev1.Node, key, value string) {
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[key] = value
}
