package starter

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// nodes notifies the NodeClaim workflows of Nodes that people delete.
type nodes struct {
	mirror    Mirror
	workflows *signaller
	told      *dedup
	// queue receives the claims whose Nodes are gone.
	queue queue
}

// changed notifies a claim's workflow that its Node is being deleted, as by kubectl delete node: the Node's finalizer
// keeps it until the workflow has drained it. For a Node that is already gone, it queues the claim, so that the machine
// is terminated.
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

// gone queues the claims whose status names a Node that no longer exists.
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
