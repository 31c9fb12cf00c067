package starter

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// nodes tells the workflows of claims of Nodes that people delete.
type nodes struct {
	mirror    Mirror
	workflows *signaller
	told      *dedup
	// queue has claims looked at whose Nodes are gone.
	queue queue
}

// changed tells the workflow of a Node's claim that the Node is being deleted, as kubectl delete node does: the
// Node's finalizer keeps it until the workflow has drained it. Where nothing has kept it, the machine is ended.
func (n *nodes) changed(ctx context.Context, name string) error {
	node := n.mirror.Node(name)
	switch {
	case node == nil:
		n.gone(name)
		return nil
	case node.DeletionTimestamp.IsZero():
		return nil
	}
	claim := n.mirror.ClaimOfNode(name)
	if claim == nil || !claim.DeletionTimestamp.IsZero() || !n.told.isNew(node.UID, workflows.ReasonNodeDeleted) {
		return nil
	}
	if err := n.workflows.end(ctx, claim, workflows.Ending{Reason: nodeDeletedReason(node)}); err != nil {
		return err
	}
	n.told.mark(node.UID, workflows.ReasonNodeDeleted)
	return nil
}

// gone has the claims looked at that had the Node of a name which is no longer there.
func (n *nodes) gone(name string) {
	for _, claim := range n.mirror.Claims() {
		if claim.Status.NodeName == name {
			n.queue.Add(claimEvent(claim.Name))
		}
	}
}

func nodeDeletedReason(node *corev1.Node) string {
	if reason := node.Annotations[karpv1.RemovalReasonAnnotationKey]; reason != "" {
		return reason
	}
	return workflows.ReasonNodeDeleted
}
