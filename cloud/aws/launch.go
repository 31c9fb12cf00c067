package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"go.uber.org/zap"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/internal/logs"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// podAddresses is how many addresses a new instance is expected to take from its subnet at first: its own, and those of
// one warm interface of the smallest types.
const podAddresses = 10

// Launch implements cloud.Provider.
func (p *Provider) Launch(ctx context.Context, given cloud.LaunchRequest) (cloud.LaunchResult, error) {
	details, err := ReadDetails(given)
	if err != nil {
		return cloud.LaunchResult{}, invalid("CreateFleet", err)
	}
	request := fleetRequest{given, details}
	if request.Token == "" {
		return cloud.LaunchResult{}, invalid("CreateFleet", errors.New("the request has no token"))
	}
	if len(request.Overrides) == 0 {
		return cloud.LaunchResult{}, invalid("CreateFleet", errors.New("the request has no overrides"))
	}
	reply, err := p.ec2.CreateFleet(ctx, fleet(request), sendOnce)
	if err != nil {
		err = answered(classify("CreateFleet", err))
		p.learn(request, err)
		return cloud.LaunchResult{}, err
	}
	result := cloud.LaunchResult{Instances: p.launchedInstances(request, reply.Instances)}
	if len(result.Instances) == 0 && len(reply.Errors) == 0 {
		return result, &cloud.Error{
			Kind: cloud.Transient, Reason: "LaunchFailed", Operation: "CreateFleet", Answered: true, Unsure: true,
			Err: fmt.Errorf("fleet %s has neither instances nor errors", aws.ToString(reply.FleetId)),
		}
	}
	failure := p.refusals(request, reply.Errors, &result)
	if len(result.Instances) == 0 {
		p.learn(request, failure)
		return result, failure
	}
	if len(result.Instances) < request.Count && cloud.KindOf(failure) != cloud.InsufficientCapacity {
		logs.Of(ctx, p.log).Warn("part of a launch failed", zap.String("launchGroup", request.Group), zap.Error(failure))
	}
	return result, nil
}

// sendOnce stops the SDK from sending a launch again by itself. A token that was answered must not be used again, and a
// caller that sends it again after a lost reply has to know that it is not the first time.
func sendOnce(o *ec2.Options) { o.Retryer = aws.NopRetryer{} }

// answered sets Answered on an error that EC2 returned for CreateFleet. It also sets Unsure on a server error (5xx)
// other than throttling, because that leaves open what was launched (developer guide, "Ensuring idempotency in Amazon
// EC2 API requests").
func answered(err error) error {
	var api smithy.APIError
	var classified *cloud.Error
	if !errors.As(err, &classified) || !errors.As(err, &api) {
		return err
	}
	var response *smithyhttp.ResponseError
	broken := errors.As(err, &response) && response.HTTPStatusCode() >= http.StatusInternalServerError
	out := *classified
	out.Answered, out.Unsure = true, broken && out.Kind != cloud.Throttled
	return &out
}

// learn updates the caches after a launch that returned no instances.
func (p *Provider) learn(request fleetRequest, err error) {
	switch {
	case cloud.KindOf(err) == cloud.StaleRequest:
		p.templates.forget(request)
	case cloud.ReasonOf(err) == spotRoleFailed:
		p.catalogue.unavailable.markCapacityType(karpv1.CapacityTypeSpot)
	}
}

// fleet renders the request. It depends on nothing else, so a repetition is identical byte for byte.
func fleet(request fleetRequest) *ec2.CreateFleetInput {
	tags := tagList(request.Tags)
	input := &ec2.CreateFleetInput{
		Type:                  types.FleetTypeInstant,
		ClientToken:           aws.String(request.Token),
		LaunchTemplateConfigs: fleetConfigs(request.Overrides),
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{
			TotalTargetCapacity:       aws.Int32(int32(request.Count)),
			DefaultTargetCapacityType: targetType(request),
		},
	}
	// The launch template tags network interfaces and spot requests, as with Karpenter.
	for _, resource := range []types.ResourceType{types.ResourceTypeInstance, types.ResourceTypeVolume, types.ResourceTypeFleet} {
		input.TagSpecifications = append(input.TagSpecifications, types.TagSpecification{ResourceType: resource, Tags: tags})
	}
	if request.Context != "" {
		input.Context = aws.String(request.Context)
	}
	spot, onDemand := types.SpotAllocationStrategyPriceCapacityOptimized, types.FleetOnDemandAllocationStrategyLowestPrice
	if request.Prioritized {
		spot, onDemand = types.SpotAllocationStrategyCapacityOptimizedPrioritized, types.FleetOnDemandAllocationStrategyPrioritized
		prioritize(input.LaunchTemplateConfigs, request.Overrides)
	}
	switch {
	case request.CapacityType == karpv1.CapacityTypeSpot:
		input.SpotOptions = &types.SpotOptionsRequest{AllocationStrategy: spot}
	case request.Interruptible:
		input.ReservedCapacityOptions = &types.ReservedCapacityOptionsRequest{
			ReservationTypes: []types.FleetReservationType{types.FleetReservationTypeInterruptibleCapacityReservation},
		}
	case !request.CapacityBlock:
		input.OnDemandOptions = &types.OnDemandOptionsRequest{AllocationStrategy: onDemand}
	}
	return input
}

// targetType returns what EC2 calls the capacity type. Reserved capacity is on-demand capacity bought in advance; only
// capacity blocks and interruptible reservations have markets of their own.
func targetType(request fleetRequest) types.DefaultTargetCapacityType {
	switch {
	case request.CapacityBlock:
		return types.DefaultTargetCapacityTypeCapacityBlock
	case request.Interruptible:
		return types.DefaultTargetCapacityTypeReservedCapacity
	case request.CapacityType == karpv1.CapacityTypeReserved:
		return types.DefaultTargetCapacityTypeOnDemand
	}
	return types.DefaultTargetCapacityType(request.CapacityType)
}

// fleetConfigs groups the overrides by launch template, in their order.
func fleetConfigs(overrides []Override) []types.FleetLaunchTemplateConfigRequest {
	var configs []types.FleetLaunchTemplateConfigRequest
	index := make(map[string]int)
	for _, override := range overrides {
		i, ok := index[override.LaunchTemplate]
		if !ok {
			i = len(configs)
			index[override.LaunchTemplate] = i
			configs = append(configs, types.FleetLaunchTemplateConfigRequest{
				LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{
					LaunchTemplateName: aws.String(override.LaunchTemplate), Version: aws.String("$Latest"),
				},
			})
		}
		configs[i].Overrides = append(configs[i].Overrides, types.FleetLaunchTemplateOverridesRequest{
			InstanceType: types.InstanceType(override.InstanceType), SubnetId: aws.String(override.Subnet),
		})
	}
	return configs
}

// prioritize gives each override its price as its priority, as Karpenter does: EC2 takes the lowest number first.
func prioritize(configs []types.FleetLaunchTemplateConfigRequest, overrides []Override) {
	prices := make(map[[2]string]float64, len(overrides))
	for _, override := range overrides {
		prices[[2]string{override.InstanceType, override.Subnet}] = override.Price
	}
	for i := range configs {
		for j := range configs[i].Overrides {
			override := &configs[i].Overrides[j]
			override.Priority = aws.Float64(prices[[2]string{string(override.InstanceType), aws.ToString(override.SubnetId)}])
		}
	}
}

// overrideOf finds the override that a part of the reply refers to, by instance type and subnet.
func overrideOf(request fleetRequest, reply *types.LaunchTemplateAndOverridesResponse) (Override, bool) {
	if reply == nil || reply.Overrides == nil {
		return Override{}, false
	}
	for _, override := range request.Overrides {
		if override.InstanceType == string(reply.Overrides.InstanceType) && override.Subnet == aws.ToString(reply.Overrides.SubnetId) {
			return override, true
		}
	}
	return Override{}, false
}

// keyOf names the offering of an override.
func keyOf(request fleetRequest, override Override) cloud.OfferingKey {
	return cloud.OfferingKey{
		InstanceType: override.InstanceType, Zone: override.Zone, CapacityType: request.CapacityType, ReservationID: override.Reservation,
		PlacementGroup: request.PlacementGroup,
	}
}

// launchedInstances reads the instances of a reply, ordered by id.
func (p *Provider) launchedInstances(request fleetRequest, sets []types.CreateFleetInstance) []cloud.Instance {
	var out []cloud.Instance
	for i := range sets {
		set := &sets[i]
		override, ok := overrideOf(request, set.LaunchTemplateAndOverrides)
		if !ok {
			// The instances exist and have to be accounted for, even if the reply does not say where they came from.
			override = Override{InstanceType: string(set.InstanceType), Zone: aws.ToString(set.AvailabilityZone), Subnet: aws.ToString(set.SubnetId)}
		}
		p.subnets.took(override.Subnet, int64(len(set.InstanceIds))*podAddresses)
		p.catalogue.reservations.took(override.Reservation, len(set.InstanceIds))
		for _, id := range set.InstanceIds {
			p.instances.launched.put(id, struct{}{})
			out = append(out, cloud.Instance{
				ID:           id,
				ProviderID:   providerID(override.Zone, id),
				InstanceType: override.InstanceType,
				Zone:         override.Zone,
				ZoneID:       p.subnets.zoneID(override.Subnet),
				CapacityType: request.CapacityType,
				Reservation:  override.Reservation,
				Image:        override.Image,
				Profile:      request.Profile,
				Price:        override.Price,
				State:        string(types.InstanceStateNamePending),
				LaunchTime:   p.now().UTC(),
				Subnet:       override.Subnet,
				LaunchGroup:  request.Group,
				NodePool:     request.Tags[awsv1.NodePoolTagKey],
				Tags:         request.Tags,

				PlacementGroup: request.PlacementGroup,
				Partition:      request.Partition,
			})
		}
	}
	slices.SortFunc(out, func(a, b cloud.Instance) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// refusals reads the errors of a reply. It adds offerings without capacity to the result and marks them as unavailable.
// It returns the error for a launch without instances: the first error that is not about capacity, because other
// offerings would not help, or else InsufficientCapacity.
func (p *Provider) refusals(request fleetRequest, failures []types.CreateFleetError, result *cloud.LaunchResult) error {
	var failure error
	reason := ""
	refused := make(map[cloud.OfferingKey]bool)
	for i := range failures {
		code, message := aws.ToString(failures[i].ErrorCode), aws.ToString(failures[i].ErrorMessage)
		v := verdictOfCode(code, message)
		if v.kind != cloud.InsufficientCapacity {
			if failure == nil {
				failure = &cloud.Error{Kind: v.kind, Reason: v.reason, Operation: "CreateFleet", RetryAfter: retryAfter(v.kind), Answered: true, Err: fmt.Errorf("%s: %s", code, message)}
			}
			continue
		}
		reason = cmp.Or(reason, v.reason)
		override, ok := overrideOf(request, failures[i].LaunchTemplateAndOverrides)
		if !ok {
			continue
		}
		affected := []Override{override}
		if full := code == placementGroupInUse || strings.Contains(message, spreadGroupFull); full && request.PlacementGroup != "" {
			// The group takes no more instances in this zone, of whichever type.
			p.catalogue.unavailable.markGroup(request.PlacementGroup, override.Zone)
			affected = slices.DeleteFunc(slices.Clone(request.Overrides), func(o Override) bool { return o.Zone != override.Zone })
		}
		key := keyOf(request, override)
		switch code {
		case noSpotRole:
			p.catalogue.unavailable.markCapacityType(karpv1.CapacityTypeSpot)
		case "InsufficientFreeAddressesInSubnet", insufficientPrefixes:
			p.catalogue.unavailable.markSubnet(override.Subnet)
		case "ReservationCapacityExceeded":
			// EC2's number is read again; the reservation may have room sooner than a marked offering would be tried
			// again.
			p.catalogue.reservations.full(override.Reservation)
		default:
			p.catalogue.unavailable.markOffering(key)
		}
		for _, override := range affected {
			if key := keyOf(request, override); !refused[key] {
				refused[key] = true
				result.Refused = append(result.Refused, cloud.Refusal{OfferingKey: key, Code: code, Message: message})
			}
		}
	}
	if failure != nil {
		return failure
	}
	return &cloud.Error{
		Kind: cloud.InsufficientCapacity, Reason: cmp.Or(reason, "InsufficientCapacity"), Operation: "CreateFleet",
		Err: fmt.Errorf("%d of %d offerings had no capacity", len(result.Refused), len(request.Overrides)),
	}
}
