package activities

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// cordonedAnnotation marks a node that is not Tenon's and that a drain has made unschedulable, so that taking the drain
// back does not lift the cordon of somebody else.
const cordonedAnnotation = "tenon.sh/cordoned"

// cordonTaint is the taint that keeps pods off a node while it is drained. Nodes of a claim carry Karpenter's own, which
// other tools know. A node that is not Tenon's gets the ordinary cordon, spec.unschedulable, because that is what its
// owner and `kubectl uncordon` understand; the pods of its DaemonSets tolerate that, and so stay.
func cordonTaint(claimed bool) corev1.Taint {
	if claimed {
		return karpv1.DisruptedNoScheduleTaint()
	}
	return corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
}

// cordon keeps new pods off the node, and external load balancers too where the node is Tenon's and will go. It is one
// write, and none where everything is in place.
func (d *Drains) cordon(ctx context.Context, node *corev1.Node, claimed bool) (*corev1.Node, error) {
	edit := cordonForeign
	if claimed {
		edit = cordonClaimed
	}
	return d.change(ctx, node, "cordon", edit)
}

// cordonClaimed puts Karpenter's taint and label for a node that will go on a node of a claim.
func cordonClaimed(node *corev1.Node) {
	taint := cordonTaint(true)
	if !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
		node.Spec.Taints = append(node.Spec.Taints, taint)
	}
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	node.Labels[corev1.LabelNodeExcludeBalancers] = karpv1.ExcludeFromLoadBalancersValue
}

// cordonForeign makes a node that is not Tenon's unschedulable, and marks it if it was not so already.
func cordonForeign(node *corev1.Node) {
	if node.Spec.Unschedulable {
		return
	}
	node.Spec.Unschedulable = true
	setAnnotation(node, cordonedAnnotation, "true")
}

// uncordonNode takes back what cordonClaimed or cordonForeign did.
func uncordonNode(node *corev1.Node) {
	taint := cordonTaint(true)
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
	if node.Labels[corev1.LabelNodeExcludeBalancers] == karpv1.ExcludeFromLoadBalancersValue {
		delete(node.Labels, corev1.LabelNodeExcludeBalancers)
	}
	if _, ours := node.Annotations[cordonedAnnotation]; ours {
		node.Spec.Unschedulable = false
		delete(node.Annotations, cordonedAnnotation)
	}
}

// change patches the node to what edit makes of it, and writes nothing where edit changes nothing. The patch holds the
// resource version, because taints are one list that others write too; on a conflict the node is read again. A node that
// has vanished needs no change.
func (d *Drains) change(ctx context.Context, node *corev1.Node, doing string, edit func(*corev1.Node)) (*corev1.Node, error) {
	changed := node.DeepCopy()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		edit(changed)
		if equality.Semantic.DeepEqual(node, changed) {
			return nil
		}
		err := d.Client.Patch(ctx, changed, client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{}))
		if err == nil {
			return nil
		}
		if fresh, readErr := d.node(ctx, node.Name, string(node.UID)); readErr == nil && fresh != nil {
			node, changed = fresh, fresh.DeepCopy()
		}
		return err
	})
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("%s node %s: %w", doing, node.Name, err)
	}
	return changed, nil
}

func setAnnotation(node *corev1.Node, key, value string) {
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[key] = value
}
