package starter

import (
	"context"
	"time"

	smithytime "github.com/aws/smithy-go/time"
	"go.uber.org/zap"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/workflows"
)

const (
	// expireEvery is the minimum interval between looks at claims.
	expireEvery = 2 * time.Second
	// expiryPatience is how long after its expiry a claim is left to its own workflow, which has a timer for it.
	expiryPatience = time.Minute
)

// expirations ends expired claims that their own workflows do not end.
type expirations struct {
	mirror    Mirror
	workflows *signaller
	// told are the claims that were ended.
	told dedup
	log  *zap.Logger
}

// watch ends expired claims that are kept only because their NodePool wanted them replaced first, because disruption was
// paused, or because no maintenance window was open, once that is over: the workflow of such a claim waits, perhaps for ever, and gets no signal when the pool changes. In a cluster
// whose pools do not change there is nothing to do.
func (e *expirations) watch(ctx context.Context) error {
	events := e.mirror.Subscribe(cluster.PoolChanged, cluster.PausesChanged)
	defer events.Close()
	for {
		events.Take()
		wait := e.expire(ctx, time.Now())
		if err := smithytime.SleepWithContext(ctx, expireEvery); err != nil {
			return err
		}
		awaitEvents(ctx, events, wait)
	}
}

// expire ends the claims that have expired for good and returns when to look again; zero means only after a change.
func (e *expirations) expire(ctx context.Context, now time.Time) time.Duration {
	if err := e.mirror.Fresh(freshEnough); err != nil {
		return staleAgain
	}
	graceful := map[string]bool{}
	for _, pool := range e.mirror.Snapshot().NodePools {
		graceful[pool.Name] = pool.ExpiresGracefully()
	}
	var wait time.Duration
	for _, claim := range e.mirror.Claims() {
		expires, pool := expiresAt(claim), claim.Labels[karpv1.NodePoolLabelKey]
		if expires.IsZero() || now.Before(expires) || graceful[pool] || !claim.DeletionTimestamp.IsZero() || claim.Status.ProviderID == "" {
			continue
		}
		if closed(e.mirror, karpv1.PauseDisruption, karpv1.WindowExpired, pool, now) != nil {
			e.told.forget(claim.UID)
			continue
		}
		if rest := expires.Add(expiryPatience).Sub(now); rest > 0 {
			if wait == 0 || rest < wait {
				wait = rest
			}
			continue
		}
		if !e.told.markNew(claim.UID, workflows.ReasonExpired) {
			continue
		}
		if err := e.workflows.end(ctx, claim, workflows.Ending{Reason: workflows.ReasonExpired}); err != nil {
			e.told.forget(claim.UID)
			e.log.Warn("could not end an expired claim", zap.String("claim", claim.Name), zap.Error(err))
			wait = endAgain
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
