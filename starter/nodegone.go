package starter

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

const (
	// maxGone and minGone limit the nodes that may be terminated within goneWithin because their Nodes are gone: one in
	// maxGone, but at least minGone. If most Nodes are gone at once the fault is elsewhere, and their pods may still
	// run.
	maxGone, minGone = 10, 3
	goneWithin       = 2 * time.Minute
)

// goneNodes terminates the machines of Nodes that are gone without having been drained.
type goneNodes struct {
	mirror    Mirror
	kube      kube.Client
	workflows *signaller
	told      *dedup
	lately    endedLately
	log       *zap.Logger
}

// end ends a claim whose registered Node no longer exists, because somebody removed the Node's finalizer and deleted
// it. A kubelet creates its Node only when it starts, so the machine runs nothing new, costs money, and pods would be
// planned onto it for ever. The mirror may see a claim before its Node, so the API server is asked. end returns when to
// look again if too many Nodes have gone lately, zero for not before the next change.
func (g *goneNodes) end(ctx context.Context, claim *karpv1.NodeClaim) (time.Duration, error) {
	if claim.Status.NodeName == "" || !claim.DeletionTimestamp.IsZero() || !claim.IsTrue(karpv1.ConditionTypeRegistered) ||
		serves(g.mirror.Node(claim.Status.NodeName), claim) || !g.told.isNew(claim.UID, workflows.ReasonNodeDeleted) {
		return 0, nil
	}
	node := &corev1.Node{}
	if err := g.kube.Get(ctx, kube.ObjectKey{Name: claim.Status.NodeName}, node); kube.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("read Node %s of NodeClaim %s: %w", claim.Status.NodeName, claim.Name, err)
	}
	if serves(node, claim) {
		return 0, nil
	}
	now := &karpv1.NodeClaim{} // the mirror may still show the claim as it was before it was deleted along with its node
	if err := g.kube.Get(ctx, kube.ObjectKeyFromObject(claim), now); err != nil || now.UID != claim.UID || !now.DeletionTimestamp.IsZero() {
		return 0, kube.IgnoreNotFound(err)
	}
	if !g.lately.may(time.Now(), max(minGone, len(g.mirror.Claims())/maxGone)) {
		g.log.Warn("a node has gone, and so have so many others that its instance is not terminated yet", zap.String("claim", claim.Name), zap.String("node", claim.Status.NodeName))
		return goneWithin, nil
	}
	if err := g.workflows.end(ctx, claim, workflows.Ending{Reason: workflows.ReasonNodeDeleted}); err != nil {
		return 0, err
	}
	g.told.mark(claim.UID, workflows.ReasonNodeDeleted)
	g.log.Warn("a node has gone without a drain; its instance is terminated", zap.String("claim", claim.Name), zap.String("node", claim.Status.NodeName))
	return 0, nil
}

// endedLately are the times at which claims were ended because their Nodes were gone.
type endedLately struct {
	mu sync.Mutex
	at []time.Time
}

// may reports whether another claim may be ended, and if so records it: at most `most` of them within goneWithin.
func (e *endedLately) may(now time.Time, most int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.at = slices.DeleteFunc(e.at, func(at time.Time) bool { return now.Sub(at) >= goneWithin })
	if len(e.at) >= most {
		return false
	}
	e.at = append(e.at, now)
	return true
}

// serves says whether a Node is that of a registered claim. A Node with the taint of unregistered Nodes was created
// anew by a kubelet that restarted.
func serves(node *corev1.Node, claim *karpv1.NodeClaim) bool {
	return node != nil && node.Spec.ProviderID == claim.Status.ProviderID &&
		!slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == karpv1.UnregisteredTaintKey })
}
