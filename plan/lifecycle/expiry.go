package lifecycle

import (
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// lastGrace is how long the pods of a node have left when its time is finally up, after it was to be replaced and was not.
// It is Kubernetes' default grace period of a pod.
const lastGrace = 30 * time.Second

// Expiry says what happens to an expired claim. The zero Expiry means that it is deleted at once, on its own terms.
type Expiry struct {
	// Postponed says that the node serves until it is replaced. Again is when to decide anew; zero for never.
	Postponed bool
	Again     time.Time
	// Deadline is when its drain has to end; zero if the claim itself says.
	Deadline time.Time
}

// ExpiryOf decides what happens now to an expired claim. It is postponed, for as long as its grace period lasts, if its
// NodePool replaces nodes before it removes them (api/karpenter/v1, ExpirationAnnotationKey), and until the planner replaces
// it if that needs approval.
func ExpiryOf(claim *karpv1.NodeClaim, pool *karpv1.NodePool, now time.Time) Expiry {
	expired := claim.ExpiresAt()
	if !pool.ExpiresGracefully() || expired.IsZero() {
		return Expiry{}
	}
	if claim.Spec.TerminationGracePeriod == nil || pool.ExpiryNeedsApproval() {
		return Expiry{Postponed: true}
	}
	if last := expired.Add(claim.Spec.TerminationGracePeriod.Duration); now.Before(last) {
		return Expiry{Postponed: true, Again: last}
	}
	return Expiry{Deadline: now.Add(lastGrace)}
}
