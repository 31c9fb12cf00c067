package v1

import "time"

// ExpiresAt is when the claim expires; zero for never.
func (in *NodeClaim) ExpiresAt() time.Time {
	if in.Spec.ExpireAfter.IsNever() {
		return time.Time{}
	}
	return in.CreationTimestamp.Add(*in.Spec.ExpireAfter.Duration)
}

// ExpiresGracefully says that nodes of the pool that have expired are to be replaced first and within its budgets, and
// are not ended at once. That is also so where their expiry needs approval. A pool that is being deleted replaces nothing.
func (in *NodePool) ExpiresGracefully() bool {
	return (in.Annotations[ExpirationAnnotationKey] == ExpirationGraceful || in.ExpiryNeedsApproval()) && in.DeletionTimestamp.IsZero()
}

// ExpiryNeedsApproval says whether a person has to approve before an expired node of the pool goes. It is never ended by
// force then.
func (in *NodePool) ExpiryNeedsApproval() bool { return in.NeedsApproval(approvalExpired) }
