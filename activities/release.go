package activities

import (
	"context"
	"errors"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/logs"
	"github.com/tenon-sh/tenon/workflows"
)

// ReleaseClaims deletes claims that got no instance and removes their finalizer, because no workflow will. A claim that
// cannot be released does not stop the others, and is retried.
func (l *launcher) ReleaseClaims(ctx context.Context, in workflows.ReleaseClaimsInput) (struct{}, error) {
	ctx, done := heartbeat(ctx)
	defer done()
	var failed []error
	for _, ref := range in.Claims {
		failed = append(failed, l.release(ctx, ref, in))
	}
	logs.Of(ctx, l.log).Info("released claims", zap.Int("claims", len(in.Claims)), zap.String("reason", in.Reason), zap.String("message", in.Message))
	return struct{}{}, errors.Join(failed...)
}

// release deletes one claim that got no instance and removes its finalizer.
func (l *launcher) release(ctx context.Context, ref workflows.ClaimRef, in workflows.ReleaseClaimsInput) error {
	claim, err := l.objects.claim(ctx, ref)
	if err != nil || claim == nil {
		return err
	}
	if claim.DeletionTimestamp.IsZero() {
		if err := l.objects.Delete(ctx, claim, client.Preconditions{UID: &claim.UID}); err != nil {
			return ignoreNotFound("delete NodeClaim "+claim.Name, err)
		}
	}
	l.tellReleased(claim, in)
	return l.objects.releaseClaim(ctx, claim)
}

// tellReleased emits an Event that says why a claim is gone, which matters most if a person created the claim.
func (l *launcher) tellReleased(claim *karpv1.NodeClaim, in workflows.ReleaseClaimsInput) {
	reason := in.Reason
	if reason == workflows.ReasonInsufficient {
		reason = eventInsufficientCapacity
	}
	why := in.Message
	if why == "" {
		why = "EC2 refused capacity for every offering the claim allows"
	}
	l.events.tell(claimReference(claim), corev1.EventTypeWarning, reason, why)
}
