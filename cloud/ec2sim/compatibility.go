package ec2sim

import (
	"slices"
	"strings"
)

// checkMachine refuses what EC2 does not support on an instance type: more network interfaces than its network cards
// take, and features that only Nitro has. Which launches EC2 refuses is documented; some of the error codes are not.
func checkMachine(spec *launchSpec, t *InstanceType) error {
	if err := checkInterfaces(spec.Interfaces, t); err != nil {
		return err
	}
	if spec.Nested == "enabled" && !t.NestedVirtualization() {
		return refuse("InvalidParameterCombination", "Nested virtualization is not supported for the instance type %s", t.Name)
	}
	// Nitro Enclaves User Guide, "Requirements".
	if spec.Enclave != nil && *spec.Enclave && !t.Enclaves() {
		return refuse("InvalidParameterCombination", "Enclaves are not supported for the instance type %s", t.Name)
	}
	return nil
}

// checkInterfaces checks interfaces against the limits of the network cards ("Network cards", "Maximum IP addresses per
// network interface"), the number and position of EFA interfaces, and the features that need Nitro.
func checkInterfaces(interfaces []interfaceSpec, t *InstanceType) error {
	cards, efas := t.NetworkCards(), map[int]int{}
	for _, n := range interfaces {
		efaOnly := n.Type == "efa-only"
		switch {
		case n.CardIndex >= len(cards):
			return refuse("InvalidParameterCombination", "Network card index %d exceeds the limit for %s", n.CardIndex, t.Name)
		case n.DeviceIndex >= cards[n.CardIndex].Interfaces:
			return refuse("AttachmentLimitExceeded", "Interface count %d exceeds the limit for %s", n.DeviceIndex+1, t.Name)
		// "Amazon EC2 security group connection tracking": the timeouts need Nitro.
		case n.Tracking && t.Hypervisor != "nitro" && !t.BareMetal:
			return refuse("InvalidParameterCombination", "Connection tracking timeouts are not supported for the instance type %s", t.Name)
		// "Assigning prefixes to Amazon EC2 network interfaces": prefixes need Nitro.
		case n.Ipv4PrefixCount+n.Ipv6PrefixCount > 0 && t.Hypervisor == "xen":
			return refuse("InvalidParameterCombination", "Prefixes are not supported for the instance type %s", t.Name)
		// "Maximum IP addresses per network interface"; a prefix counts as one address ("Assigning prefixes").
		case 1+n.SecondaryCount+n.Ipv4PrefixCount > t.IPv4PerENI && !efaOnly:
			return refuse("PrivateIpAddressLimitExceeded", "Number of private addresses will exceed limit of %d for the instance type %s", t.IPv4PerENI, t.Name)
		case n.Ipv6Count+n.Ipv6PrefixCount > t.IPv4PerENI:
			return invalidValue("Number of IPv6 addresses will exceed limit of %d for the instance type %s", t.IPv4PerENI, t.Name)
		// "Elastic Fabric Adapter for AI/ML and HPC workloads": an EFA-only interface has no IP addresses and is not the primary one.
		case efaOnly && n.CardIndex == 0 && n.DeviceIndex == 0:
			return refuse("InvalidParameterCombination", "The primary network interface cannot be EFA-only")
		case efaOnly && n.addressed():
			return invalidValue("EFA-only network interfaces do not have IP addresses")
		// API reference, InstanceNetworkInterfaceSpecification: a public address only for a single interface with device index 0.
		case n.PublicIP != nil && *n.PublicIP && len(interfaces) > 1:
			return refuse("InvalidParameterCombination", "The associatePublicIPAddress parameter cannot be specified when launching with multiple network interfaces.")
		}
		if strings.HasPrefix(n.Type, "efa") {
			efas[n.CardIndex]++
		}
	}
	total := 0
	for card, count := range efas {
		// "EFA limitations": one EFA per network card.
		if count > 1 {
			return refuse("AttachmentLimitExceeded", "%d EFA interfaces on the network card %d of %s", count, card, t.Name)
		}
		total += count
	}
	if total > t.EFAs {
		return refuse("InvalidParameterCombination", "%d EFA interfaces exceed the limit of %d for %s", total, t.EFAs, t.Name)
	}
	return nil
}

// addressed reports whether the interface requests any IP address.
func (n *interfaceSpec) addressed() bool {
	return n.Ipv4PrefixCount+n.Ipv6PrefixCount+n.Ipv6Count+n.SecondaryCount > 0 || n.PublicIP != nil
}

// checkBoot refuses an image that the type cannot boot. An image without a boot mode boots in the type's default one, and
// so does one that prefers UEFI if the type has no UEFI ("Amazon EC2 boot modes"). The code of the refusal is not
// documented. Nitro requires an image with ENA (re:Post, "Why do I get the error that Enhanced networking with the
// Elastic Network Adapter is required").
func (im *image) checkBoot(t *InstanceType) error {
	if (im.BootMode == "uefi" || im.BootMode == "legacy-bios") && !slices.Contains(t.BootModes(), im.BootMode) {
		return refuse("InvalidParameterCombination", "The boot mode '%s' of the AMI is not supported by the instance type %s.", im.BootMode, t.Name)
	}
	if im.NoENA && t.Hypervisor != "xen" {
		return refuse("InvalidParameterCombination", "Enhanced networking with the Elastic Network Adapter (ENA) is required for the '%s' instance type. Ensure that you are using an AMI that is enabled for ENA.", t.Name)
	}
	return nil
}
