package ec2sim_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

func TestRunInstances(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	name := a.template(t, "arm64")
	in := &ec2.RunInstancesInput{
		MinCount: aws.Int32(2), MaxCount: aws.Int32(2), InstanceType: "m7g.large", SubnetId: aws.String(a.subnets(t)["us-east-1c"]),
		LaunchTemplate: &ec2types.LaunchTemplateSpecification{LaunchTemplateName: aws.String(name)}, ClientToken: aws.String("once"),
		DryRun: aws.Bool(true),
	}
	_, err := a.ec2.RunInstances(ctx(t), in)
	wantCode(t, err, "DryRunOperation")
	if len(a.sim.Instances()) != 0 {
		t.Error("a dry run launched instances")
	}
	in.DryRun = nil
	first, err := a.ec2.RunInstances(ctx(t), in)
	if err != nil || len(first.Instances) != 2 {
		t.Fatalf("run: %+v, %v", first, err)
	}
	again, err := a.ec2.RunInstances(ctx(t), in)
	if err != nil || *again.Instances[0].InstanceId != *first.Instances[0].InstanceId || len(a.sim.Instances()) != 2 {
		t.Errorf("run again: %+v, %v", again, err)
	}
	in.InstanceType = "m7g.xlarge"
	_, err = a.ec2.RunInstances(ctx(t), in)
	wantCode(t, err, "IdempotentParameterMismatch")

	in.ClientToken, in.InstanceType = nil, "m5.large"
	_, err = a.ec2.RunInstances(ctx(t), in)
	wantCode(t, err, "InvalidParameterValue") // the image is for arm64
	in.InstanceType = "m7g.large"
	a.faults(t, ec2sim.Faults{Capacity: []ec2sim.CapacityFault{{Remaining: 1}}})
	_, err = a.ec2.RunInstances(ctx(t), in)
	wantCode(t, err, "InsufficientInstanceCapacity")
	if len(a.sim.Instances()) != 2 {
		t.Error("less than MinCount was launched")
	}
}

func TestLaunchIsRefused(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	name := a.template(t, "x86_64")
	good := func() *ec2.CreateFleetInput {
		return fleetInput(name, 1, onDemand, a.override(t, "m5.large", "us-east-1a"))
	}
	for reason, tc := range map[string]struct {
		change func(*ec2.CreateFleetInput)
		code   string
	}{
		"no such template": {func(in *ec2.CreateFleetInput) {
			in.LaunchTemplateConfigs[0].LaunchTemplateSpecification.LaunchTemplateName = aws.String("nobody")
		}, "InvalidLaunchTemplateName.NotFoundException"},
		"no such version": {func(in *ec2.CreateFleetInput) {
			in.LaunchTemplateConfigs[0].LaunchTemplateSpecification.Version = aws.String("7")
		}, "InvalidLaunchTemplateId.VersionNotFound"},
		"no capacity asked for": {func(in *ec2.CreateFleetInput) {
			in.TargetCapacitySpecification.TotalTargetCapacity = aws.Int32(0)
		}, "InvalidTargetCapacitySpecification"},
		"an unknown strategy": {func(in *ec2.CreateFleetInput) {
			in.OnDemandOptions = &ec2types.OnDemandOptionsRequest{AllocationStrategy: "random"}
		}, "InvalidParameterValue"},
		"too long a token": {func(in *ec2.CreateFleetInput) {
			in.ClientToken = aws.String(fmt.Sprintf("%065d", 1))
		}, "InvalidParameterValue"},
		"a dry run": {func(in *ec2.CreateFleetInput) { in.DryRun = aws.Bool(true) }, "DryRunOperation"},
		"a reserved tag": {func(in *ec2.CreateFleetInput) {
			in.TagSpecifications[0].Tags[0].Key = aws.String("aws:mine")
		}, "InvalidParameterValue"},
	} {
		in := good()
		tc.change(in)
		_, err := a.ec2.CreateFleet(ctx(t), in)
		t.Log(reason)
		wantCode(t, err, tc.code)
	}
	for reason, tc := range map[string]struct {
		override ec2types.FleetLaunchTemplateOverridesRequest
		code     string
	}{
		"an image of the other architecture": {a.override(t, "m7g.large", "us-east-1a"), "InvalidParameterValue"},
		"no such type":                       {a.override(t, "m5.tiny", "us-east-1a"), "InvalidParameterValue"},
		"no such subnet":                     {ec2types.FleetLaunchTemplateOverridesRequest{InstanceType: "m5.large", SubnetId: aws.String("subnet-1")}, "InvalidSubnetID.NotFound"},
		"no such image": {ec2types.FleetLaunchTemplateOverridesRequest{
			InstanceType: "m5.large", AvailabilityZone: aws.String("us-east-1a"), ImageId: aws.String("ami-1"),
		}, "InvalidAMIID.NotFound"},
	} {
		out, err := a.ec2.CreateFleet(ctx(t), fleetInput(name, 1, onDemand, tc.override))
		if err != nil || len(out.Errors) != 1 || aws.ToString(out.Errors[0].ErrorCode) != tc.code {
			t.Errorf("%s: %+v, %v; want %s in the errors", reason, out, err, tc.code)
		}
	}
	if len(a.sim.Instances()) != 0 {
		t.Errorf("instances were launched: %+v", a.sim.Instances())
	}
}

func TestDescribeInstancesIsPaged(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	name := a.template(t, "x86_64")
	want := map[string]bool{}
	for range 3 {
		out, err := a.ec2.CreateFleet(ctx(t), fleetInput(name, 4, onDemand, a.override(t, "m5.large", "us-east-1a")))
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range launched(out) {
			want[id] = true
		}
		a.clock.Advance(time.Second)
	}
	got := map[string]bool{}
	pages := 0
	p := ec2.NewDescribeInstancesPaginator(a.ec2, &ec2.DescribeInstancesInput{MaxResults: aws.Int32(5), Filters: []ec2types.Filter{filterOf("tag-key", "group")}})
	for p.HasMorePages() {
		out, err := p.NextPage(ctx(t))
		if err != nil {
			t.Fatal(err)
		}
		pages++
		for _, r := range out.Reservations {
			for _, i := range r.Instances {
				got[*i.InstanceId] = true
			}
		}
	}
	if !maps.Equal(got, want) || pages != 3 {
		t.Errorf("got %d instances on %d pages, want %d on 3", len(got), pages, len(want))
	}
	_, err := a.ec2.DescribeInstances(ctx(t), &ec2.DescribeInstancesInput{NextToken: aws.String("???")})
	wantCode(t, err, "InvalidParameterValue")
	_, err = a.ec2.DescribeInstances(ctx(t), &ec2.DescribeInstancesInput{MaxResults: aws.Int32(5), InstanceIds: []string{slices.Collect(maps.Keys(want))[0]}})
	wantCode(t, err, "InvalidParameterCombination")
	a.clock.Advance(time.Minute)
	status, err := a.ec2.DescribeInstanceStatus(ctx(t), &ec2.DescribeInstanceStatusInput{})
	if err != nil || len(status.InstanceStatuses) != 12 || status.InstanceStatuses[0].SystemStatus.Status != ec2types.SummaryStatusOk {
		t.Errorf("status: %+v, %v", status, err)
	}
}

func TestTags(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	name := a.template(t, "x86_64")
	out, err := a.ec2.CreateFleet(ctx(t), fleetInput(name, 1, onDemand, a.override(t, "m5.large", "us-east-1a")))
	if err != nil {
		t.Fatal(err)
	}
	id := launched(out)[0]
	tagsOf := func(id string) map[string]string {
		t.Helper()
		out, err := a.ec2.DescribeTags(ctx(t), &ec2.DescribeTagsInput{Filters: []ec2types.Filter{filterOf("resource-id", id)}})
		if err != nil {
			t.Fatal(err)
		}
		tags := map[string]string{}
		for _, tag := range out.Tags {
			tags[*tag.Key] = *tag.Value
		}
		return tags
	}
	if tags := tagsOf(id); tags["group"] != "g1" || tags["aws:ec2:fleet-id"] != *out.FleetId {
		t.Errorf("tags at launch: %v", tags)
	}
	d, err := a.ec2.DescribeInstances(ctx(t), &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"disk": "root"}, tagsOf(*d.Reservations[0].Instances[0].BlockDeviceMappings[0].Ebs.VolumeId)); diff != "" {
		t.Errorf("tags of the volume: %s", diff)
	}
	nameTag := []ec2types.Tag{{Key: aws.String("Name"), Value: aws.String("node-1")}}
	if _, err := a.ec2.CreateTags(ctx(t), &ec2.CreateTagsInput{Resources: []string{id}, Tags: nameTag}); err != nil {
		t.Fatal(err)
	}
	if tags := tagsOf(id); tags["Name"] != "node-1" || tags["group"] != "g1" {
		t.Errorf("tags: %v", tags)
	}
	if _, err := a.ec2.DeleteTags(ctx(t), &ec2.DeleteTagsInput{Resources: []string{id}, Tags: []ec2types.Tag{{Key: aws.String("group")}}}); err != nil {
		t.Fatal(err)
	}
	if _, there := tagsOf(id)["group"]; there {
		t.Error("the tag was not deleted")
	}
	_, err = a.ec2.CreateTags(ctx(t), &ec2.CreateTagsInput{Resources: []string{id, "i-0000000000000000f"}, Tags: nameTag})
	wantCode(t, err, "InvalidInstanceID.NotFound")
	subnet := a.subnets(t)["us-east-1a"]
	if _, err := a.ec2.CreateTags(ctx(t), &ec2.CreateTagsInput{Resources: []string{subnet}, Tags: nameTag}); err != nil {
		t.Fatal(err)
	}
	if tags := tagsOf(subnet); tags["Name"] != "node-1" || tags["karpenter.sh/discovery"] != "tenon" {
		t.Errorf("tags of the subnet: %v", tags)
	}
}

func TestLaunchTemplates(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	name := a.template(t, "x86_64")
	_, err := a.ec2.CreateLaunchTemplate(ctx(t), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String(name), LaunchTemplateData: &ec2types.RequestLaunchTemplateData{ImageId: aws.String("ami-1")},
	})
	wantCode(t, err, "InvalidLaunchTemplateName.AlreadyExistsException")
	found, err := a.ec2.DescribeLaunchTemplates(ctx(t), &ec2.DescribeLaunchTemplatesInput{Filters: []ec2types.Filter{filterOf("tag:owner", "test")}})
	if err != nil || len(found.LaunchTemplates) != 1 || *found.LaunchTemplates[0].LaunchTemplateName != name {
		t.Errorf("templates: %+v, %v", found, err)
	}
	versions, err := a.ec2.DescribeLaunchTemplateVersions(ctx(t), &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateName: aws.String(name), Versions: []string{"$Latest"}})
	if err != nil || len(versions.LaunchTemplateVersions) != 1 {
		t.Fatalf("versions: %+v, %v", versions, err)
	}
	data := versions.LaunchTemplateVersions[0].LaunchTemplateData
	if *data.ImageId != a.image(t, "x86_64") || *data.BlockDeviceMappings[0].Ebs.VolumeSize != 30 || data.SecurityGroupIds[0] != "sg-0a5e7e0000000001" ||
		data.TagSpecifications[0].ResourceType != ec2types.ResourceTypeVolume || *data.UserData == "" {
		t.Errorf("template data: %+v", data)
	}
	if _, err := a.ec2.DeleteLaunchTemplate(ctx(t), &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String(name)}); err != nil {
		t.Fatal(err)
	}
	_, err = a.ec2.DescribeLaunchTemplates(ctx(t), &ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{name}})
	wantCode(t, err, "InvalidLaunchTemplateName.NotFoundException")
	_, err = a.ec2.CreateLaunchTemplate(ctx(t), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("other"), LaunchTemplateData: &ec2types.RequestLaunchTemplateData{UserData: aws.String("not base64!")},
	})
	wantCode(t, err, "InvalidUserData.Malformed")
}

func TestSubnetAddressesGoDown(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	name := a.template(t, "x86_64")
	free := func() int32 {
		t.Helper()
		out, err := a.ec2.DescribeSubnets(ctx(t), &ec2.DescribeSubnetsInput{SubnetIds: []string{a.subnets(t)["us-east-1a"]}})
		if err != nil {
			t.Fatal(err)
		}
		return *out.Subnets[0].AvailableIpAddressCount
	}
	before := free()
	if _, err := a.ec2.CreateFleet(ctx(t), fleetInput(name, 7, onDemand, a.override(t, "m5.large", "us-east-1a"))); err != nil {
		t.Fatal(err)
	}
	if got := before - free(); got != 7 {
		t.Errorf("7 instances took %d addresses", got)
	}
	ips := map[string]bool{}
	for _, i := range a.sim.Instances() {
		ips[i.PrivateDNS] = true
	}
	if len(ips) != 7 {
		t.Errorf("7 instances have %d host names", len(ips))
	}
}

func TestLaunchesThatDoNotFitTheType(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	device := func(card, index int32, kind string) ec2types.InstanceNetworkInterfaceSpecification {
		return ec2types.InstanceNetworkInterfaceSpecification{
			NetworkCardIndex: aws.Int32(card), DeviceIndex: aws.Int32(index), InterfaceType: aws.String(kind), SubnetId: aws.String(a.subnets(t)["us-east-1a"]),
		}
	}
	tracked := device(0, 0, "interface")
	tracked.ConnectionTrackingSpecification = &ec2types.ConnectionTrackingSpecificationRequest{UdpTimeout: aws.Int32(45)}
	for _, tc := range []struct {
		why, itype string
		interfaces []ec2types.InstanceNetworkInterfaceSpecification
		cpu        *ec2types.CpuOptionsRequest
		code       string
	}{
		{why: "one network card", itype: "m5.large",
			interfaces: []ec2types.InstanceNetworkInterfaceSpecification{device(0, 0, "interface"), device(1, 1, "interface")}, code: "InvalidParameterCombination"},
		{why: "three interfaces", itype: "m5.large",
			interfaces: []ec2types.InstanceNetworkInterfaceSpecification{device(0, 0, "interface"), device(0, 3, "interface")}, code: "AttachmentLimitExceeded"},
		{why: "no EFA", itype: "m5.24xlarge",
			interfaces: []ec2types.InstanceNetworkInterfaceSpecification{device(0, 0, "interface"), device(0, 1, "efa-only")}, code: "InvalidParameterCombination"},
		{why: "no Nitro", itype: "m4.large", interfaces: []ec2types.InstanceNetworkInterfaceSpecification{tracked}, code: "InvalidParameterCombination"},
		{why: "no nested virtualization", itype: "m5.large", interfaces: []ec2types.InstanceNetworkInterfaceSpecification{device(0, 0, "interface")},
			cpu: &ec2types.CpuOptionsRequest{NestedVirtualization: ec2types.NestedVirtualizationSpecificationEnabled}, code: "InvalidParameterCombination"},
	} {
		_, err := a.ec2.RunInstances(ctx(t), &ec2.RunInstancesInput{
			MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: ec2types.InstanceType(tc.itype), ImageId: aws.String(a.image(t, "x86_64")),
			NetworkInterfaces: tc.interfaces, CpuOptions: tc.cpu,
		})
		t.Log(tc.why)
		wantCode(t, err, tc.code)
	}
}
