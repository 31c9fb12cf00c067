package aws_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// launch launches a group of on-demand instances.
func (a *account) launch(class *awsv1.EC2NodeClass, group string, count int) cloud.LaunchResult {
	a.t.Helper()
	request, err := a.provider.PrepareLaunch(a.t.Context(), a.spec(class, group, count))
	if err != nil {
		a.t.Fatal(err)
	}
	request.Token = "token of " + group
	result, err := a.provider.Launch(a.t.Context(), request)
	if err != nil {
		a.t.Fatal(err)
	}
	return result
}

func TestInstancesAreTaggedAtCreation(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	class := a.NodeClass()
	a.resolve(a.provider, class)
	a.launch(class, "group-1", 1)
	tags := maps.Clone(a.sim.Instances()[0].Tags)
	maps.DeleteFunc(tags, func(key, _ string) bool { return len(key) > 4 && key[:4] == "aws:" })
	want := map[string]string{
		"kubernetes.io/cluster/blue":     "owned",
		"eks:eks-cluster-name":           "blue",
		"karpenter.sh/nodepool":          "default",
		"karpenter.k8s.aws/ec2nodeclass": "default",
		"tenon.sh/launch-group":          "group-1",
		"team":                           "blue",
	}
	if diff := cmp.Diff(want, tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
}

func TestALaunchIsOneCall(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	class := a.NodeClass()
	a.resolve(a.provider, class)
	before := a.sim.CallCounts()
	for n := range 3 {
		a.launch(class, fmt.Sprint("group-", n), 10)
	}
	after := a.sim.CallCounts()
	for action, want := range map[string]int{
		"CreateFleet": 3, "CreateLaunchTemplate": 2, "DescribeSubnets": 0, "DescribeInstanceTypes": 0, "DescribeInstances": 0,
	} {
		if got := after[action].Total - before[action].Total; got != want {
			t.Errorf("three launches made %d calls of %s; want %d", got, action, want)
		}
	}
}

func TestConcurrentTerminationsShareCalls(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	class := a.NodeClass()
	a.resolve(a.provider, class)
	result := a.launch(class, "group-1", 100)
	var group errgroup.Group
	for _, instance := range result.Instances {
		group.Go(func() error { return a.provider.Terminate(t.Context(), []string{instance.ID}) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if alive := a.Alive(); len(alive) != 0 {
		t.Errorf("%d instances are alive", len(alive))
	}
	// A slow machine may need more than one batch, but never one for each instance.
	if calls := a.sim.CallCounts()["TerminateInstances"].Total; calls > 20 {
		t.Errorf("100 terminations made %d calls", calls)
	}
}

func TestOneMissingInstanceDoesNotSpareTheOthers(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	class := a.NodeClass()
	a.resolve(a.provider, class)
	result := a.launch(class, "group-1", 3)
	a.change(func(f *ec2sim.Faults) {
		f.Errors = []ec2sim.ErrorFault{{Action: "TerminateInstances", Code: "InvalidInstanceID.NotFound", Occurrence: ec2sim.Occurrence{Times: 1}}}
	})
	var ids []string
	for _, instance := range result.Instances {
		ids = append(ids, instance.ID)
	}
	if err := a.provider.Terminate(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
	if alive := a.Alive(); len(alive) != 0 {
		t.Errorf("%v are alive", alive)
	}
}

func TestPricesWithoutThePriceList(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.change(func(f *ec2sim.Faults) {
		f.Errors = []ec2sim.ErrorFault{{Action: "GetProducts", Code: "AccessDeniedException"}}
	})
	class := a.NodeClass()
	a.resolve(a.provider, class)
	if price := a.price("m5.large", "on-demand"); math.Abs(price-0.096) > 1e-9 {
		t.Errorf("m5.large costs %v without the price list; want the built-in 0.096", price)
	}
}

func TestSpotCostsLess(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	if spot, full := a.price("m5.large", "spot"), a.price("m5.large", "on-demand"); spot <= 0 || spot >= full {
		t.Errorf("m5.large costs %v as spot and %v on demand", spot, full)
	}
}

// price returns the price of the first offering of an instance type with a capacity type.
func (a *account) price(name, capacityType string) float64 {
	a.t.Helper()
	class := a.NodeClass()
	a.resolve(a.provider, class)
	instanceTypes, err := a.provider.InstanceTypes(a.t.Context(), class)
	if err != nil {
		a.t.Fatal(err)
	}
	i := slices.IndexFunc(instanceTypes, func(i *cloud.InstanceType) bool { return i.Name == name })
	if i < 0 {
		a.t.Fatalf("%s is not there", name)
	}
	for _, offering := range instanceTypes[i].Offerings {
		if offering.CapacityType == capacityType {
			return offering.Price
		}
	}
	a.t.Fatalf("%s is not sold as %s", name, capacityType)
	return 0
}
