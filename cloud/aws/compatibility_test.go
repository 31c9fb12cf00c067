package aws_test

import (
	"slices"
	"testing"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/ec2sim"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

func TestTypesThatTheClassFits(t *testing.T) {
	t.Parallel()
	device := func(card, index int32, kind awsv1.InterfaceType) *awsv1.NetworkInterface {
		return &awsv1.NetworkInterface{NetworkCardIndex: card, DeviceIndex: index, InterfaceType: kind}
	}
	primary := device(0, 0, awsv1.InterfaceTypeInterface)
	for _, tc := range []struct {
		why       string
		ipv6      bool
		say       func(*awsv1.EC2NodeClassSpec)
		fits, not string
	}{
		{why: "prefixes", say: func(s *awsv1.EC2NodeClassSpec) { s.IPPrefixCount = awssdk.Int32(1) }, fits: "m5.large", not: "m4.large"},
		{why: "as many prefixes as an interface of a small type takes", say: func(s *awsv1.EC2NodeClassSpec) { s.IPPrefixCount = awssdk.Int32(9) },
			fits: "m5.large", not: "t3.medium"},
		{why: "one more", say: func(s *awsv1.EC2NodeClassSpec) { s.IPPrefixCount = awssdk.Int32(10) }, fits: "m5.xlarge", not: "m5.large"},
		{why: "an IPv6 cluster", ipv6: true, say: func(*awsv1.EC2NodeClassSpec) {}, fits: "m5.large", not: "m4.large"},
		{why: "as many prefixes of IPv6 addresses", ipv6: true, say: func(s *awsv1.EC2NodeClassSpec) { s.IPPrefixCount = awssdk.Int32(9) },
			fits: "m5.large", not: "t3.medium"},
		{why: "a second network card", say: func(s *awsv1.EC2NodeClassSpec) {
			s.NetworkInterfaces = []*awsv1.NetworkInterface{primary, device(1, 1, awsv1.InterfaceTypeInterface)}
		}, fits: "p5.48xlarge", not: "m5.large"},
		{why: "more interfaces on a card than a small type takes", say: func(s *awsv1.EC2NodeClassSpec) {
			s.NetworkInterfaces = []*awsv1.NetworkInterface{primary, device(0, 3, awsv1.InterfaceTypeInterface)}
		}, fits: "m5.xlarge", not: "m5.large"},
		{why: "an EFA device", say: func(s *awsv1.EC2NodeClassSpec) {
			s.NetworkInterfaces = []*awsv1.NetworkInterface{primary, device(0, 1, awsv1.InterfaceTypeEFAOnly)}
		}, fits: "m5n.24xlarge", not: "m5.24xlarge"},
		{why: "timeouts of connection tracking", say: func(s *awsv1.EC2NodeClassSpec) {
			s.ConnectionTracking = &awsv1.ConnectionTracking{UDPTimeout: awssdk.Int32(45)}
		}, fits: "m5.large", not: "m4.large"},
		{why: "nested virtualization", say: func(s *awsv1.EC2NodeClassSpec) {
			s.CPUOptions = &awsv1.CPUOptions{NestedVirtualization: awssdk.String("enabled")}
		}, fits: "m8i.large", not: "m5.large"},
		{why: "no nested virtualization", say: func(s *awsv1.EC2NodeClassSpec) {
			s.CPUOptions = &awsv1.CPUOptions{NestedVirtualization: awssdk.String("disabled")}
		}, fits: "m5.large", not: "a1.large"},
		{why: "nothing in particular", say: func(*awsv1.EC2NodeClassSpec) {}, fits: "m4.large", not: "a1.large"},
	} {
		t.Run(tc.why, func(t *testing.T) {
			t.Parallel()
			a := startAccount(t, ec2sim.Options{IPv6: tc.ipv6})
			class := a.NodeClass()
			tc.say(&class.Spec)
			a.resolve(a.provider, class)
			if !class.IsTrue("Ready") {
				t.Fatalf("the class is not ready: %+v", class.Status.Conditions)
			}
			found, err := a.provider.InstanceTypes(t.Context(), class)
			if err != nil {
				t.Fatal(err)
			}
			has := func(name string) bool {
				return slices.ContainsFunc(found, func(i *cloud.InstanceType) bool { return i.Name == name })
			}
			if !has(tc.fits) || has(tc.not) {
				t.Errorf("%s is there: %t, %s is there: %t; want the first alone", tc.fits, has(tc.fits), tc.not, has(tc.not))
			}
		})
	}
}
