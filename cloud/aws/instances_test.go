package aws

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

func TestReservedInstances(t *testing.T) {
	t.Parallel()
	target := &types.CapacityReservationTargetResponse{CapacityReservationId: aws.String("cr-1")}
	for reason, tc := range map[string]struct {
		use  *types.CapacityReservationSpecificationResponse
		want string
	}{
		"the target alone":        {&types.CapacityReservationSpecificationResponse{CapacityReservationTarget: target}, karpv1.CapacityTypeReserved},
		"the preference alone":    {&types.CapacityReservationSpecificationResponse{CapacityReservationPreference: "capacity-reservations-only"}, karpv1.CapacityTypeReserved},
		"it runs in an open one":  {&types.CapacityReservationSpecificationResponse{CapacityReservationPreference: "open"}, karpv1.CapacityTypeOnDemand},
		"nothing is said of that": {nil, karpv1.CapacityTypeOnDemand},
	} {
		r := &instanceReader{subnets: newSubnetPool(nil, nil)}
		got := r.read(&types.Instance{CapacityReservationId: aws.String("cr-1"), CapacityReservationSpecification: tc.use})
		if got.CapacityType != tc.want {
			t.Errorf("%s: capacity type %q, want %q", reason, got.CapacityType, tc.want)
		}
	}
}
