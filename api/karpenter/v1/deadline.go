package v1

import "time"

// DrainDeadline is by when the node of a claim deleted at that moment has to be drained, zero for never. The annotation
// karpenter.sh/nodeclaim-termination-timestamp wins over the claim's terminationGracePeriod, so that people and other
// tools may shorten or lengthen it as they do with Karpenter.
func (in *NodeClaim) DrainDeadline(deleted time.Time) time.Time {
	if at, noted := in.moment(NodeClaimTerminationTimestampAnnotationKey); noted {
		return at
	}
	if in.Spec.TerminationGracePeriod == nil {
		return time.Time{}
	}
	return deleted.Add(in.Spec.TerminationGracePeriod.Duration)
}

// EndsAt is when everything on the claim's node ends, whatever protects it: the deadline of its drain once it is being
// deleted, or sooner where the cloud has announced that. It is zero where neither is so.
func (in *NodeClaim) EndsAt() time.Time {
	at, announced := in.moment(InstanceEndsAnnotationKey)
	if in.DeletionTimestamp == nil {
		return at
	}
	if deadline := in.DrainDeadline(in.DeletionTimestamp.Time); !announced || !deadline.IsZero() && deadline.Before(at) {
		return deadline
	}
	return at
}

// moment reads an annotation that holds a moment. What cannot be read is not there.
func (in *NodeClaim) moment(key string) (at time.Time, noted bool) {
	at, err := time.Parse(time.RFC3339, in.Annotations[key])
	return at, err == nil
}
