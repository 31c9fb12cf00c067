package offline

import (
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloud/aws"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// TestAnswersAreTheSimulators has the provider ask a simulated EC2 over HTTP, whose answers are held against AWS's own model, and
// expects the instance types that are found out offline.
func TestAnswersAreTheSimulators(t *testing.T) {
	t.Parallel()
	for region, zones := range map[string][]string{
		"us-east-1":  {"us-east-1a", "us-east-1b", "us-east-1c"},
		"us-west-2":  {"us-west-2b", "us-west-2d"},
		"cn-north-1": {"cn-north-1a", "cn-north-1b"},
	} {
		sim, err := ec2sim.New(ec2sim.Options{Cluster: account, Region: region, Zones: zones, Latency: time.Nanosecond})
		if err != nil {
			t.Fatal(err)
		}
		if err := sim.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = sim.Close() })
		provider, err := aws.NewFromConfig(awssdk.Config{
			Region: region, BaseEndpoint: awssdk.String(sim.URL()), Credentials: credentials.NewStaticCredentialsProvider("offline", "offline", ""),
		}, assumptions())
		if err != nil {
			t.Fatal(err)
		}
		asked := &Account{provider: provider, region: region}
		assumed, err := New(Options{Region: region, Zones: zones})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = asked.Close(), assumed.Close() })
		for _, alias := range []string{"al2023@latest", "bottlerocket@latest", "windows2022@latest", "windows2025@latest", "al2@latest"} {
			class := &awsv1.EC2NodeClass{}
			class.Name = "default"
			class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: alias}}
			want, wantNotes, err := asked.InstanceTypes(t.Context(), class)
			if err != nil {
				t.Fatal(err)
			}
			got, gotNotes, err := assumed.InstanceTypes(t.Context(), class)
			if err != nil {
				t.Fatal(err)
			}
			if len(want) < 50 {
				t.Errorf("%s in %s: the simulator has %d types", alias, region, len(want))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s in %s: types (-simulated +offline):\n%.3000s", alias, region, diff)
			}
			if diff := cmp.Diff(wantNotes, gotNotes); diff != "" {
				t.Errorf("%s in %s: notes (-simulated +offline):\n%s", alias, region, diff)
			}
		}
	}
}
