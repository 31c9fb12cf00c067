package aws

import (
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

func TestBranchInterfaces(t *testing.T) {
	t.Parallel()
	if _, err := branches(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{"m5.large": 9, "c5.4xlarge": 54, "a1.large": 9, "t3.large": 0, "zz9.large": 0} {
		if got := branchInterfaces(name); got != want {
			t.Errorf("%s has %d branch interfaces; want %d", name, got, want)
		}
	}
}

// TestNetworkBandwidths compares the label of every instance type with the one Karpenter gives it.
func TestNetworkBandwidths(t *testing.T) {
	t.Parallel()
	table, err := bandwidths()
	if err != nil {
		t.Fatal(err)
	}
	karpenters := karpentersTable(t, "instancetype/zz_generated.bandwidth.go")[""]
	if len(karpenters) < 1000 {
		t.Fatalf("Karpenter's table has %d types only: it was not read", len(karpenters))
	}
	for name := range table {
		if _, ok := karpenters[name]; !ok {
			t.Errorf("%s is labelled %d; Karpenter gives it no such label", name, table[name])
		}
	}
	for name, mbps := range karpenters {
		want := strconv.FormatInt(int64(mbps), 10)
		if got := labelsOf(name)[awsv1.LabelInstanceNetworkBandwidth]; got != want {
			t.Errorf("%s is labelled %q; Karpenter labels it %s", name, got, want)
		}
	}
	if got, there := labelsOf("m4.large")[awsv1.LabelInstanceNetworkBandwidth]; there {
		t.Errorf("m4.large, whose bandwidth AWS calls moderate, is labelled %q", got)
	}
}

// labelsOf returns the labels of a type of which EC2 reports a bandwidth of 0.45 Gbit/s.
func labelsOf(name string) map[string]string {
	return machineLabels(&types.InstanceTypeInfo{
		ProcessorInfo: &types.ProcessorInfo{},
		NetworkInfo:   &types.NetworkInfo{NetworkCards: []types.NetworkCardInfo{{BaselineBandwidthInGbps: aws.Float64(0.45)}}},
	}, &machine{name: name})
}
