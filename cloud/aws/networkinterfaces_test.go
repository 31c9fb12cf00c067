package aws_test

import (
	"slices"
	"testing"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/tenon-sh/tenon/cloud"
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
		prefixes   *int32
		want       []bool // whether each interface has an IPv6 address
	}{
		{why: "an interface with prefixes", prefixes: awssdk.Int32(2), want: []bool{true}},
		{why: "the one interface of a class that says nothing", want: []bool{true}},
		{why: "every interface with addresses", interfaces: []*awsv1.NetworkInterface{
			device(0, 0, awsv1.InterfaceTypeInterface), device(0, 1, awsv1.InterfaceTypeInterface),
		}, want: []bool{true, true}},
	} {
		t.Run(tc.why, func(t *testing.T) {
			t.Parallel()
			a := startAccount(t, ec2sim.Options{CatalogueFile: "testdata/catalogue.json", IPv6: true})
			class := a.NodeClass()
			class.Spec.NetworkInterfaces, class.Spec.IPPrefixCount = tc.interfaces, tc.prefixes
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
				if got := interfaces[n].Ipv6Prefixes; len(got) != int(awssdk.ToInt32(tc.prefixes)) {
					t.Errorf("interface %d has the IPv6 prefixes %+v", n, got)
				}
			}
		})
	}
}

// TestNodesOfAnIPv6ClusterGoWhereTheyGetIPv6Addresses has a subnet without IPv6 addresses beside the one of its zone, with
// more IPv4 addresses. EC2 would refuse launches there.
func TestNodesOfAnIPv6ClusterGoWhereTheyGetIPv6Addresses(t *testing.T) {
	t.Parallel()
	const both, other, onlyIPv4 = "subnet-0a5e7e0000000001", "subnet-0a5e7e0000000002", "subnet-0a5e7e0000000004"
	for reason, test := range map[string]struct {
		subnets []string
		want    map[string]string // by zone, the subnet of a launch; empty if nothing is offered there
	}{
		"the subnet with IPv6 addresses, although it has fewer of IPv4":        {[]string{both, other, onlyIPv4}, map[string]string{"us-east-1a": both, "us-east-1b": other}},
		"nothing is offered in a zone whose only subnet has no IPv6 addresses": {[]string{other, onlyIPv4}, map[string]string{"us-east-1a": "", "us-east-1b": other}},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			a := startAccount(t, ec2sim.Options{
				CatalogueFile: "testdata/catalogue.json", IPv6: true, Subnets: []ec2sim.Subnet{{Zone: "us-east-1a", CIDR: "192.168.4.0/24", OnlyIPv4: true}},
				Faults: ec2sim.Faults{FreeAddresses: map[string]int{both: 40}},
			})
			class := a.NodeClass()
			class.Spec.SubnetSelectorTerms = nil
			for _, id := range test.subnets {
				class.Spec.SubnetSelectorTerms = append(class.Spec.SubnetSelectorTerms, awsv1.SubnetSelectorTerm{ID: id})
			}
			a.resolve(a.provider, class)
			if !class.IsTrue("Ready") {
				t.Fatalf("the class is not ready: %+v", class.Status.Conditions)
			}
			found, err := a.provider.InstanceTypes(t.Context(), class)
			if err != nil {
				t.Fatal(err)
			}
			for zone, want := range test.want {
				offered := slices.ContainsFunc(found, func(i *cloud.InstanceType) bool {
					return i.Name == "m5.large" && slices.ContainsFunc(i.Offerings, func(o cloud.Offering) bool { return o.Zone == zone })
				})
				if offered != (want != "") {
					t.Errorf("m5.large is offered in %s: %t", zone, offered)
				}
				if want == "" {
					continue
				}
				result, err := a.provider.Launch(t.Context(), a.prepare(a.provider, class, zone, large("on-demand", zone)))
				if err != nil || len(result.Instances) != 1 || result.Instances[0].Subnet != want {
					t.Errorf("%s: launched %+v, %v; want %s", zone, result, err, want)
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
