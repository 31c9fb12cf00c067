package aws

import (
	"math"
	"testing"
)

func TestStaticPrice(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		region, instanceType string
		want                 float64
		why                  string
	}{
		{region: "us-east-1", instanceType: "m5.large", want: 0.096, why: "the unit itself"},
		{region: "us-east-1", instanceType: "m5.24xlarge", want: 4.608, why: "a multiple of large"},
		{region: "us-east-1", instanceType: "m5.metal", want: 4.608, why: "no multiple: spelled out"},
		{region: "us-east-1", instanceType: "t3.nano", want: 0.0052, why: "a fraction of large"},
		{region: "us-east-1", instanceType: "g5.xlarge", want: 1.006, why: "not proportional"},
		{region: "us-east-1", instanceType: "c6g.medium", want: 0.034, why: "arm64"},
		{region: "eu-west-1", instanceType: "m5.large", want: 0.096, why: "a commercial region has no table of its own"},
		{region: "us-gov-west-1", instanceType: "m5.large", want: 0.121, why: "GovCloud is dearer"},
		{region: "us-gov-west-1", instanceType: "a1.large", want: 0.051 * 1.25, why: "a type that GovCloud's table lacks is as dear as GovCloud is"},
		{region: "cn-north-1", instanceType: "m5.large", want: 1.013, why: "yuan"},
		{region: "cn-northwest-1", instanceType: "m5.large", want: 1.013, why: "the other region of China is in yuan as well"},
		{region: "cn-north-1", instanceType: "a1.large", want: 0.051 * 8.7, why: "a type that China's table lacks is in yuan all the same"},
	} {
		got, ok := staticPrice(tc.region, tc.instanceType)
		if !ok || math.Abs(got-tc.want) > 1e-6 {
			t.Errorf("staticPrice(%s, %s) = %v, %v; want %v (%s)", tc.region, tc.instanceType, got, ok, tc.want, tc.why)
		}
	}
	for _, unknown := range []string{"zz9.large", "m5.colossal", "m5"} {
		if got, ok := staticPrice("us-east-1", unknown); ok {
			t.Errorf("staticPrice(%s) = %v; want none", unknown, got)
		}
	}
}

// TestStaticPricesOfOtherPartitions compares the tables of GovCloud and China with those that Karpenter ships, price by
// price.
func TestStaticPricesOfOtherPartitions(t *testing.T) {
	t.Parallel()
	compared := map[string]int{}
	for _, file := range []string{"pricing/zz_generated.pricing_aws_us_gov.go", "pricing/zz_generated.pricing_aws_cn.go"} {
		for region, prices := range karpentersTable(t, file) {
			for instanceType, want := range prices {
				compared[region]++
				if got, ok := staticPrice(region, instanceType); !ok || math.Abs(got-want) > 1e-6 {
					t.Errorf("%s costs %v in %s; Karpenter's table says %v", instanceType, got, region, want)
				}
			}
		}
	}
	for _, region := range []string{"us-gov-east-1", "us-gov-west-1", "cn-north-1"} {
		if compared[region] < 100 {
			t.Errorf("%d prices of %s were compared: Karpenter's table was not read", compared[region], region)
		}
	}
}
