package ec2sim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// small is a subnet with 27 usable addresses: EC2 reserves five of 32.
const small = "subnet-0a5e7e0000000004"

func (a *account) free(t *testing.T) int32 {
	t.Helper()
	out, err := a.ec2.DescribeSubnets(ctx(t), &ec2.DescribeSubnetsInput{SubnetIds: []string{small}})
	if err != nil {
		t.Fatal(err)
	}
	return *out.Subnets[0].AvailableIpAddressCount
}

// With the first pod, an m5.large takes an interface of ten addresses and a warm one; with the tenth pod a third, its
// maximum. Then the subnet has no address left for another instance until the first one is gone.
func TestTheCNIExhaustsASubnet(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{
		Subnets: []ec2sim.Subnet{{Zone: "us-east-1a", CIDR: "192.168.4.0/27"}}, CNI: &ec2sim.CNI{WarmENIs: 1}, BootDelay: 30 * time.Second})
	in := fleetInput(a.template(t, "x86_64"), 1, onDemand, ec2types.FleetLaunchTemplateOverridesRequest{InstanceType: "m5.large", SubnetId: aws.String(small)})
	first, err := a.ec2.CreateFleet(ctx(t), in)
	if err != nil || len(launched(first)) != 1 {
		t.Fatalf("%+v, %v", first, err)
	}
	want := func(step string, want int32) {
		t.Helper()
		if got := a.free(t); got != want {
			t.Errorf("%s: %d addresses are free, want %d", step, got, want)
		}
	}
	want("launched", 26)
	a.clock.Advance(30 * time.Second)
	want("booted", 7)
	if err := a.sim.SetPods(9, launched(first)...); err != nil {
		t.Fatal(err)
	}
	want("nine pods", 7)
	if err := a.sim.SetPods(10, launched(first)...); err != nil {
		t.Fatal(err)
	}
	want("ten pods", 0)
	in.ClientToken = nil // the SDK has filled it in
	out, err := a.ec2.CreateFleet(ctx(t), in)
	if err != nil || !slices.Equal(codes(out), []string{"InsufficientFreeAddressesInSubnet"}) {
		t.Errorf("%+v, %v", out, err)
	}
	if _, err := a.ec2.TerminateInstances(ctx(t), &ec2.TerminateInstancesInput{InstanceIds: launched(first)}); err != nil {
		t.Fatal(err)
	}
	want("terminated", 27)
}

// Prefixes and additional interfaces of the launch template take addresses from the launch on.
func TestAddressesOfALaunch(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{Subnets: []ec2sim.Subnet{{Zone: "us-east-1a", CIDR: "192.168.4.0/27"}}})
	type nic = ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest
	name := a.changedTemplate(t, "prefix", func(data *ec2types.RequestLaunchTemplateData) {
		data.SecurityGroupIds = nil
		data.NetworkInterfaces = []nic{
			{DeviceIndex: aws.Int32(0), Ipv4PrefixCount: aws.Int32(1)}, {DeviceIndex: aws.Int32(1), SecondaryPrivateIpAddressCount: aws.Int32(2)}}
	})
	in := fleetInput(name, 1, onDemand, ec2types.FleetLaunchTemplateOverridesRequest{InstanceType: "m5.large", SubnetId: aws.String(small)})
	out, err := a.ec2.CreateFleet(ctx(t), in)
	if err != nil || len(launched(out)) != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	if got := a.free(t); got != 27-17-3 {
		t.Errorf("%d addresses are free, want 7", got)
	}
	in.ClientToken = nil // the SDK has filled it in
	out, err = a.ec2.CreateFleet(ctx(t), in)
	if err != nil || !slices.Equal(codes(out), []string{"InsufficientFreeAddressesInSubnet"}) {
		t.Errorf("seven are too few for twenty: %+v, %v", out, err)
	}
}

func TestAddressesOfTheCNI(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		cni        ec2sim.CNI
		pods       int
		want       int
		itype, why string
	}{
		{cni: ec2sim.CNI{Prefixes: true}, pods: 0, want: 17, itype: "m5.large", why: "one warm prefix and the interface's own address"},
		{cni: ec2sim.CNI{Prefixes: true}, pods: 17, want: 49, itype: "m5.large", why: "two for seventeen pods and one more"},
		{cni: ec2sim.CNI{WarmENIs: 1}, pods: 1000, want: 30, itype: "m5.large", why: "three interfaces are all there are"},
		{cni: ec2sim.CNI{}, pods: 0, want: 10, itype: "m5.large", why: "without a warm one"},
	} {
		a := start(t, ec2sim.Options{CNI: &tc.cni, Subnets: []ec2sim.Subnet{{Zone: "us-east-1a", CIDR: "192.168.4.0/24"}}})
		out, err := a.ec2.RunInstances(ctx(t), &ec2.RunInstancesInput{
			MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: ec2types.InstanceType(tc.itype), ImageId: aws.String(a.image(t, "x86_64")), SubnetId: aws.String(small)})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.sim.SetPods(tc.pods, *out.Instances[0].InstanceId); err != nil {
			t.Fatal(err)
		}
		if got := 251 - int(a.free(t)); got != tc.want {
			t.Errorf("%s: %d addresses are taken, want %d", tc.why, got, tc.want)
		}
	}
}

// TestIPv6AddressesOfALaunch launches with addresses and prefixes into subnets with and without a range of IPv6 addresses.
// The CNI plugin takes no IPv4 addresses in an IPv6 cluster.
func TestIPv6AddressesOfALaunch(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{
		IPv6: true, CNI: &ec2sim.CNI{WarmENIs: 1}, Subnets: []ec2sim.Subnet{{Zone: "us-east-1a", CIDR: "192.168.4.0/27", OnlyIPv4: true}}})
	zone := a.subnets(t)["us-east-1b"]
	for reason, tc := range map[string]struct {
		subnet              string
		addresses, prefixes int32
		code                string // of the refusal; empty means that the launch is accepted
	}{
		"an address and a prefix":                     {subnet: zone, addresses: 1, prefixes: 1},
		"as many as an interface takes":               {subnet: zone, addresses: 1, prefixes: 9},
		"one more":                                    {subnet: zone, addresses: 1, prefixes: 10, code: "InvalidParameterValue"},
		"a subnet without a range of IPv6 addresses":  {subnet: small, addresses: 1, code: "InvalidParameterValue"},
		"a primary address where there is no address": {subnet: zone, prefixes: 1, code: "InvalidParameterCombination"},
	} {
		t.Run(reason, func(t *testing.T) {
			nic := ec2types.InstanceNetworkInterfaceSpecification{DeviceIndex: aws.Int32(0), SubnetId: aws.String(tc.subnet), PrimaryIpv6: aws.Bool(true),
				Ipv6AddressCount: aws.Int32(tc.addresses), Ipv6PrefixCount: aws.Int32(tc.prefixes)}
			out, err := a.ec2.RunInstances(ctx(t), &ec2.RunInstancesInput{MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: "m5.large",
				ImageId: aws.String(a.image(t, "x86_64")), NetworkInterfaces: []ec2types.InstanceNetworkInterfaceSpecification{nic}})
			if tc.code != "" {
				wantCode(t, err, tc.code)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			found := out.Instances[0].NetworkInterfaces[0]
			if len(found.Ipv6Addresses) != int(tc.addresses) || len(found.Ipv6Prefixes) != int(tc.prefixes) {
				t.Errorf("the interface has the addresses %+v and the prefixes %+v", found.Ipv6Addresses, found.Ipv6Prefixes)
			}
		})
	}
	a.clock.Advance(time.Minute)
	subnets, err := a.ec2.DescribeSubnets(ctx(t), &ec2.DescribeSubnetsInput{SubnetIds: []string{zone, small}})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range subnets.Subnets {
		if has := len(n.Ipv6CidrBlockAssociationSet) > 0; has != (*n.SubnetId == zone) {
			t.Errorf("%s has a range of IPv6 addresses: %t", *n.SubnetId, has)
		}
		if *n.SubnetId == zone && *n.AvailableIpAddressCount != 8187-2 {
			t.Errorf("%d IPv4 addresses are free; want all but those of two instances", *n.AvailableIpAddressCount)
		}
	}
}

// TestSubnetsWithIPv6AddressesAlone launches into a subnet without IPv4 addresses.
func TestSubnetsWithIPv6AddressesAlone(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{Subnets: []ec2sim.Subnet{{Zone: "us-east-1a", IPv6Native: true}}})
	subnets, err := a.ec2.DescribeSubnets(ctx(t), &ec2.DescribeSubnetsInput{Filters: []ec2types.Filter{filterOf("ipv6-native", "true")}})
	if err != nil || len(subnets.Subnets) != 1 {
		t.Fatalf("subnets with IPv6 addresses alone: %+v, %v", subnets, err)
	}
	native := subnets.Subnets[0]
	if !*native.Ipv6Native || !*native.AssignIpv6AddressOnCreation || native.CidrBlock != nil || *native.AvailableIpAddressCount != 0 || len(native.Ipv6CidrBlockAssociationSet) != 1 {
		t.Errorf("it is described as %+v", native)
	}
	for reason, tc := range map[string]struct {
		itype  string
		change func(*ec2types.InstanceNetworkInterfaceSpecification)
		code   string
	}{
		"nothing is said about addresses": {itype: "m5.large"},
		"an IPv6 address is asked for":    {itype: "m5.large", change: func(n *ec2types.InstanceNetworkInterfaceSpecification) { n.Ipv6AddressCount = aws.Int32(1) }},
		"an instance without Nitro":       {itype: "m4.large", code: "InvalidParameterCombination"},
		"a public address":                {itype: "m5.large", change: func(n *ec2types.InstanceNetworkInterfaceSpecification) { n.AssociatePublicIpAddress = aws.Bool(true) }, code: "InvalidParameterCombination"},
		"an IPv4 prefix":                  {itype: "m5.large", change: func(n *ec2types.InstanceNetworkInterfaceSpecification) { n.Ipv4PrefixCount = aws.Int32(1) }, code: "InvalidParameterCombination"},
	} {
		in := &ec2.RunInstancesInput{MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: ec2types.InstanceType(tc.itype), ImageId: aws.String(a.image(t, "x86_64")), SubnetId: native.SubnetId}
		if tc.change != nil {
			nic := ec2types.InstanceNetworkInterfaceSpecification{DeviceIndex: aws.Int32(0), SubnetId: native.SubnetId}
			tc.change(&nic)
			in.SubnetId, in.NetworkInterfaces = nil, []ec2types.InstanceNetworkInterfaceSpecification{nic}
		}
		out, err := a.ec2.RunInstances(ctx(t), in)
		if tc.code != "" {
			if err == nil {
				t.Errorf("%s: it is launched", reason)
				continue
			}
			wantCode(t, err, tc.code)
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
		made := out.Instances[0]
		if aws.ToString(made.PrivateIpAddress) != "" || aws.ToString(made.Ipv6Address) == "" || aws.ToString(made.PrivateDnsName) != *made.InstanceId+".ec2.internal" {
			t.Errorf("%s: the instance has the addresses %q and %q, and the name %q", reason, aws.ToString(made.PrivateIpAddress), aws.ToString(made.Ipv6Address), aws.ToString(made.PrivateDnsName))
		}
	}
}
