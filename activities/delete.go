package activities

import (
	"context"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// deleter deletes claims whose time has come.
type deleter struct {
	objects objects
	log     *zap.Logger
}

// DeleteClaim deletes a NodeClaim and returns by when its node has to be drained. A claim that is being deleted, or is
// gone, is left as it is, and so is one that has expired and whose NodePool wants it replaced first.
func (d *deleter) DeleteClaim(ctx context.Context, in workflows.DeleteClaimInput) (workflows.Ending, error) {
	ctx, done := attend(ctx)
	defer done()
	claim, err := d.objects.claim(ctx, workflows.ClaimRef{Name: in.Claim, UID: in.UID})
	if err != nil {
		return workflows.Ending{}, err
	}
	if claim == nil {
		return workflows.Ending{Reason: in.Reason, Deleting: true}, nil
	}
	if claim.DeletionTimestamp.IsZero() {
		if in.Expires {
			postponed, err := d.expires(ctx, claim)
			if err != nil || postponed.Postponed {
				return postponed, err
			}
			in.Deadline = postponed.Deadline
		}
		if err := d.hurry(ctx, claim, in.Deadline); err != nil {
			return workflows.Ending{}, err
		}
		if in.Reason == workflows.ReasonManualDrain {
			// The claim's own workflow is not the one that deletes it here, and has to learn why.
			before := claim.DeepCopy()
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, ReasonAnnotation, in.Reason)
			if err := d.objects.Patch(ctx, claim, client.MergeFrom(before)); err != nil {
				return workflows.Ending{}, ignoreNotFound("note the reason on NodeClaim "+claim.Name, err)
			}
		}
		if err := d.objects.Delete(ctx, claim, client.Preconditions{UID: &claim.UID}); err != nil {
			return workflows.Ending{}, ignoreNotFound("delete NodeClaim "+claim.Name, err)
		}
		d.log.Info("deleted claim", zap.String("claim", claim.Name), zap.String("reason", in.Reason))
		return workflows.Ending{Reason: in.Reason, Deadline: claim.DrainDeadline(time.Now()), Deleting: true}, nil
	}
	return workflows.Ending{Reason: in.Reason, Deadline: claim.DrainDeadline(claim.DeletionTimestamp.Time), Deleting: true}, nil
}

// hurry writes onto a claim that is about to be deleted by when its node has to be drained, where that is sooner than
// the claim itself says. People find it where Karpenter puts it, and NodeClaim.DrainDeadline reads it.
func (d *deleter) hurry(ctx context.Context, claim *karpv1.NodeClaim, deadline time.Time) error {
	own := claim.DrainDeadline(time.Now())
	if deadline.IsZero() || !own.IsZero() && !deadline.Before(own) {
		return nil
	}
	before := claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, karpv1.NodeClaimTerminationTimestampAnnotationKey, deadline.UTC().Format(time.RFC3339))
	return ignoreNotFound("write the drain's deadline onto NodeClaim "+claim.Name, d.objects.Patch(ctx, claim, client.MergeFrom(before)))
}
