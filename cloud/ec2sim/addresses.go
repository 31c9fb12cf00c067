package ec2sim

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
