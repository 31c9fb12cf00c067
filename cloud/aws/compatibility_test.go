package aws_test

import (
	"slices"
	"strings"
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
		field     string // of the class, or what else the reason has to name
	}{
		{why: "an image for one architecture", say: func(s *awsv1.EC2NodeClassSpec) {
			s.AMIFamily, s.AMISelectorTerms = awssdk.String("AL2023"), []awsv1.AMISelectorTerm{{Name: "amazon-eks-node-al2023-x86_64-standard-1.36-*", Owner: "amazon"}}
		}, fits: "m5.large", not: "m6g.large", field: "spec.amiSelectorTerms"},
		{why: "prefixes", say: func(s *awsv1.EC2NodeClassSpec) { s.IPPrefixCount = awssdk.Int32(1) }, fits: "m5.large", not: "m4.large", field: "spec.ipPrefixCount"},
		{why: "as many prefixes as an interface of a small type takes", say: func(s *awsv1.EC2NodeClassSpec) { s.IPPrefixCount = awssdk.Int32(9) },
			fits: "m5.large", not: "t3.medium", field: "spec.ipPrefixCount"},
		{why: "one more", say: func(s *awsv1.EC2NodeClassSpec) { s.IPPrefixCount = awssdk.Int32(10) }, fits: "m5.xlarge", not: "m5.large", field: "spec.ipPrefixCount"},
		{why: "an IPv6 cluster", ipv6: true, say: func(*awsv1.EC2NodeClassSpec) {}, fits: "m5.large", not: "m4.large", field: "IPv6 cluster"},
		{why: "as many prefixes of IPv6 addresses", ipv6: true, say: func(s *awsv1.EC2NodeClassSpec) { s.IPPrefixCount = awssdk.Int32(9) },
			fits: "m5.large", not: "t3.medium", field: "spec.ipPrefixCount"},
		{why: "a second network card", say: func(s *awsv1.EC2NodeClassSpec) {
			s.NetworkInterfaces = []*awsv1.NetworkInterface{primary, device(1, 1, awsv1.InterfaceTypeInterface)}
		}, fits: "p5.48xlarge", not: "m5.large", field: "spec.networkInterfaces"},
		{why: "more interfaces on a card than a small type takes", say: func(s *awsv1.EC2NodeClassSpec) {
			s.NetworkInterfaces = []*awsv1.NetworkInterface{primary, device(0, 3, awsv1.InterfaceTypeInterface)}
		}, fits: "m5.xlarge", not: "m5.large", field: "spec.networkInterfaces"},
		{why: "an EFA device", say: func(s *awsv1.EC2NodeClassSpec) {
			s.NetworkInterfaces = []*awsv1.NetworkInterface{primary, device(0, 1, awsv1.InterfaceTypeEFAOnly)}
		}, fits: "m5n.24xlarge", not: "m5.24xlarge", field: "spec.networkInterfaces"},
		{why: "timeouts of connection tracking", say: func(s *awsv1.EC2NodeClassSpec) {
			s.ConnectionTracking = &awsv1.ConnectionTracking{UDPTimeout: awssdk.Int32(45)}
		}, fits: "m5.large", not: "m4.large", field: "spec.connectionTracking"},
		{why: "nested virtualization", say: func(s *awsv1.EC2NodeClassSpec) {
			s.CPUOptions = &awsv1.CPUOptions{NestedVirtualization: awssdk.String("enabled")}
		}, fits: "m8i.large", not: "m5.large", field: "spec.cpuOptions"},
		{why: "no nested virtualization", say: func(s *awsv1.EC2NodeClassSpec) {
			s.CPUOptions = &awsv1.CPUOptions{NestedVirtualization: awssdk.String("disabled")}
		}, fits: "m5.large", not: "a1.large", field: "spec.amiSelectorTerms"},
		{why: "nothing in particular", say: func(*awsv1.EC2NodeClassSpec) {}, fits: "m4.large", not: "a1.large", field: "spec.amiSelectorTerms"},
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
			said := map[string]string{}
			for _, e := range a.provider.Excluded(class) {
				if e.Resource == "" {
					said[e.InstanceType] = e.Why
				}
			}
			if said[tc.fits] != "" || !strings.Contains(said[tc.not], tc.field) {
				t.Errorf("the class excludes %s because such types %q, and %s because they %q; want only the second, with %s", tc.fits, said[tc.fits], tc.not, said[tc.not], tc.field)
			}
		})
	}
}

// TestDevicesThatTheClassExcludes: types have EFA, unless the class lists their network interfaces and no EFA among them.
func TestDevicesThatTheClassExcludes(t *testing.T) {
	t.Parallel()
	a := newAccountWith(t, "")
	for reason, test := range map[string]struct {
		interfaces []*awsv1.NetworkInterface
		want       bool
	}{
		"the class lists none": {nil, false},
		"none is EFA":          {[]*awsv1.NetworkInterface{{InterfaceType: awsv1.InterfaceTypeInterface}}, true},
		"one is EFA": {[]*awsv1.NetworkInterface{{InterfaceType: awsv1.InterfaceTypeInterface},
			{DeviceIndex: 1, InterfaceType: awsv1.InterfaceTypeEFAOnly}}, false},
	} {
		class := a.NodeClass()
		class.Spec.NetworkInterfaces = test.interfaces
		a.resolve(a.provider, class)
		if _, err := a.provider.InstanceTypes(t.Context(), class); err != nil {
			t.Fatal(err)
		}
		got := slices.ContainsFunc(a.provider.Excluded(class), func(e cloud.Exclusion) bool {
			return e.InstanceType == "c5n.18xlarge" && e.Resource == awsv1.ResourceEFA && strings.Contains(e.Why, "spec.networkInterfaces")
		})
		if got != test.want {
			t.Errorf("%s: c5n.18xlarge is said to have no EFA: %t", reason, got)
		}
	}
}
