package aws_test

import (
	"slices"
	"testing"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// TestEFAOnRequest launches a machine with four EFA devices for claims that request one and for claims that do not,
// mostly from a class that lists no network interfaces.
func TestEFAOnRequest(t *testing.T) {
	t.Parallel()
	type device struct {
		Card, Index int32
		Kind        string
		IPv6        bool
	}
	for reason, test := range map[string]struct {
		ipv6     bool
		requests []corev1.ResourceName
		change   func(*awsv1.EC2NodeClass)
		capacity int64
		want     []device
	}{
		"pods ask for one: one for each network card": {requests: []corev1.ResourceName{"cpu", awsv1.ResourceEFA}, capacity: 4,
			want: []device{{Card: 0, Index: 0, Kind: "efa", IPv6: false}, {Card: 1, Index: 1, Kind: "efa", IPv6: false}, {Card: 2, Index: 1, Kind: "efa", IPv6: false}, {Card: 3, Index: 1, Kind: "efa", IPv6: false}}},
		"in a cluster of IPv6 they have addresses": {ipv6: true, requests: []corev1.ResourceName{awsv1.ResourceEFA}, capacity: 4,
			want: []device{{Card: 0, Index: 0, Kind: "efa", IPv6: true}, {Card: 1, Index: 1, Kind: "efa", IPv6: true}, {Card: 2, Index: 1, Kind: "efa", IPv6: true}, {Card: 3, Index: 1, Kind: "efa", IPv6: true}}},
		"nobody asks: one ordinary interface": {requests: []corev1.ResourceName{"cpu"}, capacity: 4,
			want: []device{{Card: 0, Index: 0, Kind: "interface", IPv6: false}}},
		"the class lists them: what it lists": {
			requests: []corev1.ResourceName{awsv1.ResourceEFA}, capacity: 1,
			change: func(class *awsv1.EC2NodeClass) {
				class.Spec.NetworkInterfaces = []*awsv1.NetworkInterface{
					{InterfaceType: awsv1.InterfaceTypeInterface}, {NetworkCardIndex: 1, DeviceIndex: 1, InterfaceType: awsv1.InterfaceTypeEFAOnly}}
			},
			want: []device{{Card: 0, Index: 0, Kind: "interface", IPv6: false}, {Card: 1, Index: 1, Kind: "efa-only", IPv6: false}},
		},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			a := startAccount(t, ec2sim.Options{IPv6: test.ipv6})
			class := a.NodeClass()
			if test.change != nil {
				test.change(class)
			}
			a.resolve(a.provider, class)
			offered, err := a.provider.InstanceTypes(t.Context(), class)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(offered, func(it *cloud.InstanceType) bool { return it.Name == "p4d.24xlarge" })
			if i < 0 {
				t.Fatal("p4d.24xlarge is not offered")
			}
			if got := offered[i].Capacity[awsv1.ResourceEFA]; got.Value() != test.capacity {
				t.Errorf("the type has %s EFA devices, want %d", got.String(), test.capacity)
			}
			if onRequest := slices.Contains(offered[i].OnRequest, awsv1.ResourceEFA); onRequest != (test.change == nil) {
				t.Errorf("EFA on request: %t", onRequest)
			}
			key := cloud.OfferingKey{InstanceType: "p4d.24xlarge", Zone: offered[i].Offerings[0].Zone, CapacityType: "on-demand"}
			request, err := a.provider.PrepareLaunch(t.Context(), cloud.LaunchSpec{
				Group: "g", Count: 1, Class: class, NodePool: "default", CapacityType: "on-demand", Offerings: []cloud.OfferingKey{key}, Requests: test.requests})
			if err != nil {
				t.Fatal(err)
			}
			request.Token = "token"
			result, err := a.provider.Launch(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			out, err := a.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{result.Instances[0].ID}})
			if err != nil {
				t.Fatal(err)
			}
			var got []device
			for _, n := range out.Reservations[0].Instances[0].NetworkInterfaces {
				got = append(got, device{awssdk.ToInt32(n.Attachment.NetworkCardIndex), awssdk.ToInt32(n.Attachment.DeviceIndex), awssdk.ToString(n.InterfaceType), len(n.Ipv6Addresses) > 0})
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("interfaces %+v, want %+v", got, test.want)
			}
		})
	}
}
