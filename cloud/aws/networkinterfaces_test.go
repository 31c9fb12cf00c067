package aws_test

import (
	"testing"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/tenon-sh/tenon/cloud/ec2sim"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

func TestNodesOfAnIPv6ClusterHaveIPv6Addresses(t *testing.T) {
	t.Parallel()
	device := func(card, index int32, kind awsv1.InterfaceType) *awsv1.NetworkInterface {
		return &awsv1.NetworkInterface{NetworkCardIndex: card, DeviceIndex: index, InterfaceType: kind}
	}
	for _, tc := range []struct {
		why        string
		interfaces []*awsv1.NetworkInterface
		want       []bool // whether each interface has an IPv6 address
	}{
		{why: "the one interface of a class that says nothing", want: []bool{true}},
		{why: "every interface with addresses", interfaces: []*awsv1.NetworkInterface{
			device(0, 0, awsv1.InterfaceTypeInterface), device(0, 1, awsv1.InterfaceTypeInterface),
		}, want: []bool{true, true}},
	} {
		t.Run(tc.why, func(t *testing.T) {
			t.Parallel()
			a := startAccount(t, ec2sim.Options{CatalogueFile: "testdata/catalogue.json", IPv6: true})
			class := a.NodeClass()
			class.Spec.NetworkInterfaces = tc.interfaces
			a.resolve(a.provider, class)
			if !class.IsTrue("Ready") {
				t.Fatalf("the class is not ready: %+v", class.Status.Conditions)
			}
			launched := a.launch(class, "group-1", 1)
			out, err := a.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{launched.Instances[0].ID}})
			if err != nil {
				t.Fatal(err)
			}
			interfaces := out.Reservations[0].Instances[0].NetworkInterfaces
			if len(interfaces) != len(tc.want) {
				t.Fatalf("the instance has %d interfaces; want %d", len(interfaces), len(tc.want))
			}
			for n, want := range tc.want {
				if got := interfaces[n].Ipv6Addresses; (len(got) == 1 && awssdk.ToBool(got[0].IsPrimaryIpv6)) != want {
					t.Errorf("interface %d has the IPv6 addresses %+v", n, got)
				}
			}
		})
	}
}

func TestAClassWithoutIPv6SubnetsIsNotReady(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.provider = a.newProviderOf(func(o *options) { o.ServiceCIDR = "fd00::/108" })
	class := a.NodeClass()
	a.resolve(a.provider, class)
	if class.IsTrue(awsv1.ConditionTypeValidationSucceeded) {
		t.Error("EC2 would give no instance an IPv6 address, and the class is ready all the same")
	}
}
