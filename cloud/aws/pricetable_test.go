package aws

import (
	"math"
	"testing"
)

func TestStaticPrice(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		instanceType string
		want         float64
		why          string
	}{
		{instanceType: "m5.large", want: 0.096, why: "the unit itself"},
		{instanceType: "m5.24xlarge", want: 4.608, why: "a multiple of large"},
		{instanceType: "m5.metal", want: 4.608, why: "no multiple: spelled out"},
		{instanceType: "t3.nano", want: 0.0052, why: "a fraction of large"},
		{instanceType: "g5.xlarge", want: 1.006, why: "not proportional"},
		{instanceType: "c6g.medium", want: 0.034, why: "arm64"},
	} {
		got, ok := staticPrice(tc.instanceType)
		if !ok || math.Abs(got-tc.want) > 1e-6 {
			t.Errorf("staticPrice(%s) = %v, %v; want %v (%s)", tc.instanceType, got, ok, tc.want, tc.why)
		}
	}
	for _, unknown := range []string{"zz9.large", "m5.colossal", "m5"} {
		if got, ok := staticPrice(unknown); ok {
			t.Errorf("staticPrice(%s) = %v; want none", unknown, got)
		}
	}
}
