package ec2sim

import (
	"strconv"
	"strings"
)

// subnetOptions are the attributes of a subnet set by ModifySubnetAttribute.
type subnetOptions struct{ PublicIP bool }

// subnets are the account's subnets, with their changed attributes.
type subnets struct {
	account   *account
	options   *table[subnetOptions]
	tags      *tagSets
	addresses *addresses
}

// publicByDefault reports whether instances in the subnet get a public address unless their launch says otherwise.
func (s *subnets) publicByDefault(n *subnet) bool {
	o := s.options.rows[n.ID]
	return o != nil && o.PublicIP
}

// public reports whether an instance of the order gets a public address. Its primary interface decides, or its subnet if
// the interface does not specify it ("Amazon EC2 instance IP addressing", "Public IPv4 addresses").
func (s *subnets) public(o *launchOrder) bool {
	for _, n := range o.spec.Interfaces {
		if n.DeviceIndex == 0 && n.CardIndex == 0 && n.PublicIP != nil {
			return *n.PublicIP
		}
	}
	return s.publicByDefault(o.subnet)
}

// forLaunch returns the subnet of a launch: the named one, that of the primary interface, or the first one of the zone.
func (s *subnets) forLaunch(spec *launchSpec) (*subnet, error) {
	id := spec.SubnetID
	for _, n := range spec.Interfaces {
		if id == "" && n.DeviceIndex == 0 && n.CardIndex == 0 {
			id = n.SubnetID
		}
	}
	if id == "" {
		for _, n := range s.account.subnets {
			if spec.Zone == n.Zone {
				return n, nil
			}
		}
		if spec.Zone != "" {
			return nil, invalidValue("Invalid availability zone: [%s]", spec.Zone)
		}
		return nil, refuse("MissingInput", "No subnets found for the default VPC '%s'. Please specify a subnet.", vpcID)
	}
	n := s.account.subnet(id)
	if n == nil {
		return nil, refuse("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", id)
	}
	if spec.Zone != "" && spec.Zone != n.Zone {
		return nil, invalidValue("The subnet '%s' is in the zone %s, not in %s", id, n.Zone, spec.Zone)
	}
	return n, nil
}

// modify handles ModifySubnetAttribute. EC2 changes one attribute per call; the simulator supports only
// MapPublicIpOnLaunch.
func (s *subnets) modify(c *call) (any, error) {
	id := c.form.str("SubnetId")
	if s.account.subnet(id) == nil {
		return nil, refuse("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", id)
	}
	if public := c.form.sub("MapPublicIpOnLaunch").flag("Value"); public != nil {
		s.options.put(id, &subnetOptions{PublicIP: *public})
	}
	return returnTrue, nil
}

type subnetXML struct {
	ID         string   `xml:"subnetId"`
	ARN        string   `xml:"subnetArn"`
	State      string   `xml:"state"`
	OwnerID    string   `xml:"ownerId"`
	VPCID      string   `xml:"vpcId"`
	CIDR       string   `xml:"cidrBlock,omitempty"`
	Free       int      `xml:"availableIpAddressCount"`
	Zone       string   `xml:"availabilityZone"`
	ZoneID     string   `xml:"availabilityZoneId"`
	DefaultFor bool     `xml:"defaultForAz"`
	PublicIP   bool     `xml:"mapPublicIpOnLaunch"`
	AssignIPv6 bool     `xml:"assignIpv6AddressOnCreation"`
	Native     bool     `xml:"ipv6Native"`
	Tags       []tagXML `xml:"tagSet>item,omitempty"`

	IPv6 []subnetIPv6XML `xml:"ipv6CidrBlockAssociationSet>item,omitempty"`
}

type subnetIPv6XML struct {
	ID    string `xml:"associationId"`
	CIDR  string `xml:"ipv6CidrBlock"`
	State string `xml:"ipv6CidrBlockState>state"`
}

func (n *subnet) ipv6XML() []subnetIPv6XML {
	if !n.IPv6.IsValid() {
		return nil
	}
	return []subnetIPv6XML{{"subnet-cidr-assoc-" + strings.TrimPrefix(n.ID, "subnet-"), n.IPv6.String(), "associated"}}
}

type describeSubnetsXML struct {
	Subnets []subnetXML `xml:"subnetSet>item"`
	Next    string      `xml:"nextToken,omitempty"`
}

func (s *subnets) describe(c *call) (any, error) {
	found, err := byID(s.account.subnets, func(n *subnet) string { return n.ID }, c.form.strings("SubnetId"), func(id string) error {
		return refuse("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", id)
	})
	if err != nil {
		return nil, err
	}
	found, err = sift(found, parseFilters(c.form), func(n *subnet) attributes {
		return tagged(s.tags.shownOf(n.ID, n.Tags), oneOf(map[string]string{
			"subnet-id": n.ID, "vpc-id": vpcID, "availability-zone": n.Zone, "availabilityZone": n.Zone,
			"availability-zone-id": n.ZoneID, "cidr-block": n.cidr(), "state": "available", "owner-id": s.account.network,
			"default-for-az": "false", "map-public-ip-on-launch": strconv.FormatBool(s.publicByDefault(n)), "ipv6-native": strconv.FormatBool(n.native), "available-ip-address-count": strconv.Itoa(s.addresses.free(n)),
		}))
	})
	if err != nil {
		return nil, err
	}
	page, next, err := pageOf(c.form, found, 5, 1000, func(n *subnet) string { return n.ID })
	if err != nil {
		return nil, err
	}
	out := describeSubnetsXML{Next: next}
	for _, n := range page {
		out.Subnets = append(out.Subnets, subnetXML{
			ID: n.ID, ARN: s.account.subnetARN(n.ID), State: "available", OwnerID: s.account.network, VPCID: vpcID,
			CIDR: n.cidr(), AssignIPv6: n.native, Native: n.native, Free: s.addresses.free(n), Zone: n.Zone, ZoneID: n.ZoneID, PublicIP: s.publicByDefault(n),
			Tags: tagsXML(s.tags.shownOf(n.ID, n.Tags)), IPv6: n.ipv6XML(),
		})
	}
	return out, nil
}
