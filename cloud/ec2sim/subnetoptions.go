package ec2sim

// subnetOptions are what ModifySubnetAttribute has made of a subnet.
type subnetOptions struct{ PublicIP bool }

// publicByDefault says whether instances in the subnet get a public address unless their launch says otherwise.
func (s *Server) publicByDefault(n *subnet) bool {
	o := s.subnetOptions.rows[n.ID]
	return o != nil && o.PublicIP
}

// modifySubnetAttribute changes one attribute at a time, as EC2 does; of them the simulator has one.
func modifySubnetAttribute(s *Server, c *call) (any, error) {
	id := c.form.str("SubnetId")
	if s.account.subnet(id) == nil {
		return nil, refuse("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", id)
	}
	if public := c.form.sub("MapPublicIpOnLaunch").flag("Value"); public != nil {
		s.subnetOptions.put(id, &subnetOptions{PublicIP: *public})
	}
	return returnTrue, nil
}

// public says whether an instance of the order gets a public address: its primary interface says so, or its subnet where that
// says nothing ("Amazon EC2 instance IP addressing", "Public IPv4 addresses").
func (s *Server) public(o *launchOrder) bool {
	for _, n := range o.spec.Interfaces {
		if n.DeviceIndex == 0 && n.CardIndex == 0 && n.PublicIP != nil {
			return *n.PublicIP
		}
	}
	return s.publicByDefault(o.subnet)
}
