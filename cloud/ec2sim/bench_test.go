package ec2sim_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// BenchmarkFleetOfThousand launches and ends fleets of 1,000 instances through the SDK, with the state on disk. It
// measures the simulator's own cost of a surge, which must not distort measurements of the product.
func BenchmarkFleetOfThousand(b *testing.B) {
	sim, err := ec2sim.New(ec2sim.Options{StateFile: filepath.Join(b.TempDir(), "state")})
	if err != nil {
		b.Fatal(err)
	}
	if err := sim.Start(); err != nil {
		b.Fatal(err)
	}
	defer sim.Close()
	cfg := aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String(sim.URL()), Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", ""),
	}
	client := ec2.NewFromConfig(cfg)
	image, err := ssm.NewFromConfig(cfg).GetParameter(b.Context(), &ssm.GetParameterInput{
		Name: aws.String("/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id"),
	})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := client.CreateLaunchTemplate(b.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("bench"), LaunchTemplateData: &ec2types.RequestLaunchTemplateData{ImageId: image.Parameter.Value},
	}); err != nil {
		b.Fatal(err)
	}
	n := 0
	for b.Loop() {
		n++
		in := fleetInput("bench", 1000, onDemand, ec2types.FleetLaunchTemplateOverridesRequest{InstanceType: "m5.large", AvailabilityZone: aws.String("us-east-1a")})
		in.ClientToken = aws.String(fmt.Sprint(n))
		out, err := client.CreateFleet(b.Context(), in)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := client.TerminateInstances(b.Context(), &ec2.TerminateInstancesInput{InstanceIds: launched(out)}); err != nil {
			b.Fatal(err)
		}
	}
}
