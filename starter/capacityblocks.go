package starter

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// blockNotice is how long before EC2 begins to terminate the instances of a capacity block they are drained. EC2 announces
// the end of a block at the same time (EC2 User Guide, "Monitor Capacity Blocks using EventBridge").
const blockNotice = 10 * time.Minute

// endingBlocks ends the claims whose instances run in capacity blocks that are about to end.
func (n *notices) endingBlocks(ctx context.Context) {
	claims := map[string][]*karpv1.NodeClaim{}
	for _, claim := range n.mirror.Claims() {
		if id := n.offerings.of(claim).ReservationID; id != "" && claim.Status.ProviderID != "" {
			claims[id] = append(claims[id], claim)
		}
	}
	if len(claims) == 0 {
		return
	}
	ending, err := n.cloud.EndingBlocks(ctx, slices.Sorted(maps.Keys(claims)))
	if err != nil {
		n.log.Warn("could not read when capacity blocks end", zap.Error(err))
		return
	}
	for id, emptied := range ending {
		for _, claim := range claims[id] {
			if n.interruptions.told.isNew(claim.UID, string(cloud.CapacityBlockEnding)) {
				n.interrupted(ctx, cloud.CapacityBlockEnding, cloud.InstanceID(claim.Status.ProviderID), emptied.Add(-blockNotice))
			}
		}
	}
}
