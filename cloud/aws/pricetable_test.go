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
		{"m5.large", 0.096, "the unit itself"},
		{"m5.24xlarge", 4.608, "a multiple of large"},
		{"m5.metal", 4.608, "no multiple: spelled out"},
		{"t3.nano", 0.0052, "a fraction of large"},
		{"g5.xlarge", 1.006, "not proportional"},
		{"c6g.medium", 0.034, "arm64"},
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
