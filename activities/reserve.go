package activities

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/activities/readiness"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// keeper keeps a node that replaces others closed until those others are removed, by the taint that reserves a node for the
// pods it was planned for. The kube-scheduler prefers empty nodes, and would put pods there that were evicted elsewhere for
// other reasons, so that the pods the node was bought for would find no place. Retire opens the node. If the replacement
// was terminated, the sweep opens it.
type keeper struct {
	cluster    workflows.Cluster
	objects    objects
	executions executions
}

// reserved reports whether a claim's node has to be kept closed for now.
func (k *keeper) reserved(ctx context.Context, claim *karpv1.NodeClaim) (bool, error) {
	id := claim.Annotations[karpv1.ReplacementAnnotationKey]
	if id == "" {
		return false, nil
	}
	return k.executions.runs(ctx, k.cluster.ReplacementID(id))
}

// reserve closes a node.
func reserve(node *corev1.Node) {
	if !readiness.Expecting(node) {
		node.Spec.Taints = append(node.Spec.Taints, karpv1.ExpectingNoScheduleTaint())
	}
}

// openReplacements opens the nodes of claims.
func (k *keeper) openReplacements(ctx context.Context, refs []workflows.ClaimRef) error {
	return inParallel(ctx, len(refs), func(ctx context.Context, i int) error {
		claim, err := k.objects.claim(ctx, refs[i])
		if err != nil || claim == nil || claim.Status.NodeName == "" {
			return err
		}
		node, err := k.objects.node(ctx, claim.Status.NodeName, "")
		if err != nil || node == nil || node.Spec.ProviderID != claim.Status.ProviderID {
			return err
		}
		_, err = k.objects.change(ctx, node, "open", open)
		return err
	})
}
