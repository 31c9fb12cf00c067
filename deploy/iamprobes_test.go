package deploy_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/smithy-go"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/cloud/ec2sim/policy"
)

// The tags of the cluster's resources, which distinguish them from its neighbours'.
const (
	clusterTag = "kubernetes.io/cluster/blue"
	nameTag    = "eks:eks-cluster-name"
	classTag   = "karpenter.k8s.aws/ec2nodeclass"
	regionTag  = "topology.kubernetes.io/region"
	nodeRole   = "KarpenterNodeRole-blue"
)

// ownTags returns the tags of everything that the worker of cluster blue creates.
func ownTags() map[string]string {
	return map[string]string{clusterTag: "owned", nameTag: "blue", classTag: "default", regionTag: "us-east-1"}
}

// without returns ownTags without one tag, each of which a condition requires.
func without(key string) map[string]string {
	tags := ownTags()
	delete(tags, key)
	return tags
}

// principal is somebody who calls the simulated AWS.
type principal struct {
	documents            []*policy.Document
	ec2, away            *ec2.Client // away is EC2 in another region
	iam                  *iam.Client
	ssm                  *ssm.Client
	sqs                  *sqs.Client
	events               *eventbridge.Client
	eks                  *eks.Client
	shifts               *arczonalshift.Client
	scaling, scalingAway *autoscaling.Client // the latter in another region
	pricing              *pricing.Client
}

func newPrincipal(url, key string, documents []*policy.Document) *principal {
	cfg := awssdk.Config{
		Region: "us-east-1", BaseEndpoint: awssdk.String(url), Credentials: credentials.NewStaticCredentialsProvider(key, "secret", ""),
		Retryer: ec2sim.Once,
	}
	return &principal{
		documents: documents, ec2: ec2.NewFromConfig(cfg), away: ec2.NewFromConfig(cfg, func(o *ec2.Options) { o.Region = "eu-west-1" }),
		iam: iam.NewFromConfig(cfg), ssm: ssm.NewFromConfig(cfg), sqs: sqs.NewFromConfig(cfg), events: eventbridge.NewFromConfig(cfg), eks: eks.NewFromConfig(cfg), scaling: autoscaling.NewFromConfig(cfg),
		scalingAway: autoscaling.NewFromConfig(cfg, func(o *autoscaling.Options) { o.Region = "eu-west-1" }), shifts: arczonalshift.NewFromConfig(cfg), pricing: pricing.NewFromConfig(cfg),
	}
}

// refused reports whether a call failed for lack of a permission. Any other failure means that the policies allowed it.
func refused(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && slices.Contains([]string{"UnauthorizedOperation", "AccessDenied", "AccessDeniedException"}, api.ErrorCode())
}

// neighbourhood is an account with resources of the cluster blue and of others.
type neighbourhood struct {
	t             testing.TB
	admin         *principal
	url           string
	image, subnet string
	reservation   string
	// instances are instance ids by the tag that the instance lacks; "" lacks none.
	instances map[string]string
	profiles  map[string]string
	made      atomic.Int64
}

func newNeighbourhood(t testing.TB, policies ec2sim.Policies) *neighbourhood {
	t.Helper()
	sim, err := ec2sim.New(ec2sim.Options{Cluster: "blue", CatalogueFile: "../cloud/aws/testdata/catalogue.json", Queues: []string{"blue", "other"}, Policies: policies, Latency: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sim.Close() })
	n := &neighbourhood{t: t, url: sim.URL(), admin: newPrincipal(sim.URL(), "admin", nil), instances: map[string]string{}, profiles: map[string]string{}}
	images, err := n.admin.ec2.DescribeImages(t.Context(), &ec2.DescribeImagesInput{Filters: []types.Filter{{Name: awssdk.String("architecture"), Values: []string{"x86_64"}}}})
	n.must(err)
	subnets, err := n.admin.ec2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
	n.must(err)
	n.image, n.subnet = *images.Images[0].ImageId, *subnets.Subnets[0].SubnetId
	n.reservation, err = sim.Reserve(ec2sim.Reservation{Type: "m5.large", Zone: *subnets.Subnets[0].AvailabilityZone, Count: 5, Targeted: true})
	n.must(err)
	for _, lacks := range []string{"", clusterTag, classTag, regionTag} {
		n.profiles[lacks] = n.profile(without(lacks), nodeRole)
		n.template("lacks/"+lacks, without(lacks), &types.RequestLaunchTemplateData{})
		out, err := n.admin.ec2.RunInstances(t.Context(), &ec2.RunInstancesInput{
			ImageId: &n.image, SubnetId: &n.subnet, InstanceType: "m5.large", MinCount: awssdk.Int32(1), MaxCount: awssdk.Int32(1),
			TagSpecifications: []types.TagSpecification{{ResourceType: "instance", Tags: ec2Tags(without(lacks))}},
		})
		n.must(err)
		n.instances[lacks] = *out.Instances[0].InstanceId
	}
	n.template("spot", ownTags(), &types.RequestLaunchTemplateData{TagSpecifications: []types.LaunchTemplateTagSpecificationRequest{
		{ResourceType: "spot-instances-request", Tags: ec2Tags(ownTags())}}})
	n.template("snapshot", ownTags(), &types.RequestLaunchTemplateData{BlockDeviceMappings: []types.LaunchTemplateBlockDeviceMappingRequest{
		{DeviceName: awssdk.String("/dev/xvdb"), Ebs: &types.LaunchTemplateEbsBlockDeviceRequest{SnapshotId: awssdk.String("snap-0123456789abcdef0"), VolumeSize: awssdk.Int32(20)}}}})
	n.template("reserved", ownTags(), &types.RequestLaunchTemplateData{CapacityReservationSpecification: &types.LaunchTemplateCapacityReservationSpecificationRequest{
		CapacityReservationTarget: &types.CapacityReservationTarget{CapacityReservationId: &n.reservation}}})
	group, err := n.admin.ec2.CreatePlacementGroup(t.Context(), &ec2.CreatePlacementGroupInput{GroupName: awssdk.String("together"), Strategy: types.PlacementStrategyPartition})
	n.must(err)
	n.template("placed", ownTags(), &types.RequestLaunchTemplateData{Placement: &types.LaunchTemplatePlacementRequest{GroupId: group.PlacementGroup.GroupId}})
	n.template("admin", ownTags(), &types.RequestLaunchTemplateData{IamInstanceProfile: &types.LaunchTemplateIamInstanceProfileSpecificationRequest{
		Name: awssdk.String(n.profile(ownTags(), "Administrator"))}})
	return n
}

func (n *neighbourhood) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func ec2Tags(tags map[string]string) []types.Tag {
	var out []types.Tag
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, types.Tag{Key: awssdk.String(key), Value: awssdk.String(tags[key])})
	}
	return out
}

func iamTags(tags map[string]string) []iamtypes.Tag {
	var out []iamtypes.Tag
	for key, value := range tags {
		out = append(out, iamtypes.Tag{Key: awssdk.String(key), Value: awssdk.String(value)})
	}
	return out
}

// newName returns an unused name.
func (n *neighbourhood) newName() *string {
	return awssdk.String(fmt.Sprintf("thing-%d", n.made.Add(1)))
}

// profile creates an instance profile with a role.
func (n *neighbourhood) profile(tags map[string]string, role string) string {
	n.t.Helper()
	name := n.newName()
	_, err := n.admin.iam.CreateInstanceProfile(n.t.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: name, Path: awssdk.String("/karpenter/"), Tags: iamTags(tags)})
	n.must(err)
	_, err = n.admin.iam.AddRoleToInstanceProfile(n.t.Context(), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: name, RoleName: &role})
	n.must(err)
	return *name
}

// template creates a launch template that m5.large can be launched from.
func (n *neighbourhood) template(name string, tags map[string]string, data *types.RequestLaunchTemplateData) {
	n.t.Helper()
	data.ImageId = &n.image
	if data.IamInstanceProfile == nil {
		data.IamInstanceProfile = &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: awssdk.String(n.profiles[""])}
	}
	for _, kind := range []types.ResourceType{"volume", "network-interface"} {
		data.TagSpecifications = append(data.TagSpecifications, types.LaunchTemplateTagSpecificationRequest{ResourceType: kind, Tags: ec2Tags(ownTags())})
	}
	_, err := n.admin.ec2.CreateLaunchTemplate(n.t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: &name, LaunchTemplateData: data, TagSpecifications: []types.TagSpecification{{ResourceType: "launch-template", Tags: ec2Tags(tags)}},
	})
	n.must(err)
}

// launch requests a fleet from a template, as a dry run.
func (n *neighbourhood) launch(p *principal, template string, capacity types.DefaultTargetCapacityType, tags map[string]string) error {
	input := &ec2.CreateFleetInput{
		DryRun: awssdk.Bool(true), Type: types.FleetTypeInstant,
		LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: &template, Version: awssdk.String("$Latest")},
			Overrides:                   []types.FleetLaunchTemplateOverridesRequest{{InstanceType: "m5.large", SubnetId: &n.subnet}},
		}},
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{TotalTargetCapacity: awssdk.Int32(1), DefaultTargetCapacityType: capacity},
	}
	for _, kind := range []types.ResourceType{"fleet", "instance"} {
		input.TagSpecifications = append(input.TagSpecifications, types.TagSpecification{ResourceType: kind, Tags: ec2Tags(tags)})
	}
	_, err := p.ec2.CreateFleet(n.t.Context(), input)
	return err
}

// run requests an instance from a template of the cluster's, as a dry run.
func (n *neighbourhood) run(p *principal, tags map[string]string) error {
	input := &ec2.RunInstancesInput{
		DryRun: awssdk.Bool(true), InstanceType: "m5.large", SubnetId: &n.subnet, MinCount: awssdk.Int32(1), MaxCount: awssdk.Int32(1),
		LaunchTemplate: &types.LaunchTemplateSpecification{LaunchTemplateName: awssdk.String("lacks/"), Version: awssdk.String("$Latest")},
	}
	for _, kind := range []types.ResourceType{"instance", "volume", "network-interface"} {
		input.TagSpecifications = append(input.TagSpecifications, types.TagSpecification{ResourceType: kind, Tags: ec2Tags(tags)})
	}
	_, err := p.ec2.RunInstances(n.t.Context(), input)
	return err
}

func (n *neighbourhood) makeTemplate(p *principal, tags map[string]string) error {
	_, err := p.ec2.CreateLaunchTemplate(n.t.Context(), &ec2.CreateLaunchTemplateInput{
		DryRun: awssdk.Bool(true), LaunchTemplateName: n.newName(), LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: &n.image},
		TagSpecifications: []types.TagSpecification{{ResourceType: "launch-template", Tags: ec2Tags(tags)}},
	})
	return err
}

func (n *neighbourhood) deleteTemplate(p *principal, name string) error {
	_, err := p.ec2.DeleteLaunchTemplate(n.t.Context(), &ec2.DeleteLaunchTemplateInput{DryRun: awssdk.Bool(true), LaunchTemplateName: &name})
	return err
}

func (n *neighbourhood) terminate(p *principal, id string) error {
	_, err := p.ec2.TerminateInstances(n.t.Context(), &ec2.TerminateInstancesInput{DryRun: awssdk.Bool(true), InstanceIds: []string{id}})
	return err
}

func (n *neighbourhood) tag(p *principal, id string, tags map[string]string) error {
	_, err := p.ec2.CreateTags(n.t.Context(), &ec2.CreateTagsInput{DryRun: awssdk.Bool(true), Resources: []string{id}, Tags: ec2Tags(tags)})
	return err
}

func (n *neighbourhood) makeProfile(p *principal, tags map[string]string) error {
	_, err := p.iam.CreateInstanceProfile(n.t.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: n.newName(), Path: awssdk.String("/karpenter/"), Tags: iamTags(tags)})
	return err
}

// tagProfile tags a new profile that has other tags, since the call may succeed.
func (n *neighbourhood) tagProfile(p *principal, has, gets map[string]string) error {
	_, err := p.iam.TagInstanceProfile(n.t.Context(), &iam.TagInstanceProfileInput{InstanceProfileName: awssdk.String(n.profile(has, nodeRole)), Tags: iamTags(gets)})
	return err
}

// deleteProfile gets as far as IAM's refusal to delete a profile that has a role.
func (n *neighbourhood) deleteProfile(p *principal, name string) error {
	_, err := p.iam.DeleteInstanceProfile(n.t.Context(), &iam.DeleteInstanceProfileInput{InstanceProfileName: &name})
	return err
}

// stripProfile removes from a profile a role that it does not have, which IAM reports as not found.
func (n *neighbourhood) stripProfile(p *principal, name string) error {
	_, err := p.iam.RemoveRoleFromInstanceProfile(n.t.Context(), &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: &name, RoleName: awssdk.String("nobody")})
	return err
}

// addRole adds a role to a profile that has one already, which IAM refuses as one too many.
func (n *neighbourhood) addRole(p *principal, name, role string) error {
	_, err := p.iam.AddRoleToInstanceProfile(n.t.Context(), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: &name, RoleName: &role})
	return err
}

// passRole evaluates only the policies: in the simulator a role can be passed to EC2 only.
func passRole(p *principal, partition, service string) error {
	need := policy.Request{
		Action: "iam:PassRole", Resource: "arn:" + partition + ":iam::123456789012:role/" + nodeRole,
		Keys: map[string][]string{"iam:PassedToService": {service}},
	}
	if policy.Decide(p.documents, need) != policy.Allow {
		return &smithy.GenericAPIError{Code: "AccessDenied"}
	}
	return nil
}

// ignore discards the answer of a read.
func ignore[I, O, F any](ctx context.Context, call func(context.Context, *I, ...F) (O, error)) error {
	_, err := call(ctx, new(I))
	return err
}

func queueURL(url, name string) *string { return awssdk.String(url + "/123456789012/" + name) }

func deleteBatch(url string) *sqs.DeleteMessageBatchInput {
	return &sqs.DeleteMessageBatchInput{QueueUrl: queueURL(url, "blue"), Entries: []sqstypes.DeleteMessageBatchRequestEntry{{Id: awssdk.String("1"), ReceiptHandle: awssdk.String("none")}}}
}
