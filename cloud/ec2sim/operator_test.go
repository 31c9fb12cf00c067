package ec2sim_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// Operations that people perform on an account besides the controller, as Karpenter's own suites do.

func TestSecurityGroupsAreMadeAndDeleted(t *testing.T) {
	t.Parallel()
	path := stateFile(t)
	a := start(t, ec2sim.Options{StateFile: path})
	in := &ec2.CreateSecurityGroupInput{
		GroupName: aws.String("second"), Description: aws.String("another"), VpcId: aws.String("vpc-0a5e7e0000000001"),
		TagSpecifications: []ec2types.TagSpecification{{ResourceType: ec2types.ResourceTypeSecurityGroup, Tags: []ec2types.Tag{{Key: aws.String("karpenter.sh/discovery"), Value: aws.String("tenon")}}}}}
	made, err := a.ec2.CreateSecurityGroup(ctx(t), in)
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.ec2.CreateSecurityGroup(ctx(t), in)
	wantCode(t, err, "InvalidGroup.Duplicate")
	discovered := func(a *account) int {
		t.Helper()
		out, err := a.ec2.DescribeSecurityGroups(ctx(t), &ec2.DescribeSecurityGroupsInput{Filters: []ec2types.Filter{filterOf("tag:karpenter.sh/discovery", "tenon")}})
		if err != nil {
			t.Fatal(err)
		}
		return len(out.SecurityGroups)
	}
	out, err := a.ec2.RunInstances(ctx(t), &ec2.RunInstancesInput{
		MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: "m5.large", ImageId: aws.String(a.image(t, "x86_64")),
		SubnetId: aws.String(a.subnets(t)["us-east-1a"]), SecurityGroupIds: []string{aws.ToString(made.GroupId)}})
	if err != nil || aws.ToString(out.Instances[0].SecurityGroups[0].GroupName) != "second" {
		t.Fatalf("%+v, %v", out, err)
	}
	remove := &ec2.DeleteSecurityGroupInput{GroupId: made.GroupId}
	_, err = a.ec2.DeleteSecurityGroup(ctx(t), remove)
	wantCode(t, err, "DependencyViolation")
	if n := discovered(a); n != 3 {
		t.Errorf("%d groups are discovered, want 3", n)
	}
	if err := a.sim.Close(); err != nil {
		t.Fatal(err)
	}
	a = start(t, ec2sim.Options{StateFile: path})
	if _, err := a.ec2.TerminateInstances(ctx(t), &ec2.TerminateInstancesInput{InstanceIds: []string{*out.Instances[0].InstanceId}}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.ec2.DeleteSecurityGroup(ctx(t), remove); err != nil {
		t.Fatal(err)
	}
	if n := discovered(a); n != 2 {
		t.Errorf("%d groups are discovered, want 2", n)
	}
}

func TestSubnetsGivePublicAddresses(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	subnet := a.subnets(t)["us-east-1a"]
	if _, err := a.ec2.ModifySubnetAttribute(ctx(t), &ec2.ModifySubnetAttributeInput{
		SubnetId: aws.String(subnet), MapPublicIpOnLaunch: &ec2types.AttributeBooleanValue{Value: aws.Bool(true)}}); err != nil {
		t.Fatal(err)
	}
	_, err := a.ec2.ModifySubnetAttribute(ctx(t), &ec2.ModifySubnetAttributeInput{
		SubnetId: aws.String(subnet), EnableDns64: &ec2types.AttributeBooleanValue{Value: aws.Bool(true)}})
	wantCode(t, err, "UnsupportedBySimulator")
	for reason, tc := range map[string]struct {
		says *bool
		want bool
	}{"the launch says nothing": {nil, true}, "the launch says no": {aws.Bool(false), false}} {
		out, err := a.ec2.RunInstances(ctx(t), &ec2.RunInstancesInput{
			MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: "m5.large", ImageId: aws.String(a.image(t, "x86_64")),
			NetworkInterfaces: []ec2types.InstanceNetworkInterfaceSpecification{{DeviceIndex: aws.Int32(0), SubnetId: aws.String(subnet), AssociatePublicIpAddress: tc.says}}})
		if err != nil || (out.Instances[0].PublicIpAddress != nil) != tc.want {
			t.Errorf("%s: %+v, %v; want a public address: %t", reason, out, err, tc.want)
		}
	}
}

func TestVolumesAreDescribed(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	out, err := a.ec2.CreateFleet(ctx(t), fleetInput(a.template(t, "x86_64"), 2, onDemand, a.override(t, "m5.large", "us-east-1a")))
	if err != nil {
		t.Fatal(err)
	}
	ids := launched(out)
	volumes, err := a.ec2.DescribeVolumes(ctx(t), &ec2.DescribeVolumesInput{Filters: []ec2types.Filter{
		filterOf("attachment.instance-id", ids[0]), filterOf("tag:disk", "root")}})
	if err != nil || len(volumes.Volumes) != 1 || *volumes.Volumes[0].Size != 30 || *volumes.Volumes[0].Attachments[0].InstanceId != ids[0] || !*volumes.Volumes[0].Encrypted {
		t.Errorf("%+v, %v", volumes, err)
	}
	_, err = a.ec2.DescribeVolumes(ctx(t), &ec2.DescribeVolumesInput{VolumeIds: []string{"vol-1"}})
	wantCode(t, err, "InvalidVolume.NotFound")
}

// A stopped instance goes through its states, announces them in the queues, and its kubelet falls silent.
func TestStoppedInstances(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset()
	a := startJoining(t, client, ec2sim.Options{Queues: []string{"q"}, ShuttingDownFor: 5 * time.Second})
	id := a.launchJoining(t, 1, "https://api")
	await(t, "it has joined", a.allNodes("joined"))
	a.bodies(t, "q")
	out, err := a.ec2.StopInstances(ctx(t), &ec2.StopInstancesInput{InstanceIds: id})
	if err != nil || out.StoppingInstances[0].CurrentState.Name != ec2types.InstanceStateNameStopping {
		t.Fatalf("%+v, %v", out, err)
	}
	state := func() ec2types.InstanceStateName {
		t.Helper()
		found, err := a.ec2.DescribeInstances(ctx(t), &ec2.DescribeInstancesInput{InstanceIds: id})
		if err != nil {
			t.Fatal(err)
		}
		return found.Reservations[0].Instances[0].State.Name
	}
	if got := state(); got != ec2types.InstanceStateNameStopping {
		t.Errorf("state %s", got)
	}
	await(t, "its kubelet has fallen silent", a.allNodes("stopped"))
	await(t, "it has stopped", func(context.Context) (bool, error) { return state() == ec2types.InstanceStateNameStopped, nil })
	if bodies := a.bodies(t, "q"); len(bodies) == 0 {
		t.Error("no event was announced")
	}
	if _, err := a.ec2.TerminateInstances(ctx(t), &ec2.TerminateInstancesInput{InstanceIds: id}); err != nil {
		t.Fatal(err)
	}
	_, err = a.ec2.StopInstances(ctx(t), &ec2.StopInstancesInput{InstanceIds: id})
	wantCode(t, err, "IncorrectInstanceState")
}

func TestSpotInstancesAreNotStopped(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	out, err := a.ec2.CreateFleet(ctx(t), fleetInput(a.template(t, "x86_64"), 1, spot, a.override(t, "m5.large", "us-east-1a")))
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.ec2.StopInstances(ctx(t), &ec2.StopInstancesInput{InstanceIds: launched(out)})
	wantCode(t, err, "UnsupportedOperation")
}

func TestInterruptibleAllocations(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	source, err := a.sim.Reserve(ec2sim.Reservation{Type: "m5.large", Zone: "us-east-1a", Count: 5, Targeted: true})
	if err != nil {
		t.Fatal(err)
	}
	in := &ec2.CreateInterruptibleCapacityReservationAllocationInput{CapacityReservationId: aws.String(source), InstanceCount: aws.Int32(6)}
	_, err = a.ec2.CreateInterruptibleCapacityReservationAllocation(ctx(t), in)
	wantCode(t, err, "InvalidParameterValue")
	in.InstanceCount = aws.Int32(3)
	in.TagSpecifications = []ec2types.TagSpecification{{ResourceType: ec2types.ResourceTypeCapacityReservation, Tags: []ec2types.Tag{{Key: aws.String("team"), Value: aws.String("blue")}}}}
	if _, err := a.ec2.CreateInterruptibleCapacityReservationAllocation(ctx(t), in); err != nil {
		t.Fatal(err)
	}
	out, err := a.ec2.DescribeCapacityReservations(ctx(t), &ec2.DescribeCapacityReservationsInput{})
	if err != nil || len(out.CapacityReservations) != 2 {
		t.Fatalf("%+v, %v", out, err)
	}
	for _, r := range out.CapacityReservations {
		want := int32(3)
		if *r.CapacityReservationId == source {
			want = 2
			if allocation := r.InterruptibleCapacityAllocation; allocation == nil || *allocation.InstanceCount != 3 || *allocation.InterruptibleCapacityReservationId == "" {
				t.Errorf("the source says %+v of its allocation", allocation)
			}
		} else if !*r.Interruptible || len(r.Tags) != 1 {
			t.Errorf("the allocation is %+v", r)
		}
		if *r.AvailableInstanceCount != want {
			t.Errorf("%s has %d instances available, want %d", *r.CapacityReservationId, *r.AvailableInstanceCount, want)
		}
	}
}

func TestRolesAreMadeAndDeleted(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	in := &iam.CreateRoleInput{RoleName: aws.String("nodes"), AssumeRolePolicyDocument: aws.String("{}"), Description: aws.String("of nodes")}
	if out, err := a.iam().CreateRole(ctx(t), in); err != nil || *out.Role.Arn != "arn:aws:iam::123456789012:role/nodes" {
		t.Fatalf("%+v, %v", out, err)
	}
	_, err := a.iam().CreateRole(ctx(t), in)
	wantCode(t, err, "EntityAlreadyExists")
	a.profile(t, "p")
	remove := &iam.DeleteRoleInput{RoleName: aws.String("nodes")}
	_, err = a.iam().DeleteRole(ctx(t), remove)
	wantCode(t, err, "DeleteConflict")
	if _, err := a.iam().RemoveRoleFromInstanceProfile(ctx(t), &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: aws.String("p"), RoleName: aws.String("nodes")}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.iam().DeleteRole(ctx(t), remove); err != nil {
		t.Fatal(err)
	}
	_, err = a.iam().DeleteRole(ctx(t), remove)
	wantCode(t, err, "NoSuchEntity")
}

// A Local Zone has its own group, few instance types and no spot capacity.
func TestLocalZones(t *testing.T) {
	t.Parallel()
	const local = "us-east-1-bos-1a"
	a := start(t, ec2sim.Options{Zones: []string{"us-east-1a", "us-east-1b", local}})
	zones, err := a.ec2.DescribeAvailabilityZones(ctx(t), &ec2.DescribeAvailabilityZonesInput{Filters: []ec2types.Filter{filterOf("zone-type", "local-zone")}})
	if err != nil || len(zones.AvailabilityZones) != 1 {
		t.Fatalf("%+v, %v", zones, err)
	}
	z := zones.AvailabilityZones[0]
	if got := []string{*z.ZoneName, *z.ZoneId, *z.GroupName, *z.RegionName, *z.ParentZoneName}; !slices.Equal(got, []string{local, "use1-bos1-az1", "us-east-1-bos-1", "us-east-1", "us-east-1a"}) {
		t.Errorf("zone %v", got)
	}
	name := a.template(t, "x86_64")
	for reason, tc := range map[string]struct {
		kind  ec2types.DefaultTargetCapacityType
		itype string
		want  []string
	}{
		"on-demand of a family that is there":     {kind: onDemand, itype: "c5d.large"},
		"on-demand of a family that is not there": {kind: onDemand, itype: "m5.large", want: []string{"Unsupported"}},
		"spot": {kind: spot, itype: "c5d.large", want: []string{"Unsupported"}},
	} {
		out, err := a.ec2.CreateFleet(ctx(t), fleetInput(name, 1, tc.kind, a.override(t, tc.itype, local)))
		if err != nil || !slices.Equal(codes(out), tc.want) {
			t.Errorf("%s: %v, %v; want %v", reason, codes(out), err, tc.want)
		}
	}
	prices, err := a.ec2.DescribeSpotPriceHistory(ctx(t), &ec2.DescribeSpotPriceHistoryInput{AvailabilityZone: aws.String(local)})
	if err != nil || len(prices.SpotPriceHistory) != 0 {
		t.Errorf("spot prices %+v, %v", prices, err)
	}
	if _, err := ec2sim.New(ec2sim.Options{Zones: []string{"us-east-1-boston-1a"}}); err == nil {
		t.Error("a zone that is none was taken")
	}
}

// Instances can be launched into subnets that another account shares; the owner's tags are not visible.
func TestSharedSubnets(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{SubnetOwner: "210987654321"})
	out, err := a.ec2.DescribeSubnets(ctx(t), &ec2.DescribeSubnetsInput{Filters: []ec2types.Filter{filterOf("owner-id", "210987654321")}})
	if err != nil || len(out.Subnets) != 3 || len(out.Subnets[0].Tags) != 0 || *out.Subnets[0].OwnerId != "210987654321" {
		t.Fatalf("%+v, %v", out, err)
	}
	if len(a.subnets(t)) != 0 {
		t.Error("the owner's tags are seen")
	}
	ran, err := a.ec2.RunInstances(ctx(t), &ec2.RunInstancesInput{
		MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: "m5.large", ImageId: aws.String(a.image(t, "x86_64")), SubnetId: out.Subnets[0].SubnetId})
	if err != nil || *ran.OwnerId != "123456789012" {
		t.Errorf("%+v, %v", ran, err)
	}
}

// The ARNs and the owner of the images depend on the region's partition.
func TestPartitions(t *testing.T) {
	t.Parallel()
	for region, want := range map[string][]string{
		"us-east-1":     {"arn:aws:iam::123456789012:instance-profile/nodes", "602401143452"},
		"cn-north-1":    {"arn:aws-cn:iam::123456789012:instance-profile/nodes", "918309763551"},
		"us-gov-west-1": {"arn:aws-us-gov:iam::123456789012:instance-profile/nodes", "013241004608"},
	} {
		a := start(t, ec2sim.Options{Region: region})
		a.profile(t, "nodes")
		p, err := a.iam().GetInstanceProfile(ctx(t), &iam.GetInstanceProfileInput{InstanceProfileName: aws.String("nodes")})
		if err != nil {
			t.Fatal(err)
		}
		images, err := a.ec2.DescribeImages(ctx(t), &ec2.DescribeImagesInput{ImageIds: []string{a.image(t, "x86_64")}})
		if err != nil {
			t.Fatal(err)
		}
		if got := []string{*p.InstanceProfile.Arn, *images.Images[0].OwnerId}; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", region, got, want)
		}
	}
}
