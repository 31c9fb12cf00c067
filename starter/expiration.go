package starter

import (
	"context"
	"time"

	"go.uber.org/zap"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/workflows"
)

// expiryPatience is how long after its expiry a claim is left to its own workflow, which has a timer for it.
const expiryPatience = time.Minute

// watchExpiration ends claims that have expired and serve on only because their NodePool wanted them replaced first, once
// it no longer does: the workflow of such a claim waits, maybe for ever, and is not told when the pool changes. In a
// cluster whose pools do not change there is nothing to do.
func (s *Starter) watchExpiration(ctx context.Context) error {
	events := s.Mirror.Subscribe(cluster.PoolChanged)
	defer events.Close()
	for {
		events.Take()
		wait := s.expire(ctx, time.Now())
		if err := sleep(ctx, statusEvery); err != nil {
			return err
		}
		awaitEvents(ctx, events, wait)
	}
}

// expire ends the claims that have expired for good and returns when to look again; zero means only after a change.
func (s *Starter) expire(ctx context.Context, now time.Time) time.Duration {
	if err := s.Mirror.Fresh(freshEnough); err != nil {
		return evaluateEvery
	}
	graceful := map[string]bool{}
	for _, pool := range s.Mirror.Snapshot().NodePools {
		graceful[pool.Name] = pool.ExpiresGracefully()
	}
	var wait time.Duration
	for _, claim := range s.Mirror.Claims() {
		expires := expiresAt(claim)
		if expires.IsZero() || now.Before(expires) || graceful[claim.Labels[karpv1.NodePoolLabelKey]] || !claim.DeletionTimestamp.IsZero() || claim.Status.ProviderID == "" {
			continue
		}
		if rest := expires.Add(expiryPatience).Sub(now); rest > 0 {
			if wait == 0 || rest < wait {
				wait = rest
			}
			continue
		}
		if !s.expired.first(claim.UID, workflows.ReasonExpired) {
			continue
		}
		if err := s.end(ctx, claim, workflows.Ending{Reason: workflows.ReasonExpired}); err != nil {
			s.expired.drop(claim.UID)
			s.Log.Warn("could not end an expired claim", zap.String("claim", claim.Name), zap.Error(err))
			wait = statusRetry
		}
	}
	return wait
}

// expiresAt is when a claim expires, zero for never.
func expiresAt(claim *karpv1.NodeClaim) time.Time {
	if claim.Spec.ExpireAfter.IsNever() {
		return time.Time{}
	}
	return claim.CreationTimestamp.Add(*claim.Spec.ExpireAfter.Duration)
}
