package aws

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// templateNetwork sets the security groups of a launch template. They are on the instance if EC2 may choose its only
// interface, and on interfaces that the template lists if the class says anything about interfaces or if these need
// IPv6 addresses. In an IPv6 cluster, each interface that has addresses at all gets one IPv6 address, and keeps the
// first for as long as it lives. With EFA, there is one interface on each of the first efas network cards.
func templateNetwork(class *awsv1.EC2NodeClass, ipv6 bool, efas int32, data *types.RequestLaunchTemplateData) {
	var groups []string
	for _, group := range class.Status.SecurityGroups {
		groups = append(groups, group.ID)
	}
	spec := &class.Spec
	devices := spec.NetworkInterfaces
	if len(devices) == 0 && efas > 0 {
		devices = efaInterfaces(efas)
	}
	if len(devices) == 0 {
		if spec.AssociatePublicIPAddress == nil && spec.IPPrefixCount == nil && spec.ConnectionTracking == nil && !ipv6 {
			data.SecurityGroupIds = groups
			return
		}
		devices = []*awsv1.NetworkInterface{{InterfaceType: awsv1.InterfaceTypeInterface}}
	}
	for _, device := range devices {
		request := types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{
			DeleteOnTermination: aws.Bool(true),
			DeviceIndex:         aws.Int32(device.DeviceIndex),
			NetworkCardIndex:    aws.Int32(device.NetworkCardIndex),
			InterfaceType:       aws.String(string(device.InterfaceType)),
			Groups:              groups,
		}
		if device.DeviceIndex == 0 && device.NetworkCardIndex == 0 {
			request.AssociatePublicIpAddress = spec.AssociatePublicIPAddress
		}
		addressed := device.InterfaceType != awsv1.InterfaceTypeEFAOnly
		if addressed {
			addresses(&request, spec.IPPrefixCount, ipv6)
		}
		if tracking := spec.ConnectionTracking; tracking != nil && addressed {
			request.ConnectionTrackingSpecification = &types.ConnectionTrackingSpecificationRequest{
				TcpEstablishedTimeout: tracking.TCPEstablishedTimeout,
				UdpStreamTimeout:      tracking.UDPStreamTimeout,
				UdpTimeout:            tracking.UDPTimeout,
			}
		}
		data.NetworkInterfaces = append(data.NetworkInterfaces, request)
	}
}

// interfaceEFA is an EFA interface with IP addresses, which a class cannot list but a claim can request.
const interfaceEFA awsv1.InterfaceType = "efa"

// efaInterfaces returns EFA interfaces on the first network cards. The primary interface has the device index 0 and
// those of other cards have 1, as EC2 requires (EC2 User Guide, "Elastic Fabric Adapter", "Maximize network
// bandwidth").
func efaInterfaces(count int32) []*awsv1.NetworkInterface {
	var devices []*awsv1.NetworkInterface
	for card := range count {
		devices = append(devices, &awsv1.NetworkInterface{NetworkCardIndex: card, DeviceIndex: min(card, 1), InterfaceType: interfaceEFA})
	}
	return devices
}

// addresses sets the addresses of an interface besides its private IPv4 address.
func addresses(request *types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest, prefixes *int32, ipv6 bool) {
	if !ipv6 {
		request.Ipv4PrefixCount = prefixes
		return
	}
	request.PrimaryIpv6, request.Ipv6AddressCount, request.Ipv6PrefixCount = aws.Bool(true), aws.Int32(1), prefixes
}
