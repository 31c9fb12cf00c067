package activities

import (
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// lastGrace is how long the pods of a node still have when its time is up for good, after it was to be replaced and was
// not: Kubernetes' own default for the end of a pod.
const lastGrace = 30 * time.Second

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
