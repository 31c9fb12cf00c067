package aws

import (
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/cloud/aws/amifamily"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// compatible reports whether EC2 can launch the class on the machine. It checks what Karpenter checks: Amazon Linux 2023
// does not run on the first Graviton, and Windows on no Graviton; connection tracking timeouts require Nitro (EC2 User
// Guide, "Amazon EC2 security group connection tracking"); few types have nested virtualization, or the network cards that
// a class lists.
func (m *machine) compatible(class *awsv1.EC2NodeClass) bool {
	switch cpu := class.Spec.CPUOptions; {
	case m.arm64 && amifamily.Of(class.AMIFamily()).OS == string(corev1.Windows):
		return false
	case class.AMIFamily() == awsv1.AMIFamilyAL2023 && m.labels[awsv1.LabelInstanceFamily] == "a1":
		return false
	case class.Spec.ConnectionTracking != nil && m.labels[awsv1.LabelInstanceHypervisor] != string(types.InstanceTypeHypervisorNitro):
		return false
	case cpu != nil && cpu.NestedVirtualization != nil && *cpu.NestedVirtualization == string(types.NestedVirtualizationSpecificationEnabled) && !m.nested:
		return false
	}
	return m.takes(class.Spec.NetworkInterfaces)
}

// takes reports whether the machine has the network cards, and room on each, for all of these interfaces.
func (m *machine) takes(interfaces []*awsv1.NetworkInterface) bool {
	efas := int32(0)
	for _, device := range interfaces {
		if device.DeviceIndex >= m.cards[device.NetworkCardIndex] {
			return false
		}
		if device.InterfaceType == awsv1.InterfaceTypeEFAOnly {
			efas++
		}
	}
	return efas <= m.efas
}
