package ec2sim

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"time"
)

// addressCounter stores the last address assigned in a subnet, so that an address, and with it a host name, is not reused
// immediately.
type addressCounter struct{ Last int }

// addresses assigns the private IPv4 addresses of the subnets, and counts the free ones.
type addresses struct {
	now       func() time.Time
	cni       *CNI // nil: instances have only the addresses they were launched with
	catalogue *Catalogue
	ipv6      bool // pods have IPv6 addresses, which do not count
	faults    *injector
	instances *table[instance]
	counters  *table[addressCounter]
	inUse     map[string]map[string]bool // primary private addresses of instances that have not ended, by subnet
	further   map[string]int             // number of other addresses they were launched with, by subnet
}

// count computes the addresses in use from the instances.
func (a *addresses) count() {
	for _, i := range a.instances.rows {
		if !i.ended() {
			a.hold(i.Subnet, i.PrivateIP)
			a.further[i.Subnet] += i.further()
		}
	}
}

func (a *addresses) hold(subnetID, ip string) {
	if ip == "" {
		return
	}
	if a.inUse[subnetID] == nil {
		a.inUse[subnetID] = map[string]bool{}
	}
	a.inUse[subnetID][ip] = true
}

func (a *addresses) release(i *instance) {
	delete(a.inUse[i.Subnet], i.PrivateIP)
	a.further[i.Subnet] -= i.further()
}

// further returns how many private IPv4 addresses an instance was launched with besides its primary one: those of its
// other interfaces (except EFA-only ones), secondary addresses, and prefixes.
func (i *instance) further() int {
	n := 0
	for _, nic := range i.Interfaces {
		n += nic.Secondary
		if nic.Type != "efa-only" {
			n++
		}
	}
	return max(0, n-1)
}

// addresses returns how many private IPv4 addresses a launch takes.
func (s *launchSpec) addresses() int {
	n := 0
	for _, nic := range s.Interfaces {
		n += nic.SecondaryCount + prefixAddresses*nic.Ipv4PrefixCount
		if nic.Type != "efa-only" {
			n++
		}
	}
	return max(1, n)
}

// prefixAddresses is the number of addresses of a prefix, a /28 ("Assigning prefixes to Amazon EC2 network interfaces").
const prefixAddresses = 16

// CNI configures how the VPC CNI plugin takes addresses (its README: WARM_ENI_TARGET and ENABLE_PREFIX_DELEGATION, whose
// defaults are 1 and false). Without Prefixes, it takes whole interfaces with all their addresses: as many as its pods
// need, plus WarmENIs. With Prefixes, it takes as many prefixes as its pods need, plus one.
type CNI struct {
	WarmENIs int
	Prefixes bool
}

// addresses returns how many private IPv4 addresses an instance of the type has when it runs the given number of pods of
// an IPv4 cluster.
func (c *CNI) addresses(t *InstanceType, pods int) int {
	perENI := t.IPv4PerENI - 1 // the interface's primary address is not for pods
	if c.Prefixes {
		enough := (pods+prefixAddresses-1)/prefixAddresses + 1
		prefixes := min(enough, t.DefaultCardENIs*perENI)
		return (prefixes+perENI-1)/perENI + prefixAddresses*prefixes
	}
	enis := max(1, (pods+perENI-1)/perENI) + c.WarmENIs
	return min(enis, t.DefaultCardENIs) * t.IPv4PerENI
}

// pooled returns how many addresses the CNI plugin has taken for the subnet's instances besides those they were launched
// with. In an IPv6 cluster it takes a prefix of IPv6 addresses alone (its README: ENABLE_IPv6).
func (a *addresses) pooled(n *subnet) int {
	if a.cni == nil || a.ipv6 {
		return 0
	}
	total, now := 0, a.now()
	for _, i := range a.instances.rows {
		if i.Subnet == n.ID && !i.ended() && !i.BootAt.IsZero() && !now.Before(i.BootAt) {
			total += max(0, a.cni.addresses(a.catalogue.Type(i.Type), i.Pods)-1-i.further())
		}
	}
	return total
}

// free returns the subnet's AvailableIpAddressCount.
func (a *addresses) free(n *subnet) int {
	if left, ok := a.faults.current().FreeAddresses[n.ID]; ok {
		return left
	}
	return max(0, n.size()-len(a.inUse[n.ID])-a.further[n.ID]-a.pooled(n))
}

// take assigns the next address that is not in use. The caller has checked that there is one.
func (a *addresses) take(n *subnet) string {
	if n.native {
		return ""
	}
	counter := addressCounter{}
	if have := a.counters.rows[n.ID]; have != nil {
		counter = *have
	}
	ip := ""
	for range n.size() {
		counter.Last++
		if ip = n.address(counter.Last).String(); !a.inUse[n.ID][ip] {
			break
		}
	}
	a.counters.put(n.ID, &counter)
	a.hold(n.ID, ip)
	return ip
}

// takeFurther counts the addresses that an instance is launched with besides its primary one as used.
func (a *addresses) takeFurther(i *instance) { a.further[i.Subnet] += i.further() }

// forget frees all addresses.
func (a *addresses) forget() {
	clear(a.inUse)
	clear(a.further)
}

// newIPv6 returns a random IPv6 address of the subnet's /64, as EC2 does.
func (n *subnet) newIPv6() string {
	address := n.IPv6.Addr().As16()
	binary.BigEndian.PutUint64(address[8:], rand.Uint64())
	return netip.AddrFrom16(address).String()
}

// newIPv6Prefix returns a random prefix of the subnet's /64: a /80, as "Assigning prefixes to Amazon EC2 network
// interfaces" says.
func (n *subnet) newIPv6Prefix() string {
	return netip.PrefixFrom(netip.MustParseAddr(n.newIPv6()), 80).Masked().String()
}

// checkAddresses refuses IPv6 addresses that EC2 refuses (EC2 User Guide, "Launch instance parameters", IPv6 IPs: the
// subnet must have an IPv6 CIDR block; "Primary IPv6 IP" requires an IPv6 address on the interface).
func checkAddresses(spec *launchSpec, t *InstanceType, in *subnet) error {
	if in.native {
		if err := checkNative(spec, t, in); err != nil {
			return err
		}
	}
	for _, n := range spec.Interfaces {
		switch {
		case n.Ipv6Count+n.Ipv6PrefixCount > 0 && !in.IPv6.IsValid():
			return invalidValue("The subnet '%s' has no associated IPv6 CIDR block", in.ID)
		case n.PrimaryIPv6 && n.Ipv6Count == 0:
			return refuse("InvalidParameterCombination", "A primary IPv6 address requires an IPv6 address on the network interface")
		}
	}
	return nil
}

// checkNative refuses what EC2 refuses in a subnet with IPv6 addresses alone: instances without Nitro, and everything about IPv4
// addresses (VPC User Guide, "IP addressing for your VPCs and subnets", "IPv6-only"). The codes are not documented.
func checkNative(spec *launchSpec, t *InstanceType, in *subnet) error {
	if t.Hypervisor == "xen" {
		return refuse("InvalidParameterCombination", "The instance type %s cannot be launched in the IPv6-only subnet '%s'", t.Name, in.ID)
	}
	for _, n := range spec.Interfaces {
		if n.SecondaryCount+n.Ipv4PrefixCount > 0 || n.PublicIP != nil && *n.PublicIP {
			return refuse("InvalidParameterCombination", "IPv4 addresses cannot be assigned in the IPv6-only subnet '%s'", in.ID)
		}
	}
	return nil
}

// publicAddress returns a random address from the unroutable range for benchmarks between networks (RFC 2544).
func publicAddress() string {
	n := rand.Uint32N(1 << 17)
	return netip.AddrFrom4([4]byte{198, 18 + byte(n>>16), byte(n >> 8), byte(n)}).String()
}
