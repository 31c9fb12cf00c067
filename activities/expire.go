package activities

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// lastGrace is how long the pods of a node still have when its time is up for good, after it was to be replaced and was
// not: Kubernetes' own default for the end of a pod.
const lastGrace = 30 * time.Second

// expires asks the API server how the NodePool of a claim that has expired wants its nodes to go. A claim without a pool,
// or of one that is going itself, goes at once; so does one whose pool says nothing. Where the pool wants its nodes
// replaced first, the claim is postponed, and goes by force when its terminationGracePeriod has passed as well: no node
// becomes older than expireAfter and that together, as no node does where expiry is a matter of force from the start.
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
	postponed := postponedExpiry(claim, &pool, time.Now())
	if postponed.Postponed {
		d.log.Info("expired, and is to be replaced first", zap.String("claim", claim.Name), zap.String("pool", name), zap.Time("byForceAt", postponed.Again))
	}
	return postponed, nil
}

// postponedExpiry is what becomes at a moment of a claim that has expired: it is postponed, or goes, and then by the
// deadline where there is one.
func postponedExpiry(claim *karpv1.NodeClaim, pool *karpv1.NodePool, now time.Time) workflows.Ending {
	expired := expireAt(claim)
	if !pool.ExpiresGracefully() || expired.IsZero() {
		return workflows.Ending{}
	}
	if claim.Spec.TerminationGracePeriod == nil {
		return workflows.Ending{Postponed: true}
	}
	if last := expired.Add(claim.Spec.TerminationGracePeriod.Duration); now.Before(last) {
		return workflows.Ending{Postponed: true, Again: last}
	}
	return workflows.Ending{Deadline: now.Add(lastGrace)}
}

// expireAt is when the claim expires, zero for never.
func expireAt(claim *karpv1.NodeClaim) time.Time {
	if claim.Spec.ExpireAfter.IsNever() {
		return time.Time{}
	}
	return claim.CreationTimestamp.Add(*claim.Spec.ExpireAfter.Duration)
}
