package activities

import (
	"context"
	"slices"
	"sync"

	"go.temporal.io/sdk/activity"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/logs"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// remover removes nodes that are not needed, or that no longer have to wait for anything.
type remover struct {
	objects objects
	stops   stops
	counts  *Metrics
	log     *zap.Logger
}

// Remove removes the nodes of one evaluation. It first checks in the API server whether the reason still holds. A node that
// is removed for being empty is tainted first, so that nothing new can be bound to it, and is given back if it has got a
// pod in between. A static pool loses no more nodes than it has beyond its replicas.
func (r *remover) Remove(ctx context.Context, removal workflows.Removal) (workflows.RemovalResult, error) {
	ctx, done := heartbeat(ctx)
	defer done()
	return r.removeNodes(ctx, removal, activity.GetInfo(ctx).Attempt >= triesEach)
}

// removeNodes removes nodes. A node that cannot be removed is an error, or, on the last try, is kept for that reason.
func (r *remover) removeNodes(ctx context.Context, removal workflows.Removal, lastTry bool) (workflows.RemovalResult, error) {
	var mu sync.Mutex
	var result workflows.RemovalResult
	going, stopped, err := r.notStopped(ctx, removal)
	if err != nil {
		return result, err
	}
	result.Kept = stopped
	if removal.Reason == string(plan.DisruptionReasonOverprovisioned) {
		surplus, kept, err := r.surplus(ctx, going)
		if err != nil {
			return result, err
		}
		going, result.Kept = surplus, append(result.Kept, kept...)
	}
	err = inParallel(ctx, len(going), func(ctx context.Context, i int) error {
		kept, err := r.remove(ctx, going[i], removal.Reason)
		if err != nil && lastTry && ctx.Err() == nil {
			kept, err = r.keepFailed(ctx, going[i], err), nil
		}
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if kept != "" {
			result.Kept = append(result.Kept, going[i].Claim.Name+": "+kept)
		} else {
			result.Removed++
		}
		return nil
	})
	slices.Sort(result.Kept)
	return result, err
}

// notStopped returns the nodes whose disruption nobody has stopped or wants to approve first, and why the others are kept. The stop may have begun after
// an earlier attempt: what that has removed is among those that go, and what it has only marked is unmarked.
func (r *remover) notStopped(ctx context.Context, removal workflows.Removal) (going []workflows.RemovedNode, kept []string, err error) {
	stopped, err := r.stops.ofRemovals(ctx, karpv1.PauseDisruption, removal.Reason, poolsOf(removal.Nodes)...)
	if err != nil {
		return nil, nil, err
	}
	for _, gone := range removal.Nodes {
		why, err := r.stops.unapproved(ctx, removal.Reason, gone)
		if err != nil {
			return nil, nil, err
		}
		if stop := stopped[gone.NodePool]; stop != nil {
			why = stop.String()
		}
		if why == "" {
			going = append(going, gone)
			continue
		}
		claim, err := r.objects.claim(ctx, gone.Claim)
		if err != nil {
			return nil, nil, err
		}
		if claim == nil || !claim.DeletionTimestamp.IsZero() {
			going = append(going, gone)
			continue
		}
		if err := r.unmark(ctx, gone, removal.Reason); err != nil {
			return nil, nil, err
		}
		kept = append(kept, gone.Claim.Name+": "+why)
	}
	return going, kept, nil
}

// unmark takes back what an earlier attempt has marked a node with. Marks for another reason are somebody else's.
func (r *remover) unmark(ctx context.Context, gone workflows.RemovedNode, reason string) error {
	if gone.Node == "" {
		return nil
	}
	node, err := r.objects.node(ctx, gone.Node, gone.NodeUID)
	if err != nil || node == nil || node.Annotations[karpv1.RemovalReasonAnnotationKey] != reason {
		return err
	}
	_, err = r.objects.change(ctx, node, "give back", giveBack)
	return err
}

// keepFailed removes the marks from a node that cannot be removed, and returns why it is kept. The next evaluation finds
// the node again if there is still a reason to remove it.
func (r *remover) keepFailed(ctx context.Context, gone workflows.RemovedNode, cause error) string {
	logs.Of(ctx, r.log).Warn("could not remove a node", zap.String("node", gone.Node), zap.String("claim", gone.Claim.Name), zap.Error(cause))
	node, err := r.objects.node(ctx, gone.Node, gone.NodeUID)
	if err == nil && node != nil {
		_, err = r.objects.change(ctx, node, "give back", giveBack)
	}
	if err != nil { // the sweep removes the marks
		logs.Of(ctx, r.log).Warn("could not take the marks off", zap.String("node", gone.Node), zap.Error(err))
	}
	return "it cannot be removed: " + cause.Error()
}

// surplus returns those of the nodes, all of one static pool, that the pool still has beyond its replicas, and why the
// others are kept. It drops nodes whose claims are deleted already.
func (r *remover) surplus(ctx context.Context, nodes []workflows.RemovedNode) (going []workflows.RemovedNode, kept []string, err error) {
	if len(nodes) == 0 {
		return nil, nil, nil
	}
	var pool karpv1.NodePool
	first, err := r.objects.claim(ctx, nodes[0].Claim)
	if err != nil || first == nil {
		return nil, nil, err
	}
	name := first.Labels[karpv1.NodePoolLabelKey]
	if err := r.objects.Get(ctx, client.ObjectKey{Name: name}, &pool); err != nil {
		return nil, nil, ignoreNotFound("get NodePool "+name, err)
	}
	staying := map[string]bool{}
	err = r.objects.eachClaim(ctx, client.MatchingLabels{karpv1.NodePoolLabelKey: name}, func(claim *karpv1.NodeClaim) {
		if claim.DeletionTimestamp.IsZero() {
			staying[string(claim.UID)] = true
		}
	})
	if err != nil || pool.Spec.Replicas == nil {
		return nil, nil, err
	}
	left := len(staying) - int(*pool.Spec.Replicas)
	for _, node := range nodes {
		switch {
		case !staying[node.Claim.UID]:
		case left > 0:
			left--
			going = append(going, node)
		default:
			kept = append(kept, node.Claim.Name+": its NodePool has no nodes beyond its replicas any more")
		}
	}
	return going, kept, nil
}

// remove removes one node, or returns why it is kept.
func (r *remover) remove(ctx context.Context, gone workflows.RemovedNode, reason string) (kept string, err error) {
	claim, kept, err := r.markForRemoval(ctx, gone, reason)
	if claim == nil || err != nil {
		return kept, err
	}
	return "", r.end(ctx, claim, gone, reason)
}

// markForRemoval marks a node that is about to be removed and returns its claim. The claim is nil if it is deleted already,
// or if the node is kept.
func (r *remover) markForRemoval(ctx context.Context, gone workflows.RemovedNode, reason string) (claim *karpv1.NodeClaim, kept string, err error) {
	claim, err = r.objects.claim(ctx, gone.Claim)
	if err != nil || claim == nil || !claim.DeletionTimestamp.IsZero() {
		return nil, "", err
	}
	if kept, err = r.mark(ctx, claim, gone, reason); kept != "" || err != nil {
		return nil, kept, err
	}
	return claim, "", nil
}

// end deletes the claim of a marked node.
func (r *remover) end(ctx context.Context, claim *karpv1.NodeClaim, gone workflows.RemovedNode, reason string) error {
	if err := r.objects.Delete(ctx, claim, client.Preconditions{UID: &claim.UID}); err != nil {
		return ignoreNotFound("delete NodeClaim "+claim.Name, err)
	}
	r.counts.claimDeleted(claim, reason)
	logs.Of(ctx, r.log).Info("removed", zap.String("claim", claim.Name), zap.String("node", gone.Node), zap.String("reason", reason),
		zap.String("pool", claim.Labels[karpv1.NodePoolLabelKey]))
	return nil
}

// mark records on a Node, or on its claim if there is no Node, why it is about to be removed. A node that is to be removed
// for being empty but is not empty is kept, with its previous state restored.
func (r *remover) mark(ctx context.Context, claim *karpv1.NodeClaim, gone workflows.RemovedNode, reason string) (kept string, err error) {
	if gone.Node == "" {
		before := claim.DeepCopy()
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, karpv1.RemovalReasonAnnotationKey, reason)
		return "", ignoreNotFound("note the reason on NodeClaim "+claim.Name, r.objects.Patch(ctx, claim, client.MergeFrom(before)))
	}
	node, err := r.objects.node(ctx, gone.Node, gone.NodeUID)
	if err != nil {
		return "", err
	}
	if node == nil {
		return "the Node is gone", nil
	}
	if node, err = r.objects.change(ctx, node, "taint", func(node *corev1.Node) { markRemoved(node, reason) }); err != nil {
		return "", err
	}
	if karpv1.DisruptionReason(reason) != karpv1.DisruptionReasonEmpty {
		return "", nil
	}
	pod, err := r.needed(ctx, gone.Node)
	if err != nil || pod == "" {
		return "", err
	}
	if _, err := r.objects.change(ctx, node, "give back", giveBack); err != nil {
		return "", err
	}
	return "pod " + pod + " runs on it", nil
}

// needed returns the name of a pod that needs the node, empty if there is none.
func (r *remover) needed(ctx context.Context, node string) (string, error) {
	pods, err := r.objects.podsOn(ctx, node)
	if err != nil {
		return "", err
	}
	reduce := new(plan.Interner)
	for i := range pods {
		if pod := reduce.Pod(&pods[i]); pod.Reschedulable() {
			return pod.Key(), nil
		}
	}
	return "", nil
}

// markRemoved cordons a node that is about to be removed and records the reason.
func markRemoved(node *corev1.Node, reason string) {
	cordonClaimed(node)
	setAnnotation(node, karpv1.RemovalReasonAnnotationKey, reason)
}

// giveBack undoes markRemoved.
func giveBack(node *corev1.Node) {
	uncordonNode(node)
	delete(node.Annotations, karpv1.RemovalReasonAnnotationKey)
}
