package ec2sim_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// imageNames returns the image names in the answer of DescribeImages, sorted.
func (a *account) imageNames(t *testing.T, in *ec2.DescribeImagesInput) []string {
	t.Helper()
	out, err := a.ec2.DescribeImages(ctx(t), in)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, im := range out.Images {
		names = append(names, aws.ToString(im.Name))
	}
	slices.Sort(names)
	return names
}

// An image created through the control endpoint can be tagged, copied, deprecated and deregistered by its owner, and all
// of that survives a restart.
func TestTheLifeOfAnImage(t *testing.T) {
	t.Parallel()
	path := stateFile(t)
	a := start(t, ec2sim.Options{StateFile: path})
	if status := a.tell(t, "/_sim/image", `{"name":"golden","arch":"x86_64","owner":"210987654321","shared":true,"created":"2026-11-01T00:00:00Z"}`); status != 200 {
		t.Fatalf("status %d", status)
	}
	golden := ec2sim.ImageID("golden")
	if _, err := a.ec2.CreateTags(ctx(t), &ec2.CreateTagsInput{Resources: []string{golden}, Tags: []ec2types.Tag{{Key: aws.String("team"), Value: aws.String("blue")}}}); err != nil {
		t.Fatal(err)
	}
	copied, err := a.ec2.CopyImage(ctx(t), &ec2.CopyImageInput{
		Name: aws.String("golden"), SourceImageId: aws.String(golden), SourceRegion: aws.String("us-east-1"), CopyImageTags: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	tagged := &ec2.DescribeImagesInput{Filters: []ec2types.Filter{filterOf("tag:team", "blue")}}
	if got := a.imageNames(t, tagged); !slices.Equal(got, []string{"golden", "golden"}) {
		t.Errorf("images with the tag: %v", got)
	}
	own := &ec2.DescribeImagesInput{Owners: []string{"self"}}
	if got := a.imageNames(t, own); !slices.Equal(got, []string{"golden"}) {
		t.Errorf("images of our own: %v", got)
	}
	at := aws.Time(a.clock.Now().Add(time.Hour))
	_, err = a.ec2.EnableImageDeprecation(ctx(t), &ec2.EnableImageDeprecationInput{ImageId: aws.String(golden), DeprecateAt: at})
	wantCode(t, err, "AuthFailure") // only its owner may do that
	if _, err = a.ec2.EnableImageDeprecation(ctx(t), &ec2.EnableImageDeprecationInput{ImageId: copied.ImageId, DeprecateAt: at}); err != nil {
		t.Fatal(err)
	}
	if err := a.sim.Close(); err != nil {
		t.Fatal(err)
	}
	again := start(t, ec2sim.Options{StateFile: path})
	out, err := again.ec2.DescribeImages(ctx(t), own)
	if err != nil || len(out.Images) != 1 || !strings.HasPrefix(aws.ToString(out.Images[0].DeprecationTime), "2026-11-21T13:00") {
		t.Fatalf("after a restart: %+v, %v", out, err)
	}
	if _, err := again.ec2.DeregisterImage(ctx(t), &ec2.DeregisterImageInput{ImageId: copied.ImageId}); err != nil {
		t.Fatal(err)
	}
	if got := again.imageNames(t, own); got != nil {
		t.Errorf("after it was deregistered: %v", got)
	}
	_, err = again.ec2.RunInstances(ctx(t), &ec2.RunInstancesInput{
		MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: "m5.large", ImageId: copied.ImageId, SubnetId: aws.String(again.subnets(t)["us-east-1a"])})
	wantCode(t, err, "InvalidAMIID.Unavailable")
}

// Amazon's image lines, by the parameters that EKS documents for them.
func TestAmazonsImages(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	for parameter, want := range map[string]string{
		"/aws/service/eks/optimized-ami/1.32/amazon-linux-2/recommended/image_id":                                "amazon-eks-node-1.32-v20251112",
		"/aws/service/eks/optimized-ami/1.32/amazon-linux-2-gpu/recommended/image_id":                            "amazon-eks-gpu-node-1.32-v20251112",
		"/aws/service/eks/optimized-ami/1.32/amazon-linux-2-arm64/amazon-eks-arm64-node-1.32-v20251029/image_id": "amazon-eks-arm64-node-1.32-v20251029",
		"/aws/service/eks/optimized-ami/1.33/amazon-linux-2/recommended/image_id":                                "",
		"/aws/service/ami-windows-latest/Windows_Server-2022-English-Core-EKS_Optimized-1.36/image_id":           "Windows_Server-2022-English-Core-EKS_Optimized-1.36-2026.11.02",
		"/aws/service/ami-windows-latest/Windows_Server-2025-English-Core-EKS_Optimized-1.34/image_id":           "",
		"/aws/service/bottlerocket/aws-k8s-1.36-nvidia/arm64/latest/image_id":                                    "bottlerocket-aws-k8s-1.36-nvidia-aarch64-v1.51.0",
	} {
		out, err := a.ssm().GetParameter(ctx(t), &ssm.GetParameterInput{Name: aws.String(parameter)})
		if want == "" {
			wantCode(t, err, "ParameterNotFound")
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", parameter, err)
			continue
		}
		if got := a.imageNames(t, &ec2.DescribeImagesInput{ImageIds: []string{*out.Parameter.Value}}); !slices.Equal(got, []string{want}) {
			t.Errorf("%s leads to %v, want %s", parameter, got, want)
		}
	}
}

func TestParametersOfTheAccount(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{Parameters: map[string]string{"/team/image": "ami-1"}})
	for range 2 {
		if status := a.tell(t, "/_sim/parameter", `{"name":"plain","value":"ami-2"}`); status != 200 {
			t.Fatalf("status %d", status)
		}
	}
	for name, want := range map[string]string{
		"/team/image": "ami-1", "plain": "ami-2", "arn:aws:ssm:us-east-1:123456789012:parameter/team/image": "ami-1",
		"arn:aws:ssm:us-east-1:123456789012:parameter/plain": "ami-2",
	} {
		out, err := a.ssm().GetParameter(ctx(t), &ssm.GetParameterInput{Name: aws.String(name), WithDecryption: aws.Bool(true)})
		if err != nil || aws.ToString(out.Parameter.Value) != want {
			t.Errorf("%s: %+v, %v; want %s", name, out, err, want)
		}
	}
	if a.sim.SetParameter("/aws/service/x", "ami-3") == nil {
		t.Error("a parameter of Amazon's was written")
	}
}
