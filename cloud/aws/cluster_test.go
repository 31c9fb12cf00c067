package aws_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

func TestWhatIsKnownOfTheClusterIsNotAskedOfEKS(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		why    string
		change func(*options)
		calls  int
	}{
		{why: "everything is given but the version, which the API server says", change: func(o *options) {
			o.ClusterEndpoint, o.ClusterCA, o.ServiceCIDR = "https://api.blue", "Q0E=", "10.100.0.0/16"
		}, calls: 0},
		{why: "the service range is open", change: func(o *options) { o.ClusterEndpoint, o.ClusterCA = "https://api.blue", "Q0E=" }, calls: 1},
	} {
		t.Run(tc.why, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t)
			provider := a.newProviderOf(func(o *options) {
				tc.change(o)
				o.ServerVersion = func(context.Context) (string, error) { return "1.33", nil }
			})
			class := a.NodeClass()
			a.resolve(provider, class)
			if !class.IsTrue("Ready") {
				t.Fatalf("the class is not ready: %+v", class.Status.Conditions)
			}
			if !slices.ContainsFunc(class.Status.AMIs, func(i awsv1.AMI) bool { return strings.Contains(i.Name, "-1.33-") }) {
				t.Errorf("the images are %+v; want those of the API server's version, 1.33", class.Status.AMIs)
			}
			if got := a.sim.CallCounts()["DescribeCluster"].Total; got != tc.calls {
				t.Errorf("EKS was asked %d times; want %d", got, tc.calls)
			}
		})
	}
}
