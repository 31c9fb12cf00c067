package lifecycle

import (
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// lastGrace is how long the pods of a node still have when its time is up for good, after it was to be replaced and was
// not: Kubernetes' own default for the end of a pod.
const lastGrace = 30 * time.Second

// Expiry is what becomes of a claim that has expired. The zero Expiry is that it goes at once, on the terms of its own.
type Expiry struct {
	// Postponed says that the node serves until it is replaced, and Again when to ask once more; zero for never.
	Postponed bool
	Again     time.Time
	// Deadline is by when its drain has to end; zero where the claim itself says.
	Deadline time.Time
}

// ExpiryOf is what becomes at a moment of a claim that has expired: it is postponed where its NodePool replaces nodes before
// they go (api/karpenter/v1, ExpirationAnnotationKey), for as long as its grace period lasts.
func ExpiryOf(claim *karpv1.NodeClaim, pool *karpv1.NodePool, now time.Time) Expiry {
	expired := claim.ExpiresAt()
	if !pool.ExpiresGracefully() || expired.IsZero() {
		return Expiry{}
	}
	if claim.Spec.TerminationGracePeriod == nil {
		return Expiry{Postponed: true}
	}
	if last := expired.Add(claim.Spec.TerminationGracePeriod.Duration); now.Before(last) {
		return Expiry{Postponed: true, Again: last}
	}
	return Expiry{Deadline: now.Add(lastGrace)}
}
