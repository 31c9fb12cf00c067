package ec2sim

import "strings"

// checkMachine refuses what EC2 refuses of an instance type: network interfaces its network cards have no room for (EC2
// User Guide, "Network cards" and "Maximum IP addresses per network interface"), more EFA interfaces than it takes ("EFA
// interface types"), timeouts of connection tracking off Nitro ("Amazon EC2 security group connection tracking"), and
// nested virtualization ("Use nested virtualization to run hypervisors in Amazon EC2 instances").
func checkMachine(spec *launchSpec, t *InstanceType) error {
	cards, efas := t.networkXML().Cards, 0
	for _, n := range spec.Interfaces {
		switch {
		case n.CardIndex >= len(cards):
			return refuse("InvalidParameterCombination", "Network card index %d exceeds the limit for %s", n.CardIndex, t.Name)
		case n.DeviceIndex >= cards[n.CardIndex].MaxInterfaces:
			return refuse("AttachmentLimitExceeded", "Interface count %d exceeds the limit for %s", n.DeviceIndex+1, t.Name)
		case n.Tracking && t.Hypervisor != "nitro":
			return refuse("InvalidParameterCombination", "Connection tracking timeouts are not supported for the instance type %s", t.Name)
		}
		if strings.HasPrefix(n.Type, "efa") {
			efas++
		}
	}
	if efas > t.EFAs {
		return refuse("InvalidParameterCombination", "%d EFA interfaces exceed the limit of %d for %s", efas, t.EFAs, t.Name)
	}
	if spec.Nested == "enabled" && !t.nested() {
		return refuse("InvalidParameterCombination", "Nested virtualization is not supported for the instance type %s", t.Name)
	}
	return nil
}

// nested says whether the type runs virtual machines of its own: those of the 8th Intel generation do (EC2 User Guide, "Use
// nested virtualization to run hypervisors in Amazon EC2 instances").
func (t *InstanceType) nested() bool {
	family, _, _ := strings.Cut(t.Name, ".")
	return !t.BareMetal && (family == "c8i" || family == "m8i" || family == "r8i")
}

// processorFeatures are the additional features of the type's processor.
func (t *InstanceType) processorFeatures() []string {
	if t.nested() {
		return []string{"nested-virtualization"}
	}
	return nil
}
