package ec2sim_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricingtypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// A parameter that the model has and no handler reads is refused by its name, because it would have no effect.
func TestParametersWithoutAnEffectAreRefused(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{Queues: []string{"q"}})
	url, err := a.sqs().GetQueueUrl(ctx(t), &sqs.GetQueueUrlInput{QueueName: aws.String("q")})
	if err != nil {
		t.Fatal(err)
	}
	template := func(name string, data *ec2types.RequestLaunchTemplateData) error {
		data.ImageId = aws.String(a.image(t, "x86_64"))
		return second(a.ec2.CreateLaunchTemplate(ctx(t), &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String(name), LaunchTemplateData: data}))
	}
	for name, err := range map[string]error{
		"LaunchTemplateData.HibernationOptions.Configured": template("a-name", &ec2types.RequestLaunchTemplateData{
			HibernationOptions: &ec2types.LaunchTemplateHibernationOptionsRequest{Configured: aws.Bool(true)}}),
		"LaunchTemplateData.NetworkInterface.1.PrivateIpAddress": template("b-name", &ec2types.RequestLaunchTemplateData{
			NetworkInterfaces: []ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{{
				DeviceIndex: aws.Int32(0), PrivateIpAddress: aws.String("192.168.32.9")}}}),
		"Placement.Affinity": second(a.ec2.RunInstances(ctx(t), &ec2.RunInstancesInput{
			DryRun: aws.Bool(true), MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: "m5.large", SubnetId: aws.String(a.subnets(t)["us-east-1a"]),
			ImageId: aws.String(a.image(t, "x86_64")), Placement: &ec2types.Placement{Affinity: aws.String("host")}})),
		"EndTime": second(a.ec2.DescribeSpotPriceHistory(ctx(t), &ec2.DescribeSpotPriceHistoryInput{EndTime: aws.Time(a.clock.Now())})),
		"MessageDeduplicationId": second(a.sqs().SendMessage(ctx(t), &sqs.SendMessageInput{
			QueueUrl: url.QueueUrl, MessageBody: aws.String("x"), MessageDeduplicationId: aws.String("1")})),
		"ParameterFilters": second(a.ssm().GetParametersByPath(ctx(t), &ssm.GetParametersByPathInput{
			Path: aws.String("/aws"), ParameterFilters: []ssmtypes.ParameterStringFilter{{Key: aws.String("Type")}}})),
	} {
		wantCode(t, err, "UnsupportedBySimulator")
		if err != nil && !strings.Contains(err.Error(), "the parameter "+name+" of") {
			t.Errorf("%s is not named: %v", name, err)
		}
	}
}

// A filter that EC2 documents and the simulator lacks is not refused as one that EC2 does not have.
func TestFiltersThatAreNotSimulated(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	for reason, tc := range map[string]struct{ filter, code string }{
		"EC2 documents it":  {filter: "enable-dns64", code: "UnsupportedBySimulator"},
		"EC2 knows no such": {filter: "enable-dns65", code: "InvalidParameterValue"},
	} {
		err := second(a.ec2.DescribeSubnets(ctx(t), &ec2.DescribeSubnetsInput{Filters: []ec2types.Filter{filterOf(tc.filter, "true")}}))
		wantCode(t, err, tc.code)
		if err == nil || !strings.Contains(err.Error(), tc.filter) {
			t.Errorf("%s: the filter is not named: %v", reason, err)
		}
	}
}

// The answer to a refused call is not saved under its token: the same call is refused again.
func TestARefusedCallHasNoAnswerToRepeat(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	in := fleetInput(a.template(t, "x86_64"), 1, onDemand, a.override(t, "m5.large", "us-east-1a"))
	in.ClientToken, in.ReplaceUnhealthyInstances = aws.String("token"), aws.Bool(true)
	for range 2 {
		wantCode(t, second(a.ec2.CreateFleet(ctx(t), in)), "UnsupportedBySimulator")
	}
}

// The requests of Karpenter 1.14 with everything that an EC2NodeClass can specify (its
// pkg/providers/launchtemplate/types.go, pkg/providers/instance/types.go and the Describe calls of its providers).
func TestTheRequestsOfKarpenterHaveEffects(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{IPv6: true, Queues: []string{"q"}})
	a.profile(t, "nodes")
	tags := []ec2types.Tag{{Key: aws.String("karpenter.sh/nodepool"), Value: aws.String("default")}}
	specifications := func(kinds ...ec2types.ResourceType) (out []ec2types.TagSpecification) {
		for _, kind := range kinds {
			out = append(out, ec2types.TagSpecification{ResourceType: kind, Tags: tags})
		}
		return out
	}
	data := &ec2types.RequestLaunchTemplateData{
		BlockDeviceMappings: []ec2types.LaunchTemplateBlockDeviceMappingRequest{{DeviceName: aws.String("/dev/xvda"), Ebs: &ec2types.LaunchTemplateEbsBlockDeviceRequest{
			DeleteOnTermination: aws.Bool(true), Encrypted: aws.Bool(true), VolumeType: ec2types.VolumeTypeGp3, Iops: aws.Int32(3000), Throughput: aws.Int32(125),
			KmsKeyId: aws.String("arn:aws:kms:us-east-1:123456789012:key/1"), VolumeSize: aws.Int32(100), VolumeInitializationRate: aws.Int32(100)}}},
		CpuOptions:         &ec2types.LaunchTemplateCpuOptionsRequest{NestedVirtualization: ec2types.NestedVirtualizationSpecificationDisabled},
		IamInstanceProfile: &ec2types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String("nodes")},
		Monitoring:         &ec2types.LaunchTemplatesMonitoringRequest{Enabled: aws.Bool(true)},
		UserData:           aws.String("IyEvYmluL3NoCg=="),
		ImageId:            aws.String(a.image(t, "x86_64")),
		MetadataOptions: &ec2types.LaunchTemplateInstanceMetadataOptionsRequest{
			HttpEndpoint: "enabled", HttpProtocolIpv6: "disabled", HttpPutResponseHopLimit: aws.Int32(1), HttpTokens: "required", InstanceMetadataTags: "disabled"},
		NetworkInterfaces: []ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{{
			NetworkCardIndex: aws.Int32(0), DeviceIndex: aws.Int32(0), Groups: []string{"sg-0a5e7e0000000001"}, InterfaceType: aws.String("interface"),
			AssociatePublicIpAddress: aws.Bool(false), PrimaryIpv6: aws.Bool(true), Ipv6AddressCount: aws.Int32(1),
			ConnectionTrackingSpecification: &ec2types.ConnectionTrackingSpecificationRequest{
				TcpEstablishedTimeout: aws.Int32(350), UdpStreamTimeout: aws.Int32(120), UdpTimeout: aws.Int32(60)}}},
		TagSpecifications: []ec2types.LaunchTemplateTagSpecificationRequest{
			{ResourceType: ec2types.ResourceTypeNetworkInterface, Tags: tags}, {ResourceType: ec2types.ResourceTypeSpotInstancesRequest, Tags: tags}},
		Placement:      &ec2types.LaunchTemplatePlacementRequest{Tenancy: ec2types.TenancyDefault},
		EnclaveOptions: &ec2types.LaunchTemplateEnclaveOptionsRequest{Enabled: aws.Bool(true)},
		CapacityReservationSpecification: &ec2types.LaunchTemplateCapacityReservationSpecificationRequest{
			CapacityReservationPreference: ec2types.CapacityReservationPreferenceNone},
	}
	name := aws.String("karpenter.k8s.aws/123")
	for _, dry := range []bool{true, false} {
		_, err := a.ec2.CreateLaunchTemplate(ctx(t), &ec2.CreateLaunchTemplateInput{
			LaunchTemplateName: name, LaunchTemplateData: data, TagSpecifications: specifications(ec2types.ResourceTypeLaunchTemplate), DryRun: aws.Bool(dry)})
		wantDry(t, "CreateLaunchTemplate", dry, err)
		in := fleetInput(aws.ToString(name), 1, spot, a.override(t, "m5.xlarge", "us-east-1a"))
		in.Context, in.DryRun = aws.String("context"), aws.Bool(dry)
		in.TagSpecifications = specifications(ec2types.ResourceTypeInstance, ec2types.ResourceTypeVolume, ec2types.ResourceTypeFleet)
		in.SpotOptions = &ec2types.SpotOptionsRequest{AllocationStrategy: ec2types.SpotAllocationStrategyPriceCapacityOptimized}
		in.LaunchTemplateConfigs[0].Overrides[0].ImageId, in.LaunchTemplateConfigs[0].Overrides[0].Priority = data.ImageId, aws.Float64(2)
		in.LaunchTemplateConfigs[0].Overrides[0].AvailabilityZone = aws.String("us-east-1a")
		if !dry {
			out, err := a.ec2.CreateFleet(ctx(t), in)
			if err != nil || len(launched(out)) != 1 {
				t.Errorf("CreateFleet: %+v, %v", out, err)
			}
		}
	}
	_, err := a.ec2.RunInstances(ctx(t), &ec2.RunInstancesInput{
		DryRun: aws.Bool(true), MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: "m5.xlarge",
		NetworkInterfaces: []ec2types.InstanceNetworkInterfaceSpecification{{
			NetworkCardIndex: aws.Int32(0), DeviceIndex: aws.Int32(0), InterfaceType: aws.String("interface"), SubnetId: aws.String(a.subnets(t)["us-east-1a"])}},
		LaunchTemplate:    &ec2types.LaunchTemplateSpecification{LaunchTemplateName: name, Version: aws.String("$Latest")},
		TagSpecifications: specifications(ec2types.ResourceTypeInstance, ec2types.ResourceTypeVolume, ec2types.ResourceTypeNetworkInterface)})
	wantCode(t, err, "InvalidParameterValue") // the tags of spot requests are not for on-demand
	_, err = a.ec2.DescribeInstanceTypes(ctx(t), &ec2.DescribeInstanceTypesInput{DryRun: aws.Bool(true)})
	wantDry(t, "DescribeInstanceTypes", true, err)
	url, err := a.sqs().GetQueueUrl(ctx(t), &sqs.GetQueueUrlInput{QueueName: aws.String("q")})
	if err != nil {
		t.Fatal(err)
	}
	for call, err := range map[string]error{
		"DescribeImages": second(a.ec2.DescribeImages(ctx(t), &ec2.DescribeImagesInput{Filters: []ec2types.Filter{filterOf("state", "available")},
			Owners: []string{"self", "amazon"}, IncludeDeprecated: aws.Bool(true), MaxResults: aws.Int32(1000)})),
		"DescribeSpotPriceHistory": second(a.ec2.DescribeSpotPriceHistory(ctx(t), &ec2.DescribeSpotPriceHistoryInput{
			ProductDescriptions: []string{"Linux/UNIX", "Linux/UNIX (Amazon VPC)"}, StartTime: aws.Time(a.clock.Now()), MaxResults: aws.Int32(2000)})),
		"DescribePlacementGroups": second(a.ec2.DescribePlacementGroups(ctx(t), &ec2.DescribePlacementGroupsInput{
			Filters: []ec2types.Filter{filterOf("state", "available")}})),
		"DescribeCapacityReservations": second(a.ec2.DescribeCapacityReservations(ctx(t), &ec2.DescribeCapacityReservationsInput{
			Filters: []ec2types.Filter{filterOf("state", "active"), filterOf("owner-id", "123456789012"), filterOf("instance-match-criteria", "targeted")}, MaxResults: aws.Int32(1000)})),
		"GetProducts": second(a.pricing().GetProducts(ctx(t), &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2"), MaxResults: aws.Int32(100),
			Filters: []pricingtypes.Filter{{Field: aws.String("marketoption"), Type: "TERM_MATCH", Value: aws.String("OnDemand")}}})),
		"ListInstanceProfiles": second(a.iam().ListInstanceProfiles(ctx(t), &iam.ListInstanceProfilesInput{PathPrefix: aws.String("/karpenter/")})),
		"DescribeCluster":      second(a.eks().DescribeCluster(ctx(t), &eks.DescribeClusterInput{Name: aws.String("tenon")})),
		"DescribeInstanceStatus": second(a.ec2.DescribeInstanceStatus(ctx(t), &ec2.DescribeInstanceStatusInput{
			IncludeAllInstances: aws.Bool(true), MaxResults: aws.Int32(1000), Filters: []ec2types.Filter{filterOf("event.code", "instance-stop")}})),
		"ReceiveMessage": second(a.sqs().ReceiveMessage(ctx(t), &sqs.ReceiveMessageInput{QueueUrl: url.QueueUrl, MaxNumberOfMessages: 10, VisibilityTimeout: 20,
			MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"SentTimestamp"}})),
	} {
		if err != nil {
			t.Errorf("%s: %v", call, err)
		}
	}
}

// wantDry fails the test unless a dry run gets DryRunOperation and another call succeeds.
func wantDry(t *testing.T, call string, dry bool, err error) {
	t.Helper()
	if dry {
		wantCode(t, err, "DryRunOperation")
	} else if err != nil {
		t.Errorf("%s: %v", call, err)
	}
}
