package ec2sim_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// A reservation provides its number of machines to launches that name it and, if it is open, to launches that match it.
func TestCapacityReservations(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	reserve := func(match ec2types.InstanceMatchCriteria, count int32) string {
		t.Helper()
		out, err := a.ec2.CreateCapacityReservation(ctx(t), &ec2.CreateCapacityReservationInput{
			InstanceType: aws.String("m5.large"), InstancePlatform: ec2types.CapacityReservationInstancePlatformLinuxUnix,
			AvailabilityZone: aws.String("us-east-1a"), InstanceCount: aws.Int32(count), InstanceMatchCriteria: match,
			TagSpecifications: []ec2types.TagSpecification{{
				ResourceType: ec2types.ResourceTypeCapacityReservation, Tags: []ec2types.Tag{{Key: aws.String("team"), Value: aws.String("blue")}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return *out.CapacityReservation.CapacityReservationId
	}
	available := func(id string) int32 {
		t.Helper()
		out, err := a.ec2.DescribeCapacityReservations(ctx(t), &ec2.DescribeCapacityReservationsInput{
			CapacityReservationIds: []string{id}, Filters: []ec2types.Filter{filterOf("tag:team", "blue"), filterOf("state", "active")}})
		if err != nil || len(out.CapacityReservations) != 1 {
			t.Fatalf("reservation %s: %+v, %v", id, out, err)
		}
		return *out.CapacityReservations[0].AvailableInstanceCount
	}
	targeted := reserve(ec2types.InstanceMatchCriteriaTargeted, 2)
	name := a.template(t, "x86_64")
	plain, err := a.ec2.CreateFleet(ctx(t), fleetInput(name, 1, onDemand, a.override(t, "m5.large", "us-east-1a")))
	if err != nil || len(launched(plain)) != 1 || available(targeted) != 2 {
		t.Fatalf("who does not name a targeted reservation does not use it: %+v, %v", plain, err)
	}
	run := func(zone string) error {
		_, err := a.ec2.RunInstances(ctx(t), &ec2.RunInstancesInput{
			MinCount: aws.Int32(2), MaxCount: aws.Int32(2), SubnetId: aws.String(a.subnets(t)[zone]), InstanceType: "m5.large",
			LaunchTemplate: &ec2types.LaunchTemplateSpecification{LaunchTemplateName: aws.String(name)},
			CapacityReservationSpecification: &ec2types.CapacityReservationSpecification{
				CapacityReservationPreference: ec2types.CapacityReservationPreferenceCapacityReservationsOnly,
				CapacityReservationTarget:     &ec2types.CapacityReservationTarget{CapacityReservationId: aws.String(targeted)}},
		})
		return err
	}
	wantCode(t, run("us-east-1b"), "ReservationCapacityExceeded")
	if err := run("us-east-1a"); err != nil {
		t.Fatal(err)
	}
	if n := available(targeted); n != 0 {
		t.Errorf("%d left, want none", n)
	}
	wantCode(t, run("us-east-1a"), "ReservationCapacityExceeded")
	described, err := a.ec2.DescribeInstances(ctx(t), &ec2.DescribeInstancesInput{})
	if err != nil {
		t.Fatal(err)
	}
	inside := 0
	for _, r := range described.Reservations {
		for _, i := range r.Instances {
			if aws.ToString(i.CapacityReservationId) == targeted && i.CapacityReservationSpecification.CapacityReservationTarget != nil {
				inside++
			}
		}
	}
	if inside != 2 {
		t.Errorf("%d instances say that they run in the reservation, want 2", inside)
	}
	open := reserve(ec2types.InstanceMatchCriteriaOpen, 1)
	if _, err := a.ec2.CreateFleet(ctx(t), fleetInput(name, 2, onDemand, a.override(t, "m5.large", "us-east-1a"))); err != nil {
		t.Fatal(err)
	}
	if n := available(open); n != 0 {
		t.Errorf("%d left of the open reservation, want none: whoever fits uses it", n)
	}
	if _, err := a.ec2.CancelCapacityReservation(ctx(t), &ec2.CancelCapacityReservationInput{CapacityReservationId: aws.String(targeted)}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, run("us-east-1a"), "InvalidCapacityReservationState")
}
