package ec2sim_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// TestParametersAreKeptWhereAsked checks that only calls of the named actions keep their parameters.
func TestParametersAreKeptWhereAsked(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	ask := func() {
		filters := []ec2types.Filter{{Name: aws.String("vpc-id"), Values: []string{"vpc-1"}}}
		if _, err := a.ec2.DescribeSubnets(ctx(t), &ec2.DescribeSubnetsInput{Filters: filters}); err != nil {
			t.Fatal(err)
		}
	}
	ask()
	a.sim.KeepParameters("Describe*")
	ask()
	a.sim.KeepParameters("Create*")
	ask()
	calls := a.sim.Calls("DescribeSubnets")
	for i, want := range []string{"", "vpc-1", ""} {
		if got := calls[i].Parameters["Filter.1.Value.1"]; got != want {
			t.Errorf("call %d has the value %q, want %q", i, got, want)
		}
	}
}
