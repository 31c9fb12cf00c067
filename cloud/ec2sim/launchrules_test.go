package ec2sim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// changedTemplate creates a launch template with changed data, and returns its name.
func (a *account) changedTemplate(t *testing.T, name string, change func(*ec2types.RequestLaunchTemplateData)) string {
	t.Helper()
	data := &ec2types.RequestLaunchTemplateData{ImageId: aws.String(a.image(t, "x86_64")), SecurityGroupIds: []string{"sg-0a5e7e0000000001"}}
	change(data)
	if _, err := a.ec2.CreateLaunchTemplate(ctx(t), &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String(name), LaunchTemplateData: data}); err != nil {
		t.Fatal(err)
	}
	return name
}

// codes returns the error codes in the answer of a fleet.
func codes(out *ec2.CreateFleetOutput) []string {
	var all []string
	for _, e := range out.Errors {
		all = append(all, aws.ToString(e.ErrorCode))
	}
	return all
}

// Only spot launches have a spot request that can be tagged.
func TestTagsOfSpotRequestsAreForSpotOnly(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	name := a.changedTemplate(t, "spot-tags", func(data *ec2types.RequestLaunchTemplateData) {
		data.TagSpecifications = []ec2types.LaunchTemplateTagSpecificationRequest{{
			ResourceType: ec2types.ResourceTypeSpotInstancesRequest, Tags: []ec2types.Tag{{Key: aws.String("team"), Value: aws.String("blue")}}}}
	})
	for kind, want := range map[ec2types.DefaultTargetCapacityType][]string{spot: nil, onDemand: {"InvalidParameterValue"}} {
		out, err := a.ec2.CreateFleet(ctx(t), fleetInput(name, 1, kind, a.override(t, "m5.large", "us-east-1a")))
		if err != nil || !slices.Equal(codes(out), want) || len(launched(out)) != 1-len(want) {
			t.Errorf("%s: %+v, %v; want the errors %v", kind, out, err, want)
		}
	}
	_, err := a.ec2.RunInstances(ctx(t), &ec2.RunInstancesInput{
		DryRun: aws.Bool(true), MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: "m5.large", SubnetId: aws.String(a.subnets(t)["us-east-1a"]),
		LaunchTemplate: &ec2types.LaunchTemplateSpecification{LaunchTemplateName: aws.String(name)}})
	wantCode(t, err, "InvalidParameterValue")
}

func TestFleetsWithMistakesAreRefused(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	name := a.template(t, "x86_64")
	pool := a.override(t, "m5.large", "us-east-1a")
	for reason, test := range map[string]struct {
		change func(*ec2.CreateFleetInput)
		code   string
	}{
		"one pool twice in a launch template": {func(in *ec2.CreateFleetInput) {
			in.LaunchTemplateConfigs[0].Overrides = append(in.LaunchTemplateConfigs[0].Overrides, pool)
		}, "InvalidFleetConfig"},
		"tags for what a fleet does not make": {func(in *ec2.CreateFleetInput) {
			in.TagSpecifications[0].ResourceType = ec2types.ResourceTypeSpotInstancesRequest
		}, "InvalidParameterValue"},
		"a capacity block with the options of on-demand": {func(in *ec2.CreateFleetInput) {
			in.TargetCapacitySpecification.DefaultTargetCapacityType = ec2types.DefaultTargetCapacityTypeCapacityBlock
			in.OnDemandOptions = &ec2types.OnDemandOptionsRequest{AllocationStrategy: ec2types.FleetOnDemandAllocationStrategyLowestPrice}
		}, "InvalidFleetConfig"},
		"reserved capacity of no type": {func(in *ec2.CreateFleetInput) {
			in.TargetCapacitySpecification.DefaultTargetCapacityType = ec2types.DefaultTargetCapacityTypeReservedCapacity
		}, "InvalidFleetConfig"},
	} {
		in := fleetInput(name, 1, onDemand, pool)
		test.change(in)
		_, err := a.ec2.CreateFleet(ctx(t), in)
		t.Log(reason)
		wantCode(t, err, test.code)
	}
}

// A reservation with a market of its own is used only by launches in that market.
func TestReservationsHaveMarkets(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	reserve := func(r ec2sim.Reservation) string {
		r.Type, r.Zone, r.Count = "m5.large", "us-east-1a", 10
		id, err := a.sim.Reserve(r)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	plain, block, interruptible := reserve(ec2sim.Reservation{Targeted: true}), reserve(ec2sim.Reservation{Block: true}), reserve(ec2sim.Reservation{Interruptible: true})
	target := map[ec2types.MarketType]ec2types.DefaultTargetCapacityType{
		"": onDemand, ec2types.MarketTypeCapacityBlock: ec2types.DefaultTargetCapacityTypeCapacityBlock,
		ec2types.MarketTypeInterruptibleCapacityReservation: ec2types.DefaultTargetCapacityTypeReservedCapacity,
	}
	for id, own := range map[string]ec2types.MarketType{
		plain: "", block: ec2types.MarketTypeCapacityBlock, interruptible: ec2types.MarketTypeInterruptibleCapacityReservation,
	} {
		for market, kind := range target {
			name := a.changedTemplate(t, id+string(market), func(data *ec2types.RequestLaunchTemplateData) {
				data.CapacityReservationSpecification = &ec2types.LaunchTemplateCapacityReservationSpecificationRequest{
					CapacityReservationTarget: &ec2types.CapacityReservationTarget{CapacityReservationId: aws.String(id)}}
				if market != "" {
					data.InstanceMarketOptions = &ec2types.LaunchTemplateInstanceMarketOptionsRequest{MarketType: market}
				}
			})
			in := fleetInput(name, 1, kind, a.override(t, "m5.large", "us-east-1a"))
			if kind == ec2types.DefaultTargetCapacityTypeReservedCapacity {
				in.ReservedCapacityOptions = &ec2types.ReservedCapacityOptionsRequest{
					ReservationTypes: []ec2types.FleetReservationType{ec2types.FleetReservationTypeInterruptibleCapacityReservation}}
			}
			out, err := a.ec2.CreateFleet(ctx(t), in)
			if err != nil || (len(launched(out)) == 1) != (market == own) {
				t.Errorf("market %q into a reservation of market %q: launched %v, errors %v, %v", market, own, launched(out), codes(out), err)
			}
			if len(out.Errors) == 1 && codes(out)[0] != "InvalidParameterCombination" {
				t.Errorf("market %q into a reservation of market %q: %v", market, own, codes(out))
			}
		}
	}
}

// An answered failure uses up its token: the same answer is returned even after the fault is gone, and only another token
// launches.
func TestAnAnsweredFailureSpendsItsToken(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	in := fleetInput(a.template(t, "x86_64"), 1, onDemand, a.override(t, "m5.large", "us-east-1a"), a.override(t, "m5.large", "us-east-1b"))
	in.ClientToken = aws.String("first")
	a.faults(t, ec2sim.Faults{
		Fleet:    []ec2sim.FleetFault{{PoolPattern: ec2sim.PoolPattern{Zone: "us-east-1a"}, Code: "InternalError"}},
		Capacity: []ec2sim.CapacityFault{{PoolPattern: ec2sim.PoolPattern{Zone: "us-east-1b"}}},
	})
	want := []string{"InternalError", "InsufficientInstanceCapacity"}
	for range 2 {
		out, err := a.ec2.CreateFleet(ctx(t), in)
		if err != nil || len(launched(out)) != 0 || !slices.Equal(codes(out), want) {
			t.Errorf("fleet %+v, %v; want the errors %v", out, err, want)
		}
		a.faults(t, ec2sim.Faults{})
	}
	in.ClientToken = aws.String("second")
	if out, err := a.ec2.CreateFleet(ctx(t), in); err != nil || len(launched(out)) != 1 {
		t.Errorf("another token: %+v, %v", out, err)
	}
}

func TestAnEmptyAnswer(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	a.faults(t, ec2sim.Faults{Fleet: []ec2sim.FleetFault{{}}})
	out, err := a.ec2.CreateFleet(ctx(t), fleetInput(a.template(t, "x86_64"), 1, onDemand, a.override(t, "m5.large", "us-east-1a")))
	if err != nil || len(out.Instances) != 0 || len(out.Errors) != 0 {
		t.Errorf("fleet %+v, %v; want neither instances nor errors", out, err)
	}
}

// A thousand instances empty the launch bucket; an instant fleet that exceeds it is throttled in its answer.
func TestLaunchesAreThrottledInTheAnswer(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{Faults: ec2sim.Faults{Throttle: 1}})
	name := a.template(t, "x86_64")
	if _, err := a.ec2.CreateFleet(ctx(t), fleetInput(name, 1000, onDemand, a.override(t, "m5.large", "us-east-1a"))); err != nil {
		t.Fatal(err)
	}
	out, err := a.ec2.CreateFleet(ctx(t), fleetInput(name, 1, onDemand, a.override(t, "m5.large", "us-east-1a")))
	if err != nil || !slices.Equal(codes(out), []string{"RequestLimitExceeded"}) {
		t.Errorf("fleet %+v, %v", out, err)
	}
}

// The clock stands still, so the first request of the token stays in flight as long as the test needs.
func TestADuplicateInFlight(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	in := fleetInput(a.template(t, "x86_64"), 1, onDemand, a.override(t, "m5.large", "us-east-1a"))
	in.ClientToken = aws.String("token")
	a.faults(t, ec2sim.Faults{InFlight: "ConcurrentModification", Slow: []ec2sim.ReplyFault{{Action: "CreateFleet", Delay: ec2sim.Duration(10 * time.Millisecond), Occurrence: ec2sim.Occurrence{Times: 1}}}})
	first, err := a.ec2.CreateFleet(ctx(t), in)
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.ec2.CreateFleet(ctx(t), in)
	wantCode(t, err, "ConcurrentModification")
	a.clock.Advance(time.Second)
	again, err := a.ec2.CreateFleet(ctx(t), in)
	if err != nil || !slices.Equal(launched(first), launched(again)) || a.living() != 1 {
		t.Errorf("after it was answered: %+v, %v; %d instances live", again, err, a.living())
	}
}

func TestLaunchesLearnOfTemplatesLate(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{Faults: ec2sim.Faults{TemplateLag: ec2sim.Duration(5 * time.Second)}})
	in := fleetInput(a.template(t, "x86_64"), 1, onDemand, a.override(t, "m5.large", "us-east-1a"))
	_, err := a.ec2.CreateFleet(ctx(t), in)
	wantCode(t, err, "InvalidLaunchTemplateName.NotFoundException")
	a.clock.Advance(5 * time.Second)
	if out, err := a.ec2.CreateFleet(ctx(t), in); err != nil || len(launched(out)) != 1 {
		t.Errorf("five seconds later: %+v, %v", out, err)
	}
}
