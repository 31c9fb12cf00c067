package ec2sim_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// Each kind of resource has its own lag, during which launches do not see a new resource.
func TestEveryKindHasItsLag(t *testing.T) {
	t.Parallel()
	lag := ec2sim.Duration(10 * time.Second)
	for kind, tc := range map[string]struct {
		faults ec2sim.Faults
		code   string
	}{
		"template": {ec2sim.Faults{TemplateLag: lag}, "InvalidLaunchTemplateName.NotFoundException"},
		"profile":  {ec2sim.Faults{ProfileLag: lag}, "InvalidParameterValue"},
		"group":    {ec2sim.Faults{GroupLag: lag}, "InvalidGroup.NotFound"},
		"image":    {ec2sim.Faults{ImageLag: lag}, "InvalidAMIID.NotFound"},
	} {
		a := start(t, ec2sim.Options{Faults: tc.faults})
		a.profile(t, "nodes")
		image, err := a.sim.AddImage(ec2sim.Image{Name: "golden", Arch: "x86_64"})
		if err != nil {
			t.Fatal(err)
		}
		group, err := a.ec2.CreateSecurityGroup(ctx(t), &ec2.CreateSecurityGroupInput{GroupName: aws.String("nodes"), Description: aws.String("of nodes")})
		if err != nil {
			t.Fatal(err)
		}
		name := a.changedTemplate(t, "of-all", func(data *ec2types.RequestLaunchTemplateData) {
			data.ImageId, data.SecurityGroupIds = aws.String(image), []string{aws.ToString(group.GroupId)}
			data.IamInstanceProfile = &ec2types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String("nodes")}
		})
		run := func() error {
			_, err := a.ec2.RunInstances(ctx(t), &ec2.RunInstancesInput{
				MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: "m5.large", SubnetId: aws.String(a.subnets(t)["us-east-1a"]),
				LaunchTemplate: &ec2types.LaunchTemplateSpecification{LaunchTemplateName: aws.String(name)}})
			return err
		}
		t.Log(kind)
		wantCode(t, run(), tc.code)
		a.clock.Advance(time.Duration(lag) - 1)
		wantCode(t, run(), tc.code)
		a.clock.Advance(1)
		if err := run(); err != nil {
			t.Errorf("%s, when the lag has passed: %v", kind, err)
		}
	}
}

// Describe calls show old tags until the tag lag has passed, for every kind of resource.
func TestTagsAreSeenLate(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{Images: []ec2sim.Image{{Name: "golden", Arch: "x86_64"}}, Faults: ec2sim.Faults{TagLag: ec2sim.Duration(10 * time.Second)}})
	out, err := a.ec2.CreateFleet(ctx(t), fleetInput(a.template(t, "x86_64"), 1, onDemand, a.override(t, "m5.large", "us-east-1a")))
	if err != nil {
		t.Fatal(err)
	}
	tag := []ec2types.Tag{{Key: aws.String("team"), Value: aws.String("blue")}}
	resources := []string{launched(out)[0], a.subnets(t)["us-east-1a"], "sg-0a5e7e0000000001", ec2sim.ImageID("golden")}
	filters := []ec2types.Filter{filterOf("tag:team", "blue")}
	found := func() (n int) {
		t.Helper()
		for _, err := range []error{
			count(&n, func() (int, error) {
				out, err := a.ec2.DescribeInstances(ctx(t), &ec2.DescribeInstancesInput{Filters: filters})
				return len(out.Reservations), err
			}),
			count(&n, func() (int, error) {
				out, err := a.ec2.DescribeSubnets(ctx(t), &ec2.DescribeSubnetsInput{Filters: filters})
				return len(out.Subnets), err
			}),
			count(&n, func() (int, error) {
				out, err := a.ec2.DescribeSecurityGroups(ctx(t), &ec2.DescribeSecurityGroupsInput{Filters: filters})
				return len(out.SecurityGroups), err
			}),
			count(&n, func() (int, error) {
				out, err := a.ec2.DescribeImages(ctx(t), &ec2.DescribeImagesInput{Filters: filters})
				return len(out.Images), err
			}),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	if _, err := a.ec2.CreateTags(ctx(t), &ec2.CreateTagsInput{Resources: resources, Tags: tag}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{0, 0}, {10*time.Second - 1, 0}, {1, 4}} {
		a.clock.Advance(step.after)
		if n := found(); n != step.want {
			t.Errorf("after another %v %d resources show the tag, want %d", step.after, n, step.want)
		}
	}
	if _, err := a.ec2.DeleteTags(ctx(t), &ec2.DeleteTagsInput{Resources: resources, Tags: tag}); err != nil {
		t.Fatal(err)
	}
	if n := found(); n != 4 {
		t.Errorf("%d resources show the tag that is being deleted, want 4", n)
	}
	a.clock.Advance(10 * time.Second)
	if n := found(); n != 0 {
		t.Errorf("%d resources show the deleted tag", n)
	}
}

// count adds the number that call finds to sum.
func count(sum *int, call func() (int, error)) error {
	n, err := call()
	*sum += n
	return err
}
