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
	// maxGone is one in how many nodes may be ended within goneWithin because their Nodes are gone, and minGone how many
	// may be in any case: where most Nodes are gone at once the mistake is another one, and their pods may still run.
	maxGone, minGone = 10, 3
	goneWithin       = 2 * time.Minute
)

// goneNodes ends the machines of Nodes that are gone without having been drained.
type goneNodes struct {
	mirror    Mirror
	kube      kube.Client
	workflows *signaller
	told      *dedup
	lately    endedLately
	log       *zap.Logger
}

// end ends a claim whose Node has registered and is no longer there, because somebody took the Node's finalizer off
// and deleted it. A kubelet makes its Node only when it starts, so the machine runs nothing new, is paid for, and pods would
// be planned for it for ever. The mirror may see a claim before its Node: the API server has the last word. It returns when
// to look again where too many have gone lately, zero for not before the next change.
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
	now := &karpv1.NodeClaim{} // which the mirror may show as it was before its node went with it
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

// endedLately are the moments at which claims were ended because their Nodes were gone.
type endedLately struct {
	mu sync.Mutex
	at []time.Time
}

// may says whether another one may be ended, of so many within goneWithin, and takes it as ended.
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

// serves says whether a Node is that of a registered claim. One with the taint of Nodes that have not registered was made
// anew by a kubelet that started again.
func serves(node *corev1.Node, claim *karpv1.NodeClaim) bool {
	return node != nil && node.Spec.ProviderID == claim.Status.ProviderID &&
		!slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == karpv1.UnregisteredTaintKey })
}
