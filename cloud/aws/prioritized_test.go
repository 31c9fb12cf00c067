package aws

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/cloud"
)

// If prices are overlaid, EC2 is given priorities.
func TestFleetByPriority(t *testing.T) {
	t.Parallel()
	overrides := []Override{
		{InstanceType: "m5.xlarge", Subnet: "subnet-a", LaunchTemplate: "t", Price: 0.01}, {InstanceType: "m5.large", Subnet: "subnet-a", LaunchTemplate: "t", Price: 0.1},
		{InstanceType: "m5.large", Subnet: "subnet-b", LaunchTemplate: "u", Price: 0.2},
	}
	for name, test := range map[string]struct {
		reason, capacityType string
		prioritized          bool
		want                 string
	}{
		"OnDemand":            {reason: "EC2 knows its prices", capacityType: "on-demand", want: "lowest-price"},
		"Spot":                {reason: "and its depths", capacityType: "spot", want: "price-capacity-optimized"},
		"OverlaidOnDemand":    {reason: "it does not know ours", capacityType: "on-demand", prioritized: true, want: "prioritized"},
		"OverlaidReservation": {reason: "what is reserved is bought on demand", capacityType: "reserved", prioritized: true, want: "prioritized"},
		"OverlaidSpot":        {reason: "depth still goes first", capacityType: "spot", prioritized: true, want: "capacity-optimized-prioritized"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			input := fleet(fleetRequest{cloud.LaunchRequest{Token: "token", Count: 1, CapacityType: test.capacityType}, FleetDetails{Prioritized: test.prioritized, Overrides: overrides}})
			got := ""
			if input.SpotOptions != nil {
				got = string(input.SpotOptions.AllocationStrategy)
			}
			if input.OnDemandOptions != nil {
				got += string(input.OnDemandOptions.AllocationStrategy)
			}
			if got != test.want {
				t.Errorf("%s: strategy %q, want %q", test.reason, got, test.want)
			}
			want := map[string]*float64{"m5.xlarge/subnet-a": nil, "m5.large/subnet-a": nil, "m5.large/subnet-b": nil}
			if test.prioritized {
				want = map[string]*float64{"m5.xlarge/subnet-a": aws.Float64(0.01), "m5.large/subnet-a": aws.Float64(0.1), "m5.large/subnet-b": aws.Float64(0.2)}
			}
			if diff := cmp.Diff(want, prioritiesOf(input.LaunchTemplateConfigs)); diff != "" {
				t.Errorf("%s: priorities (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

func prioritiesOf(configs []types.FleetLaunchTemplateConfigRequest) map[string]*float64 {
	found := map[string]*float64{}
	for _, config := range configs {
		for i := range config.Overrides {
			override := &config.Overrides[i]
			found[string(override.InstanceType)+"/"+aws.ToString(override.SubnetId)] = override.Priority
		}
	}
	return found
}
