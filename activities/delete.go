package activities

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/logs"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// deleter deletes NodeClaims.
type deleter struct {
	objects objects
	stops   stops
	counts  *Metrics
	log     *zap.Logger
}

// DeleteClaim deletes a NodeClaim and returns by when its node has to be drained. It leaves alone a claim that is being
// deleted or is gone, an expired claim whose NodePool wants it replaced first, and one for whose reason a person has paused
// the removal of nodes, or no maintenance window is open.
func (d *deleter) DeleteClaim(ctx context.Context, in workflows.DeleteClaimInput) (workflows.Ending, error) {
	ctx, done := heartbeat(ctx)
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
		if stopped, err := d.stopped(ctx, claim, in); err != nil || stopped.Postponed {
			return stopped, err
		}
		if err := d.hurry(ctx, claim, in.Deadline); err != nil {
			return workflows.Ending{}, err
		}
		if in.Reason == workflows.ReasonManualDrain {
			// The claim's own workflow is not the one that deletes it here, and has to learn why.
			before := claim.DeepCopy()
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, karpv1.RemovalReasonAnnotationKey, in.Reason)
			if err := d.objects.Patch(ctx, claim, client.MergeFrom(before)); err != nil {
				return workflows.Ending{}, ignoreNotFound("note the reason on NodeClaim "+claim.Name, err)
			}
		}
		if err := d.objects.Delete(ctx, claim, client.Preconditions{UID: &claim.UID}); err != nil {
			return workflows.Ending{}, ignoreNotFound("delete NodeClaim "+claim.Name, err)
		}
		d.counts.claimDeleted(claim, in.Reason)
		logs.Of(ctx, d.log).Info("deleted claim", zap.String("claim", claim.Name), zap.String("reason", in.Reason))
		return workflows.Ending{Reason: in.Reason, Deadline: claim.DrainDeadline(time.Now()), Deleting: true}, nil
	}
	return workflows.Ending{Reason: in.Reason, Deadline: claim.DrainDeadline(claim.DeletionTimestamp.Time), Deleting: true}, nil
}

// askAgainStopped is when the life of a node asks again that must not end for now, if the pause has no end of its own. A
// claim that has expired waits for the starter, which looks when a pause ends, unless its pool has it replaced first: for
// such a one nobody looks.
const askAgainStopped = 10 * time.Minute

// stopped postpones the end of a claim if a person has paused what ends it, or no maintenance window is open for that.
func (d *deleter) stopped(ctx context.Context, claim *karpv1.NodeClaim, in workflows.DeleteClaimInput) (workflows.Ending, error) {
	scope := scopeOf(in.Reason)
	if scope == "" || !in.Expires && !in.Pausable {
		return workflows.Ending{}, nil
	}
	name := claim.Labels[karpv1.NodePoolLabelKey]
	stopped, err := d.stops.ofRemovals(ctx, scope, in.Reason, name)
	if err != nil {
		return workflows.Ending{}, err
	}
	stop := stopped[name]
	if stop == nil {
		return d.unapproved(ctx, claim, in)
	}
	again := stop.Until
	if again.IsZero() && (!in.Expires || !in.Deadline.IsZero()) {
		again = time.Now().Add(askAgainStopped)
	}
	logs.Of(ctx, d.log).Info("a claim does not end for now", zap.String("claim", claim.Name), zap.String("reason", in.Reason), zap.Stringer("why", stop))
	return workflows.Ending{Postponed: true, Again: again, Why: stop.String()}, nil
}

// unapproved postpones the end of an expired claim that the starter wants ended by force, if its NodePool wants approval for that
// by now. Whoever approves has it replaced, so its life only asks again.
func (d *deleter) unapproved(ctx context.Context, claim *karpv1.NodeClaim, in workflows.DeleteClaimInput) (workflows.Ending, error) {
	if in.Reason != workflows.ReasonExpired || in.Expires {
		return workflows.Ending{}, nil
	}
	why, err := d.stops.unapproved(ctx, in.Reason, workflows.RemovedNode{NodePool: claim.Labels[karpv1.NodePoolLabelKey], Claim: workflows.ClaimRef{Name: claim.Name, UID: string(claim.UID)}})
	if err != nil || why == "" {
		return workflows.Ending{}, err
	}
	return workflows.Ending{Postponed: true, Again: time.Now().Add(askAgainStopped), Why: why}, nil
}

// hurry writes the drain deadline onto a claim that is about to be deleted, if it is sooner than the claim's own. It uses
// Karpenter's annotation, where people look for it and where NodeClaim.DrainDeadline reads it.
func (d *deleter) hurry(ctx context.Context, claim *karpv1.NodeClaim, deadline time.Time) error {
	own := claim.DrainDeadline(time.Now())
	if deadline.IsZero() || !own.IsZero() && !deadline.Before(own) {
		return nil
	}
	before := claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, karpv1.NodeClaimTerminationTimestampAnnotationKey, deadline.UTC().Format(time.RFC3339))
	return ignoreNotFound("write the drain's deadline onto NodeClaim "+claim.Name, d.objects.Patch(ctx, claim, client.MergeFrom(before)))
}

// expires decides, by the claim's NodePool in the API server, how an expired claim is removed. A claim is removed at once
// if it has no pool, or its pool is gone, is being deleted or specifies nothing. Where the pool wants its nodes replaced
// first, the claim is postponed, and removed by force once its terminationGracePeriod has passed as well. So no node
// becomes older than expireAfter plus terminationGracePeriod, the same limit as with expiry by force from the start.
func (d *deleter) expires(ctx context.Context, claim *karpv1.NodeClaim) (workflows.Ending, error) {
	name := claim.Labels[karpv1.NodePoolLabelKey]
	if name == "" {
		return workflows.Ending{}, nil
	}
	var pool karpv1.NodePool
	switch err := d.objects.Get(ctx, client.ObjectKey{Name: name}, &pool); {
	case apierrors.IsNotFound(err):
		return workflows.Ending{}, nil
	case err != nil:
		return workflows.Ending{}, fmt.Errorf("read NodePool %s: %w", name, err)
	}
	expiry := plan.ExpiryOf(claim, &pool, time.Now())
	if expiry.Postponed {
		logs.Of(ctx, d.log).Info("expired, and is to be replaced first", zap.String("claim", claim.Name), zap.String("pool", name), zap.Time("byForceAt", expiry.Again))
	}
	return workflows.Ending{Postponed: expiry.Postponed, Again: expiry.Again, Deadline: expiry.Deadline}, nil
}
