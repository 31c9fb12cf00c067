package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/logs"
	"github.com/tenon-sh/tenon/workflows"
)

// reasonUndone is why a claim is deleted whose replacement was taken back before the claim's node served.
const reasonUndone = "ReplacementUndone"

// undoer takes back replacements, and removes marks that nobody acts on.
type undoer struct {
	cluster    workflows.Cluster
	objects    objects
	executions executions
	keeper     *keeper
	events     recorder
	log        *zap.Logger
	counts     *Metrics
}

// UndoReplacement takes a replacement back: it returns the old nodes that are still there to service, and deletes what was
// launched for them and does not serve yet. Nodes that serve already stay until they are not needed, like any other node.
// If none of the old nodes can go on serving, everything stays whose launch has begun: somebody has removed them all, and
// their pods need a place. Whatever cannot be taken back does not stop the rest, and is retried.
func (u *undoer) UndoReplacement(ctx context.Context, in workflows.UndoInput) (workflows.Undone, error) {
	ctx, done := heartbeat(ctx)
	defer done()
	var undone workflows.Undone
	var failed []error
	for _, gone := range in.Nodes {
		serves, err := u.unmarkReplaced(ctx, in, gone)
		failed = append(failed, err)
		if serves {
			undone.Nodes = append(undone.Nodes, gone.Node)
		}
	}
	// A node that could not be read may go on serving as well.
	left := len(undone.Nodes) > 0 || errors.Join(failed...) != nil
	for i, pool := range in.Pools {
		claim, err := u.claimOfReplacement(ctx, in.ID, pool, i)
		if err == nil && claim != nil {
			err = u.undoLaunch(ctx, in, claim, left, &undone)
		}
		failed = append(failed, err)
	}
	if err := errors.Join(failed...); err != nil {
		return undone, err
	}
	u.counts.replacementUndone(len(in.Pools))
	logs.Of(ctx, u.log).Warn("replacement taken back", zap.String("replacement", in.ID), zap.String("why", in.Why), zap.Strings("nodes", undone.Nodes),
		zap.Strings("deleted", undone.Claims), zap.Strings("kept", undone.Kept))
	return undone, nil
}

// undoLaunch keeps or deletes what was launched for a replacement, and says which.
func (u *undoer) undoLaunch(ctx context.Context, in workflows.UndoInput, claim *karpv1.NodeClaim, nodesLeft bool, undone *workflows.Undone) error {
	kept, err := u.keepsReplacement(ctx, claim, nodesLeft)
	if err != nil {
		return err
	}
	if kept {
		undone.Kept = append(undone.Kept, claim.Name)
		return u.keeper.openReplacements(ctx, []workflows.ClaimRef{{Name: claim.Name, UID: string(claim.UID)}})
	}
	if err := u.dropReplacement(ctx, claim, in.Why); err != nil {
		return err
	}
	undone.Claims = append(undone.Claims, claim.Name)
	return nil
}

// keepsReplacement reports whether to keep what was launched for a replacement that is taken back.
func (u *undoer) keepsReplacement(ctx context.Context, claim *karpv1.NodeClaim, nodesLeft bool) (bool, error) {
	switch {
	case !claim.DeletionTimestamp.IsZero():
		return false, nil
	case claim.IsTrue(karpv1.ConditionTypeInitialized):
		return true, nil
	case nodesLeft:
		return false, nil
	case claim.Status.ProviderID != "":
		return true, nil
	}
	return u.executions.known(ctx, u.cluster.LaunchID(claim.LaunchGroup()))
}

// unmarkReplaced removes the marks of a replacement from a node, unless the node is being removed by now, and reports
// whether the node goes on serving. The mark on the Node is removed last; see markReplaced.
func (u *undoer) unmarkReplaced(ctx context.Context, in workflows.UndoInput, gone workflows.RemovedNode) (serves bool, err error) {
	claim, err := u.objects.claim(ctx, gone.Claim)
	if err != nil {
		return false, err
	}
	node, err := u.objects.node(ctx, gone.Node, gone.NodeUID)
	if err != nil || claim == nil || node == nil || !claim.DeletionTimestamp.IsZero() || !node.DeletionTimestamp.IsZero() {
		return false, err
	}
	if node.Annotations[karpv1.ReplacementAnnotationKey] != in.ID {
		// It was never marked, or is marked by somebody else.
		return !disrupted(node), nil
	}
	// Emit the Event first: after the last write the next attempt cannot tell that it is missing.
	u.events.tellBoth(node, claim, corev1.EventTypeWarning, eventDisruptionAborted, fmt.Sprintf("It is not replaced (replacement %s): %.*s", in.ID, maxWhy, in.Why))
	if err := u.serveOn(ctx, claim, node); err != nil {
		return false, err
	}
	return true, nil
}

// serveOn removes all marks of removal from a node and its claim.
func (u *undoer) serveOn(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node) error {
	if err := u.objects.changeStatus(ctx, claim, func(claim *karpv1.NodeClaim) {
		claim.Status.Conditions = slices.DeleteFunc(claim.Status.Conditions, func(c metav1.Condition) bool { return c.Type == karpv1.ConditionTypeDisruptionReason })
	}); err != nil {
		return err
	}
	_, err := u.objects.change(ctx, node, "unmark", func(node *corev1.Node) {
		giveBack(node)
		delete(node.Annotations, karpv1.ReplacementAnnotationKey)
	})
	return err
}

// dropReplacement deletes a claim that was made for a replacement. If no launch has begun, it also removes the finalizer,
// because nobody else would.
func (u *undoer) dropReplacement(ctx context.Context, claim *karpv1.NodeClaim, why string) error {
	if claim.DeletionTimestamp.IsZero() {
		if claim.Annotations[karpv1.RemovalReasonAnnotationKey] == "" {
			before := claim.DeepCopy()
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, karpv1.RemovalReasonAnnotationKey, reasonUndone)
			if err := u.objects.Patch(ctx, claim, client.MergeFrom(before)); err != nil {
				return ignoreNotFound("note the reason on NodeClaim "+claim.Name, err)
			}
		}
		u.events.tellBoth(nil, claim, corev1.EventTypeWarning, eventDisruptionAborted, fmt.Sprintf("The replacement it was launched for was undone: %.*s", maxWhy, why))
		if err := u.objects.Delete(ctx, claim, client.Preconditions{UID: &claim.UID}); err != nil {
			return ignoreNotFound("delete NodeClaim "+claim.Name, err)
		}
	}
	if claim.Status.ProviderID != "" {
		return nil
	}
	launched, err := u.executions.known(ctx, u.cluster.LaunchID(claim.LaunchGroup()))
	if err != nil || launched {
		return err
	}
	return u.objects.releaseClaim(ctx, claim)
}

// claimOfReplacement reads the claim with the given number of a replacement; nil if there is none.
func (u *undoer) claimOfReplacement(ctx context.Context, id, pool string, number int) (*karpv1.NodeClaim, error) {
	for try := range nameTries + 1 {
		claim, err := u.objects.claim(ctx, workflows.ClaimRef{Name: replacementName(id, pool, number, try)})
		if err != nil || claim == nil || claim.Annotations[karpv1.ReplacementAnnotationKey] == id {
			return claim, err
		}
	}
	return nil, nil
}
