package starter

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// nodeGone ends a claim whose Node has registered and is no longer there, because somebody took the Node's finalizer off
// and deleted it. A kubelet makes its Node only when it starts, so the machine runs nothing, is paid for, and pods would be
// planned for it for ever. The mirror may see a claim before its Node: the API server has the last word.
func (s *Starter) nodeGone(ctx context.Context, claim *karpv1.NodeClaim) error {
	if claim.Status.NodeName == "" || !claim.DeletionTimestamp.IsZero() || !claim.IsTrue(karpv1.ConditionTypeRegistered) ||
		serves(s.Mirror.Node(claim.Status.NodeName), claim) || !s.told.news(claim.UID, workflows.ReasonNodeDeleted) {
		return nil
	}
	node := &corev1.Node{}
	if err := s.Kube.Get(ctx, kube.ObjectKey{Name: claim.Status.NodeName}, node); kube.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Node %s of NodeClaim %s: %w", claim.Status.NodeName, claim.Name, err)
	}
	if serves(node, claim) {
		return nil
	}
	now := &karpv1.NodeClaim{} // which the mirror may show as it was before its node went with it
	if err := s.Kube.Get(ctx, kube.ObjectKeyFromObject(claim), now); err != nil || now.UID != claim.UID || !now.DeletionTimestamp.IsZero() {
		return kube.IgnoreNotFound(err)
	}
	if err := s.end(ctx, claim, workflows.Ending{Reason: workflows.ReasonNodeDeleted}); err != nil {
		return err
	}
	s.told.keep(claim.UID, workflows.ReasonNodeDeleted)
	s.Log.Warn("a node is gone without having been drained; its instance is ended", zap.String("claim", claim.Name), zap.String("node", claim.Status.NodeName))
	return nil
}

// serves says whether a Node is that of a registered claim. One with the taint of Nodes that have not registered was made
// anew by a kubelet that started again.
func serves(node *corev1.Node, claim *karpv1.NodeClaim) bool {
	return node != nil && node.Spec.ProviderID == claim.Status.ProviderID &&
		!slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == karpv1.UnregisteredTaintKey })
}

// nodesGone ends the claims that had the Node of a name which is no longer there.
func (s *Starter) nodesGone(ctx context.Context, name string) error {
	var failed error
	for _, claim := range s.Mirror.Claims() {
		if claim.Status.NodeName == name {
			failed = errors.Join(failed, s.nodeGone(ctx, claim))
		}
	}
	return failed
}
