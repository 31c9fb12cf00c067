package ec2sim

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
)

// addressCounter remembers the last address handed out in a subnet, so that an address, and with it a host name, is not
// reused at once.
type addressCounter struct{ Last int }

// countAddresses finds the addresses in use from the instances.
func (s *Server) countAddresses() {
	for _, i := range s.instances.rows {
		if !i.ended() {
			s.holdAddress(i.Subnet, i.PrivateIP)
		}
	}
}

func (s *Server) holdAddress(subnetID, ip string) {
	if s.inUse[subnetID] == nil {
		s.inUse[subnetID] = map[string]bool{}
	}
	s.inUse[subnetID][ip] = true
}

func (s *Server) releaseAddress(i *instance) { delete(s.inUse[i.Subnet], i.PrivateIP) }

// freeAddresses is the subnet's AvailableIpAddressCount. Each instance counts with its primary address; the further ones
// that a CNI plugin takes are not played.
func (s *Server) freeAddresses(n *subnet) int {
	if left, ok := s.faults().FreeAddresses[n.ID]; ok {
		return left
	}
	return n.size() - len(s.inUse[n.ID])
}

// takeAddress hands out the next address that is not in use. The caller has made sure that there is one.
func (s *Server) takeAddress(n *subnet) string {
	counter := addressCounter{}
	if have := s.addresses.rows[n.ID]; have != nil {
		counter = *have
	}
	ip := ""
	for range n.size() {
		counter.Last++
		if ip = n.address(counter.Last).String(); !s.inUse[n.ID][ip] {
			break
		}
	}
	s.addresses.put(n.ID, &counter)
	s.holdAddress(n.ID, ip)
	return ip
}

// newIPv6 hands out an IPv6 address of the subnet: EC2 takes any of its /64.
func (n *subnet) newIPv6() string {
	address := n.IPv6.Addr().As16()
	binary.BigEndian.PutUint64(address[8:], rand.Uint64())
	return netip.AddrFrom16(address).String()
}

// checkAddresses refuses what EC2 refuses of IPv6 addresses (EC2 User Guide, "Launch instance parameters", IPv6 IPs: the
// subnet must have an IPv6 CIDR block; "Primary IPv6 IP" wants an address of the interface).
func checkAddresses(spec *launchSpec, in *subnet) error {
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

// publicAddress makes up a public address, of the range for benchmarks between networks (RFC 2544), which routes nowhere.
func publicAddress() string {
	n := rand.Uint32N(1 << 17)
	return netip.AddrFrom4([4]byte{198, 18 + byte(n>>16), byte(n >> 8), byte(n)}).String()
}
