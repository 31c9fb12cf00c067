package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloud"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// PrepareLaunch implements cloud.Provider.
func (p *Provider) PrepareLaunch(ctx context.Context, given cloud.LaunchSpec) (cloud.LaunchRequest, error) {
	class, err := ec2Class(given.Class)
	if err != nil {
		return cloud.LaunchRequest{}, err
	}
	spec := launchSpec{given, class}
	if err := checkSpec(spec); err != nil {
		return cloud.LaunchRequest{}, err
	}
	resolved, err := p.catalogue.resolve(ctx, class)
	if err != nil {
		return cloud.LaunchRequest{}, err
	}
	subnets, err := p.subnets.best(ctx, resolved.subnets, func(id string) bool { return !p.catalogue.unavailable.subnet(id) })
	if err != nil {
		return cloud.LaunchRequest{}, err
	}
	market, _, err := p.catalogue.market(ctx, class)
	if err != nil {
		return cloud.LaunchRequest{}, err
	}
	choice := choose(spec, resolved, subnets, market)
	if len(choice) == 0 {
		return cloud.LaunchRequest{}, &cloud.Error{
			Kind: cloud.InsufficientCapacity, Reason: "InsufficientCapacity", Operation: "PrepareLaunch",
			Err: errors.New("none of the offerings asked for can be had at the moment"),
		}
	}
	overrides, err := p.templates.overrides(ctx, spec, choice)
	if err != nil {
		return cloud.LaunchRequest{}, err
	}
	tags := classTags(p.options.Cluster, class)
	tags[launchGroupTag] = spec.Group
	if spec.NodePool != "" {
		tags[awsv1.NodePoolTagKey] = spec.NodePool
	}
	return cloud.NewLaunchRequest(given, FleetDetails{
		Overrides:     overrides,
		Tags:          tags,
		Profile:       class.Status.InstanceProfile,
		Context:       aws.ToString(class.Spec.Context),
		Prioritized:   len(spec.Prices) > 0,
		CapacityBlock: marketOf(class, choice[0].key.ReservationID) == types.MarketTypeCapacityBlock,
		Interruptible: marketOf(class, choice[0].key.ReservationID) == types.MarketTypeInterruptibleCapacityReservation,

		PlacementGroup: resolved.group.groupID(),
		Partition:      spec.Partition,
	})
}

func checkSpec(spec launchSpec) error {
	switch {
	case spec.Count < 1:
		return invalid("PrepareLaunch", fmt.Errorf("a launch of %d instances", spec.Count))
	case !slices.Contains([]string{karpv1.CapacityTypeReserved, karpv1.CapacityTypeSpot, karpv1.CapacityTypeOnDemand}, spec.CapacityType):
		return invalid("PrepareLaunch", fmt.Errorf("capacity type %q cannot be bought", spec.CapacityType))
	case len(spec.class.Status.SecurityGroups) == 0:
		return notReady("PrepareLaunch", "SecurityGroupsNotReady", "the node class has no security groups in its status")
	case spec.class.Status.InstanceProfile == "":
		return notReady("PrepareLaunch", "InstanceProfileNotReady", "the node class has no instance profile in its status")
	}
	return nil
}
