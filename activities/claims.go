package activities

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// DeleteClaim deletes a NodeClaim and returns by when its node has to be drained. A claim that is being deleted, or is
// gone, is left as it is, and so is one that has expired and whose NodePool wants it replaced first.
func (a *Activities) DeleteClaim(ctx context.Context, in workflows.DeleteClaimInput) (workflows.Ending, error) {
	ctx, done := attend(ctx)
	defer done()
	claim, err := a.objects.claim(ctx, workflows.ClaimRef{Name: in.Claim, UID: in.UID})
	if err != nil {
		return workflows.Ending{}, err
	}
	if claim == nil {
		return workflows.Ending{Reason: in.Reason, Deleting: true}, nil
	}
	if claim.DeletionTimestamp.IsZero() {
		if in.Expires {
			postponed, err := a.expires(ctx, claim)
			if err != nil || postponed.Postponed {
				return postponed, err
			}
			in.Deadline = postponed.Deadline
		}
		if err := a.hurry(ctx, claim, in.Deadline); err != nil {
			return workflows.Ending{}, err
		}
		if in.Reason == workflows.ReasonManualDrain {
			// The claim's own workflow is not the one that deletes it here, and has to learn why.
			before := claim.DeepCopy()
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, ReasonAnnotation, in.Reason)
			if err := a.objects.Patch(ctx, claim, client.MergeFrom(before)); err != nil {
				return workflows.Ending{}, ignoreNotFound("note the reason on NodeClaim "+claim.Name, err)
			}
		}
		if err := a.objects.Delete(ctx, claim, client.Preconditions{UID: &claim.UID}); err != nil {
			return workflows.Ending{}, ignoreNotFound("delete NodeClaim "+claim.Name, err)
		}
		a.Log.Info("deleted claim", zap.String("claim", claim.Name), zap.String("reason", in.Reason))
		return workflows.Ending{Reason: in.Reason, Deadline: claim.DrainDeadline(time.Now()), Deleting: true}, nil
	}
	return workflows.Ending{Reason: in.Reason, Deadline: claim.DrainDeadline(claim.DeletionTimestamp.Time), Deleting: true}, nil
}

// hurry writes onto a claim that is about to be deleted by when its node has to be drained, where that is sooner than
// the claim itself says. People find it where Karpenter puts it, and NodeClaim.DrainDeadline reads it.
func (a *Activities) hurry(ctx context.Context, claim *karpv1.NodeClaim, deadline time.Time) error {
	own := claim.DrainDeadline(time.Now())
	if deadline.IsZero() || !own.IsZero() && !deadline.Before(own) {
		return nil
	}
	before := claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, karpv1.NodeClaimTerminationTimestampAnnotationKey, deadline.UTC().Format(time.RFC3339))
	return ignoreNotFound("write the drain's deadline onto NodeClaim "+claim.Name, a.objects.Patch(ctx, claim, client.MergeFrom(before)))
}

// ReleaseClaims deletes claims that got no instance and lets them go at once: no workflow will. One that cannot be let go
// keeps no other, and is tried again.
func (a *Activities) ReleaseClaims(ctx context.Context, in workflows.ReleaseClaimsInput) (struct{}, error) {
	ctx, done := attend(ctx)
	defer done()
	var failed []error
	for _, ref := range in.Claims {
		failed = append(failed, a.release(ctx, ref, in))
	}
	a.Log.Info("released claims", zap.Int("claims", len(in.Claims)), zap.String("reason", in.Reason), zap.String("message", in.Message))
	return struct{}{}, errors.Join(failed...)
}

// release deletes one claim that got no instance and lets it go.
func (a *Activities) release(ctx context.Context, ref workflows.ClaimRef, in workflows.ReleaseClaimsInput) error {
	claim, err := a.objects.claim(ctx, ref)
	if err != nil || claim == nil {
		return err
	}
	if claim.DeletionTimestamp.IsZero() {
		if err := a.objects.Delete(ctx, claim, client.Preconditions{UID: &claim.UID}); err != nil {
			return ignoreNotFound("delete NodeClaim "+claim.Name, err)
		}
	}
	a.tellReleased(claim, in)
	return a.objects.releaseClaim(ctx, claim)
}

// tellReleased tells people with kubectl why a claim is gone, which matters most for one they made themselves.
func (a *Activities) tellReleased(claim *karpv1.NodeClaim, in workflows.ReleaseClaimsInput) {
	reason := in.Reason
	if reason == workflows.ReasonInsufficient {
		reason = "InsufficientCapacityError"
	}
	why := in.Message
	if why == "" {
		why = "EC2 refused capacity for every offering the claim allows"
	}
	a.events.tell(claimReference(claim), corev1.EventTypeWarning, reason, why)
}
