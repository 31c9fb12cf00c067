package catalogue

import "strings"

// Cores returns the cores of the type and the threads of each: x86 types have two threads per core, except AMD types from the 7th
// generation on and T2, which have one, as Graviton does.
func (t *InstanceType) Cores() (cores, threads int) {
	family := t.Family()
	single := t.Arch == "arm64" || family == "t2" || t.CPUManufacturer == "AMD" && (strings.Contains(family, "7a") || strings.Contains(family, "8a"))
	if single || t.VCPUs == 1 {
		return t.VCPUs, 1
	}
	return t.VCPUs / 2, 2
}

// Family returns the part of the name before the dot, such as m5.
func (t *InstanceType) Family() string {
	family, _, _ := strings.Cut(t.Name, ".")
	return family
}

// Enclaves reports whether the type supports Nitro Enclaves: Nitro types with at least four vCPUs, or two on Graviton,
// except burstable types and bare metal (Nitro Enclaves User Guide, "Requirements").
func (t *InstanceType) Enclaves() bool {
	least := 4
	if t.Arch == "arm64" {
		least = 2
	}
	return t.Hypervisor == "nitro" && !t.Burstable && !t.BareMetal && t.VCPUs >= least
}

// BootModes returns the boot modes of the type (EC2 User Guide, "Requirements for UEFI boot mode" of "Instance launch
// behavior with Amazon EC2 boot modes"): Graviton has UEFI only, Xen and bare metal of Intel and AMD legacy BIOS only,
// Nitro both.
func (t *InstanceType) BootModes() []string {
	switch {
	case t.Arch == "arm64":
		return []string{"uefi"}
	case t.Hypervisor == "xen" || t.BareMetal:
		return []string{"legacy-bios"}
	}
	return []string{"legacy-bios", "uefi"}
}

// NestedVirtualization reports whether the type supports it: those of the 8th Intel generation do (EC2 User Guide,
// "Use nested virtualization to run hypervisors in Amazon EC2 instances").
func (t *InstanceType) NestedVirtualization() bool {
	family := t.Family()
	return !t.BareMetal && (family == "c8i" || family == "m8i" || family == "r8i")
}

// ProcessorFeatures returns the additional features of the type's processor.
func (t *InstanceType) ProcessorFeatures() []string {
	if t.NestedVirtualization() {
		return []string{"nested-virtualization"}
	}
	return nil
}

// PlacementStrategies returns the strategies of placement groups that the type supports: burstable types and M7i-flex are not for
// cluster groups (EC2 User Guide, "Placement strategies for your placement groups").
func (t *InstanceType) PlacementStrategies() []string {
	if t.Burstable || t.Family() == "m7i-flex" {
		return []string{"partition", "spread"}
	}
	return []string{"cluster", "partition", "spread"}
}

// A NetworkCard is one of the network cards of a type.
type NetworkCard struct {
	// Interfaces is the number of network interfaces that it takes.
	Interfaces int
	// BaselineGbps and PeakGbps are its share of the type's bandwidth.
	BaselineGbps, PeakGbps float64
}

// NetworkCards distributes the interfaces over the network cards: DefaultCardENIs on each card, and the remainder on the
// last one.
func (t *InstanceType) NetworkCards() []NetworkCard {
	count := 1
	if t.DefaultCardENIs > 0 && t.MaxENIs > t.DefaultCardENIs {
		count = (t.MaxENIs + t.DefaultCardENIs - 1) / t.DefaultCardENIs
	}
	cards := make([]NetworkCard, count)
	left := t.MaxENIs
	for n := range cards {
		share := min(left, t.DefaultCardENIs)
		if n == count-1 {
			share = left
		}
		left -= share
		cards[n] = NetworkCard{share, float64(t.NetworkMbps) / 1000 / float64(count), float64(t.NetworkPeakMbps) / 1000 / float64(count)}
	}
	return cards
}
