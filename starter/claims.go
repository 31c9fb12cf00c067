package starter

import (
	"context"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// claims notifies a claim's workflows of what they have to know, which depends on how far its life is.
type claims struct {
	mirror        Mirror
	launches      *launches
	interruptions *interruptions
	gone          *goneNodes
	deletions     *deletions
}

// changed looks at one claim and notifies its workflows. It returns when to look again, zero for not before the next
// change.
func (c *claims) changed(ctx context.Context, name string) (time.Duration, error) {
	claim := c.mirror.Claim(name)
	switch {
	case claim == nil:
		return 0, nil
	case claim.Status.ProviderID == "":
		return c.launches.want(ctx, claim)
	case !claim.DeletionTimestamp.IsZero():
		return c.deletions.tell(ctx, claim)
	}
	if err := c.interruptions.release(ctx, claim); err != nil {
		return 0, err
	}
	if claim.Annotations[karpv1.InterruptionAnnotationKey] != "" {
		if err := c.interruptions.noted(ctx, claim); err != nil {
			return 0, err
		}
	}
	if pool := c.mirror.NodePool(claim.Labels[karpv1.NodePoolLabelKey]); pool != nil && pool.Observed() {
		return 0, nil
	}
	return c.gone.end(ctx, claim)
}
