package ec2sim_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

const (
	onDemand = ec2types.DefaultTargetCapacityTypeOnDemand
	spot     = ec2types.DefaultTargetCapacityTypeSpot
)

func TestFleetLaunchesAndLives(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	name := a.template(t, "x86_64")
	out, err := a.ec2.CreateFleet(ctx(t), fleetInput(name, 3, onDemand, a.override(t, "m5.large", "us-east-1a"), a.override(t, "m5.xlarge", "us-east-1b")))
	if err != nil {
		t.Fatal(err)
	}
	ids := launched(out)
	if len(ids) != 3 || len(out.Errors) != 0 || len(out.Instances) != 1 || out.Instances[0].InstanceType != "m5.large" {
		t.Fatalf("fleet: %+v", out)
	}
	states := func() []string {
		t.Helper()
		d, err := a.ec2.DescribeInstances(ctx(t), &ec2.DescribeInstancesInput{InstanceIds: ids[:1]})
		if err != nil {
			t.Fatal(err)
		}
		return []string{string(d.Reservations[0].Instances[0].State.Name)}
	}
	if diff := cmp.Diff([]string{"pending"}, states()); diff != "" {
		t.Error(diff)
	}
	a.clock.Advance(5 * time.Second)
	if diff := cmp.Diff([]string{"running"}, states()); diff != "" {
		t.Error(diff)
	}
	d, err := a.ec2.DescribeInstances(ctx(t), &ec2.DescribeInstancesInput{Filters: []ec2types.Filter{
		filterOf("tag:group", "g1"), filterOf("instance-state-name", "pending", "running"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	i := d.Reservations[0].Instances[0]
	if *i.SubnetId != a.subnets(t)["us-east-1a"] || *i.PrivateDnsName == "" || *i.Placement.AvailabilityZone != "us-east-1a" ||
		len(i.SecurityGroups) != 1 || len(i.BlockDeviceMappings) != 1 || i.InstanceLifecycle != "" || *i.ImageId == "" {
		t.Errorf("instance: %+v", i)
	}
	end, err := a.ec2.TerminateInstances(ctx(t), &ec2.TerminateInstancesInput{InstanceIds: ids})
	if err != nil || len(end.TerminatingInstances) != 3 || end.TerminatingInstances[0].CurrentState.Name != "shutting-down" {
		t.Fatalf("terminate: %+v, %v", end, err)
	}
	a.clock.Advance(time.Minute)
	if diff := cmp.Diff([]string{"terminated"}, states()); diff != "" {
		t.Error(diff)
	}
	if end, err = a.ec2.TerminateInstances(ctx(t), &ec2.TerminateInstancesInput{InstanceIds: ids}); err != nil || end.TerminatingInstances[0].PreviousState.Name != "terminated" {
		t.Errorf("terminating again: %+v, %v", end, err)
	}
	a.clock.Advance(2 * time.Hour)
	_, err = a.ec2.DescribeInstances(ctx(t), &ec2.DescribeInstancesInput{InstanceIds: ids[:1]})
	wantCode(t, err, "InvalidInstanceID.NotFound")
}

func TestFleetTokenIsIdempotent(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	in := fleetInput(a.template(t, "x86_64"), 2, onDemand, a.override(t, "m5.large", "us-east-1a"))
	in.ClientToken = aws.String("token-1")
	first, err := a.ec2.CreateFleet(ctx(t), in)
	if err != nil {
		t.Fatal(err)
	}
	again, err := a.ec2.CreateFleet(ctx(t), in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(launched(first), launched(again)); diff != "" || len(a.sim.Instances()) != 2 {
		t.Errorf("the same token launched again: %s", diff)
	}
	in.TargetCapacitySpecification.TotalTargetCapacity = aws.Int32(3)
	_, err = a.ec2.CreateFleet(ctx(t), in)
	wantCode(t, err, "IdempotentParameterMismatch")
}

// TestTokensAreForgottenAfterADay checks that the simulator knows a token for 24 hours, as EC2 promises, and no longer.
func TestTokensAreForgottenAfterADay(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	in := fleetInput(a.template(t, "x86_64"), 1, ec2types.DefaultTargetCapacityTypeOnDemand, a.override(t, "m5.large", "us-east-1a"))
	in.ClientToken = aws.String("once")
	for _, tc := range []struct {
		later time.Duration
		alive int
	}{{0, 1}, {24 * time.Hour, 1}, {time.Second, 2}} {
		a.clock.Advance(tc.later)
		if _, err := a.ec2.CreateFleet(ctx(t), in); err != nil {
			t.Fatal(err)
		}
		if alive := a.living(); alive != tc.alive {
			t.Errorf("another %v later %d instances, want %d", tc.later, alive, tc.alive)
		}
	}
}
