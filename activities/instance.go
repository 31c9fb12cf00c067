package activities

import (
	"context"
	"time"

	"go.uber.org/zap"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/internal/logs"
	"github.com/tenon-sh/tenon/workflows"
)

const (
	// consistencyLag is how long after a launch EC2 may still not know an instance. An unknown instance that is younger
	// does not count as gone.
	consistencyLag = 2 * time.Minute
	// goneEvery is the interval at which the cloud is asked whether an instance is gone.
	goneEvery = 2 * time.Second
)

// instances determines which instance belongs to a claim.
type instances struct {
	objects objects
	cloud   cloud.Provider
	log     *zap.Logger
}

// ownInstance returns the instance of a claim whose life began with the given one. They differ if another controller held
// the Lease during our launch and launched the claim as well. Then the instance that the claim names counts, and the other
// one is terminated, unless another claim has it.
func (i instances) ownInstance(ctx context.Context, claim *karpv1.NodeClaim, began workflows.Instance) (workflows.Instance, error) {
	if claim == nil || claim.Status.ProviderID == "" || began.ID == "" || cloud.InstanceID(claim.Status.ProviderID) == began.ID {
		return began, nil
	}
	claimed := false
	err := i.objects.eachClaim(ctx, nil, func(other *karpv1.NodeClaim) {
		claimed = claimed || cloud.InstanceID(other.Status.ProviderID) == began.ID
	})
	if err != nil {
		return began, err
	}
	own := workflows.ClaimInstance(i.cloud.Kind().Labels, claim)
	logs.Of(ctx, i.log).Warn("another controller has launched the claim as well", zap.String("claim", claim.Name), zap.String("instance", own.ID), zap.String("ours", began.ID))
	if claimed {
		return own, nil
	}
	return own, cloudFailure("terminate "+began.ID, i.cloud.Terminate(ctx, []string{began.ID}))
}

func reduceInstance(i cloud.Instance) workflows.Instance {
	return workflows.Instance{ID: i.ID, ProviderID: i.ProviderID, InstanceType: i.InstanceType, Zone: i.Zone, ZoneID: i.ZoneID,
		CapacityType: i.CapacityType, Reservation: i.Reservation, Image: i.Image, Profile: i.Profile, Price: i.Price,
		PlacementGroup: i.PlacementGroup, Partition: i.Partition}
}
