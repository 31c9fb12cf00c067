package ec2sim_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// clock is a clock that tests advance by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock {
	return &clock{now: time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)}
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// account is a running simulator with real SDK clients for it.
type account struct {
	sim   *ec2sim.Server
	clock *clock
	cfg   aws.Config
	ec2   *ec2.Client
}

func start(t *testing.T, opts ec2sim.Options) *account {
	t.Helper()
	a := &account{clock: newClock()}
	opts.Now = a.clock.Now
	sim, err := ec2sim.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sim.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	a.sim = sim
	a.cfg = aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String(sim.URL()),
		Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", ""),
		Retryer:     ec2sim.Once,
	}
	a.ec2 = ec2.NewFromConfig(a.cfg)
	return a
}

func (a *account) ssm() *ssm.Client         { return ssm.NewFromConfig(a.cfg) }
func (a *account) iam() *iam.Client         { return iam.NewFromConfig(a.cfg) }
func (a *account) eks() *eks.Client         { return eks.NewFromConfig(a.cfg) }
func (a *account) sqs() *sqs.Client         { return sqs.NewFromConfig(a.cfg) }
func (a *account) sts() *sts.Client         { return sts.NewFromConfig(a.cfg) }
func (a *account) pricing() *pricing.Client { return pricing.NewFromConfig(a.cfg) }

// wantCode fails the test unless the error has the API code.
func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok || api.ErrorCode() != code {
		t.Errorf("error is %v, want code %s", err, code)
	}
}

func ctx(t *testing.T) context.Context { return t.Context() }

// image returns the id of the recommended standard image for an architecture.
func (a *account) image(t *testing.T, arch string) string {
	t.Helper()
	out, err := a.ssm().GetParameter(ctx(t), &ssm.GetParameterInput{
		Name: aws.String("/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/" + arch + "/standard/recommended/image_id"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return aws.ToString(out.Parameter.Value)
}

// template creates a launch template for the architecture, and returns its name.
func (a *account) template(t *testing.T, arch string) string {
	t.Helper()
	name := "test/" + arch
	_, err := a.ec2.CreateLaunchTemplate(ctx(t), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String(name),
		LaunchTemplateData: &ec2types.RequestLaunchTemplateData{
			ImageId: aws.String(a.image(t, arch)), SecurityGroupIds: []string{"sg-0a5e7e0000000001"},
			UserData: aws.String("I2Nsb3VkLWNvbmZpZwo="),
			BlockDeviceMappings: []ec2types.LaunchTemplateBlockDeviceMappingRequest{{
				DeviceName: aws.String("/dev/xvda"),
				Ebs:        &ec2types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: aws.Int32(30), VolumeType: ec2types.VolumeTypeGp3, Encrypted: aws.Bool(true)},
			}},
			TagSpecifications: []ec2types.LaunchTemplateTagSpecificationRequest{{
				ResourceType: ec2types.ResourceTypeVolume, Tags: []ec2types.Tag{{Key: aws.String("disk"), Value: aws.String("root")}},
			}},
		},
		TagSpecifications: []ec2types.TagSpecification{{
			ResourceType: ec2types.ResourceTypeLaunchTemplate, Tags: []ec2types.Tag{{Key: aws.String("owner"), Value: aws.String("test")}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// subnets returns the ids of the seeded subnets, by zone.
func (a *account) subnets(t *testing.T) map[string]string {
	t.Helper()
	out, err := a.ec2.DescribeSubnets(ctx(t), &ec2.DescribeSubnetsInput{
		Filters: []ec2types.Filter{{Name: aws.String("tag:karpenter.sh/discovery"), Values: []string{"tenon"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	byZone := map[string]string{}
	for _, s := range out.Subnets {
		byZone[aws.ToString(s.AvailabilityZone)] = aws.ToString(s.SubnetId)
	}
	return byZone
}

// override returns an override for one pool of a fleet.
func (a *account) override(t *testing.T, instanceType, zone string) ec2types.FleetLaunchTemplateOverridesRequest {
	t.Helper()
	return ec2types.FleetLaunchTemplateOverridesRequest{
		InstanceType: ec2types.InstanceType(instanceType), SubnetId: aws.String(a.subnets(t)[zone]),
	}
}

// fleetInput returns a request for n instances from the overrides.
func fleetInput(template string, n int32, kind ec2types.DefaultTargetCapacityType, overrides ...ec2types.FleetLaunchTemplateOverridesRequest) *ec2.CreateFleetInput {
	return &ec2.CreateFleetInput{
		Type: ec2types.FleetTypeInstant,
		LaunchTemplateConfigs: []ec2types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &ec2types.FleetLaunchTemplateSpecificationRequest{
				LaunchTemplateName: aws.String(template), Version: aws.String("$Latest"),
			},
			Overrides: overrides,
		}},
		TargetCapacitySpecification: &ec2types.TargetCapacitySpecificationRequest{
			TotalTargetCapacity: aws.Int32(n), DefaultTargetCapacityType: kind,
		},
		TagSpecifications: []ec2types.TagSpecification{{
			ResourceType: ec2types.ResourceTypeInstance, Tags: []ec2types.Tag{{Key: aws.String("group"), Value: aws.String("g1")}},
		}},
	}
}

// launched returns the instance ids in an answer.
func launched(out *ec2.CreateFleetOutput) []string {
	var ids []string
	for _, i := range out.Instances {
		ids = append(ids, i.InstanceIds...)
	}
	return ids
}

func stateFile(t *testing.T) string { return filepath.Join(t.TempDir(), "state") }

// profile creates an instance profile with a role.
func (a *account) profile(t *testing.T, name string) {
	t.Helper()
	if _, err := a.iam().CreateInstanceProfile(ctx(t), &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String(name)}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.iam().AddRoleToInstanceProfile(ctx(t), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: aws.String(name), RoleName: aws.String("nodes")}); err != nil {
		t.Fatal(err)
	}
}
