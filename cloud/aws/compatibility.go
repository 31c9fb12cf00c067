package aws

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/amifamily"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// unsuitable returns why EC2 cannot launch the class on the machine, or why it would be of no use as a node, in words that
// name the field; empty if neither is so. ipv6 says that nodes have IPv6 addresses. It checks what Karpenter checks: Amazon
// Linux 2023 does not run on the first Graviton, and Windows on no Graviton; connection tracking timeouts require Nitro (EC2
// User Guide, "Amazon EC2 security group connection tracking"); few types have nested virtualization, or the network cards
// that a class lists; some cannot be in placement groups of every strategy. Unlike Karpenter, it also checks what prefixes require: Nitro, and an address on their interface for
// each (EC2 User Guide, "Assigning prefixes to Amazon EC2 network interfaces"). In an IPv6 cluster, the CNI plugin gives
// pods addresses of prefixes alone (EKS User Guide, "Learn about IPv6 addresses to clusters, Pods, and services").
func (m *machine) unsuitable(class *awsv1.EC2NodeClass, group *placementGroup, ipv6 bool) string {
	prefixes := int64(aws.ToInt32(class.Spec.IPPrefixCount))
	switch cpu := class.Spec.CPUOptions; {
	case m.arm64 && amifamily.Of(class.AMIFamily()).OS == string(corev1.Windows):
		return "cannot run Windows, the system of spec.amiSelectorTerms"
	case class.AMIFamily() == awsv1.AMIFamilyAL2023 && m.labels[awsv1.LabelInstanceFamily] == "a1":
		return "cannot run Amazon Linux 2023, the system of spec.amiSelectorTerms"
	case class.Spec.ConnectionTracking != nil && m.labels[awsv1.LabelInstanceHypervisor] != string(types.InstanceTypeHypervisorNitro):
		return "have no Nitro hypervisor, which spec.connectionTracking needs"
	case cpu != nil && cpu.NestedVirtualization != nil && *cpu.NestedVirtualization == string(types.NestedVirtualizationSpecificationEnabled) && !m.nested:
		return "have no nested virtualization, which spec.cpuOptions enables"
	case !group.supports(m.strategies):
		return fmt.Sprintf("cannot be in a placement group of the strategy %s, which spec.placementGroupSelector names", group.strategy)
	case ipv6 && (m.xen || m.ipv6PerENI == 0):
		return "have no Nitro hypervisor, which the nodes of an IPv6 cluster need"
	case prefixes > 0 && m.xen:
		return "have no Nitro hypervisor, which spec.ipPrefixCount needs"
	case ipv6 && 1+prefixes > m.ipv6PerENI || !ipv6 && prefixes > 0 && 1+prefixes > m.ipv4PerENI:
		return "have fewer addresses on a network interface than spec.ipPrefixCount asks for"
	case !m.takes(class.Spec.NetworkInterfaces):
		return "do not take all of spec.networkInterfaces"
	}
	return ""
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

// nothingSuits says why no machine can be launched for a class, with how many machines each reason excludes.
func nothingSuits(excluded []cloud.Exclusion) string {
	count := map[string]int{}
	for i := range excluded {
		count[excluded[i].Why]++
	}
	var reasons []string
	for _, why := range slices.Sorted(maps.Keys(count)) {
		reasons = append(reasons, fmt.Sprintf("%d types %s", count[why], why))
	}
	return "no instance type can be launched: " + strings.Join(reasons, "; ")
}
