package aws_test

import (
	"strings"
	"testing"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/ec2sim"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// TestFieldsOfTheClass launches classes with the fields that concern network interfaces and processors, and compares the
// launch template with what Karpenter would request for them (pkg/providers/launchtemplate; test/oracle plays the same).
// The simulated EC2 refuses what EC2 documents as invalid.
func TestFieldsOfTheClass(t *testing.T) {
	t.Parallel()
	device := func(card, index int32, kind awsv1.InterfaceType) *awsv1.NetworkInterface {
		return &awsv1.NetworkInterface{NetworkCardIndex: card, DeviceIndex: index, InterfaceType: kind}
	}
	for reason, test := range map[string]struct {
		instanceType string
		say          func(*awsv1.EC2NodeClassSpec)
		requests     []corev1.ResourceName
		// want are parameters below LaunchTemplateData. An empty value means that the parameter must not be there.
		want map[string]string
	}{
		"connection tracking of the only interface": {
			instanceType: "m5.large", say: func(s *awsv1.EC2NodeClassSpec) {
				s.ConnectionTracking = &awsv1.ConnectionTracking{TCPEstablishedTimeout: awssdk.Int32(600), UDPStreamTimeout: awssdk.Int32(120), UDPTimeout: awssdk.Int32(45)}
			}, want: map[string]string{
				"NetworkInterface.1.DeviceIndex":                                           "0",
				"NetworkInterface.1.ConnectionTrackingSpecification.TcpEstablishedTimeout": "600",
				"NetworkInterface.1.ConnectionTrackingSpecification.UdpStreamTimeout":      "120",
				"NetworkInterface.1.ConnectionTrackingSpecification.UdpTimeout":            "45",
				"SecurityGroupId.1": "",
			}},
		"one timeout alone": {
			instanceType: "m5.large", say: func(s *awsv1.EC2NodeClassSpec) {
				s.ConnectionTracking = &awsv1.ConnectionTracking{UDPTimeout: awssdk.Int32(45)}
			}, want: map[string]string{
				"NetworkInterface.1.ConnectionTrackingSpecification.TcpEstablishedTimeout": "",
				"NetworkInterface.1.ConnectionTrackingSpecification.UdpTimeout":            "45",
			}},
		"several network cards: an EFA-only interface has no addresses and tracks nothing": {
			instanceType: "c6in.32xlarge", say: func(s *awsv1.EC2NodeClassSpec) {
				s.NetworkInterfaces = []*awsv1.NetworkInterface{
					device(0, 0, awsv1.InterfaceTypeInterface), device(0, 1, awsv1.InterfaceTypeEFAOnly), device(1, 1, awsv1.InterfaceTypeInterface)}
				s.IPPrefixCount = awssdk.Int32(1)
				s.ConnectionTracking = &awsv1.ConnectionTracking{UDPTimeout: awssdk.Int32(40)}
			}, want: map[string]string{
				"NetworkInterface.1.InterfaceType": "interface", "NetworkInterface.1.Ipv4PrefixCount": "1",
				"NetworkInterface.1.ConnectionTrackingSpecification.UdpTimeout": "40",
				"NetworkInterface.2.InterfaceType":                              "efa-only", "NetworkInterface.2.DeviceIndex": "1", "NetworkInterface.2.NetworkCardIndex": "0",
				"NetworkInterface.2.Ipv4PrefixCount":                            "",
				"NetworkInterface.2.ConnectionTrackingSpecification.UdpTimeout": "",
				"NetworkInterface.3.NetworkCardIndex":                           "1", "NetworkInterface.3.Ipv4PrefixCount": "1",
				"NetworkInterface.3.ConnectionTrackingSpecification.UdpTimeout": "40",
				"NetworkInterface.4.DeviceIndex":                                "",
			}},
		"EFA on request beside connection tracking": {
			instanceType: "c5n.18xlarge", requests: []corev1.ResourceName{awsv1.ResourceEFA}, say: func(s *awsv1.EC2NodeClassSpec) {
				s.ConnectionTracking = &awsv1.ConnectionTracking{TCPEstablishedTimeout: awssdk.Int32(600)}
				s.AssociatePublicIPAddress = awssdk.Bool(false)
			}, want: map[string]string{
				"NetworkInterface.1.InterfaceType": "efa", "NetworkInterface.1.AssociatePublicIpAddress": "false",
				"NetworkInterface.1.ConnectionTrackingSpecification.TcpEstablishedTimeout": "600",
				"NetworkInterface.2.DeviceIndex":                                           "",
			}},
		"EFA on request of a class that lists its interfaces: what it lists": {
			instanceType: "c5n.18xlarge", requests: []corev1.ResourceName{awsv1.ResourceEFA}, say: func(s *awsv1.EC2NodeClassSpec) {
				s.NetworkInterfaces = []*awsv1.NetworkInterface{device(0, 0, awsv1.InterfaceTypeInterface), device(0, 1, awsv1.InterfaceTypeEFAOnly)}
			}, want: map[string]string{"NetworkInterface.1.InterfaceType": "interface", "NetworkInterface.2.InterfaceType": "efa-only"}},
		"nested virtualization": {
			instanceType: "m8i.large", say: func(s *awsv1.EC2NodeClassSpec) {
				s.CPUOptions = &awsv1.CPUOptions{NestedVirtualization: awssdk.String("enabled")}
			}, want: map[string]string{"CpuOptions.NestedVirtualization": "enabled"}},
		"no nested virtualization": {
			instanceType: "m5.large", say: func(s *awsv1.EC2NodeClassSpec) {
				s.CPUOptions = &awsv1.CPUOptions{NestedVirtualization: awssdk.String("disabled")}
			}, want: map[string]string{"CpuOptions.NestedVirtualization": "disabled"}},
		"nothing in particular": {
			instanceType: "m5.large", say: func(*awsv1.EC2NodeClassSpec) {}, want: map[string]string{
				"CpuOptions.NestedVirtualization": "", "NetworkInterface.1.DeviceIndex": "", "Placement.Tenancy": "default", "Placement.GroupId": "", "EnclaveOptions.Enabled": "false"}},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			a := startAccount(t, ec2sim.Options{})
			class := a.NodeClass()
			test.say(&class.Spec)
			a.resolve(a.provider, class)
			if !class.IsTrue("Ready") {
				t.Fatalf("the class is not ready: %+v", class.Status.Conditions)
			}
			a.sim.KeepParameters("CreateLaunchTemplate")
			spec := cloud.LaunchSpec{Group: "g", Count: 1, Class: class, NodePool: "default", CapacityType: "on-demand", Requests: test.requests}
			for _, subnet := range class.Status.Subnets {
				spec.Offerings = append(spec.Offerings, cloud.OfferingKey{InstanceType: test.instanceType, Zone: subnet.Zone, CapacityType: "on-demand"})
			}
			request, err := a.provider.PrepareLaunch(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			request.Token = "token"
			if _, err := a.provider.Launch(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			calls := a.sim.Calls("CreateLaunchTemplate")
			sent := calls[len(calls)-1].Parameters
			for name, want := range test.want {
				if got := sent["LaunchTemplateData."+name]; got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			if t.Failed() {
				for name, value := range sent {
					if strings.Contains(name, "NetworkInterface") || strings.Contains(name, "Options") {
						t.Logf("%s = %s", name, value)
					}
				}
			}
		})
	}
}

// TestNothingSuitsTheClass checks what a class says that no instance type can be launched for.
func TestNothingSuitsTheClass(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	class := a.NodeClass()
	class.Spec.NetworkInterfaces = []*awsv1.NetworkInterface{
		{InterfaceType: awsv1.InterfaceTypeInterface}, {NetworkCardIndex: 99, DeviceIndex: 1, InterfaceType: awsv1.InterfaceTypeInterface}}
	a.resolve(a.provider, class)
	condition := class.Condition(awsv1.ConditionTypeValidationSucceeded)
	if condition == nil || condition.Status != "False" || !strings.Contains(condition.Message, "types do not take all of spec.networkInterfaces") {
		t.Errorf("the class says %+v; want the field that nothing suits", condition)
	}
}
