package ec2sim

import "slices"

// network handles the EC2 actions on the account's network, except subnets and security groups.
type network struct{ account *account }

type zoneXML struct {
	Name    string `xml:"zoneName"`
	ID      string `xml:"zoneId"`
	State   string `xml:"zoneState"`
	Region  string `xml:"regionName"`
	Group   string `xml:"groupName"`
	Border  string `xml:"networkBorderGroup"`
	OptIn   string `xml:"optInStatus"`
	Type    string `xml:"zoneType"`
	Message string `xml:"messageSet,omitempty"`

	Parent   string `xml:"parentZoneName,omitempty"`
	ParentID string `xml:"parentZoneId,omitempty"`
}

type describeZonesXML struct {
	Zones []zoneXML `xml:"availabilityZoneInfo>item"`
}

func (n *network) describeZones(c *call) (any, error) {
	names, ids := c.form.strings("ZoneName"), c.form.strings("ZoneId")
	for _, name := range names {
		if _, ok := n.account.zone(name); !ok {
			return nil, invalidValue("Invalid availability zone: [%s]", name)
		}
	}
	var all []zoneXML
	for _, z := range n.account.zones {
		if len(names)+len(ids) > 0 && !slices.Contains(names, z.Name) && !slices.Contains(ids, z.ID) {
			continue
		}
		x := zoneXML{
			Name: z.Name, ID: z.ID, State: "available", Region: n.account.region, Group: n.account.region + "-zg-1",
			Border: n.account.region, OptIn: "opt-in-not-required", Type: "availability-zone",
		}
		if z.Local != "" {
			x.Group, x.Border, x.OptIn, x.Type = z.Local, z.Local, "opted-in", "local-zone"
			x.Parent, x.ParentID = n.account.zones[0].Name, n.account.zones[0].ID
		}
		all = append(all, x)
	}
	all, err := sift(all, parseFilters(c.form), func(z zoneXML) attributes {
		return oneOf(map[string]string{
			"zone-name": z.Name, "zone-id": z.ID, "zone-type": z.Type, "state": z.State, "region-name": z.Region,
			"opt-in-status": z.OptIn, "group-name": z.Group,
		})
	})
	return describeZonesXML{all}, err
}

type vpcXML struct {
	ID      string   `xml:"vpcId"`
	OwnerID string   `xml:"ownerId"`
	State   string   `xml:"state"`
	CIDR    string   `xml:"cidrBlock"`
	Tenancy string   `xml:"instanceTenancy"`
	Default bool     `xml:"isDefault"`
	Tags    []tagXML `xml:"tagSet>item,omitempty"`
}

type describeVpcsXML struct {
	VPCs []vpcXML `xml:"vpcSet>item"`
}

func (n *network) describeVPCs(c *call) (any, error) {
	tags := map[string]string{"Name": n.account.cluster + "-vpc"}
	all := []vpcXML{{ID: vpcID, OwnerID: n.account.network, State: "available", CIDR: vpcCIDR, Tenancy: "default", Tags: tagsXML(tags)}}
	all, err := byID(all, func(v vpcXML) string { return v.ID }, c.form.strings("VpcId"), func(id string) error {
		return refuse("InvalidVpcID.NotFound", "The vpc ID '%s' does not exist", id)
	})
	if err != nil {
		return nil, err
	}
	all, err = sift(all, parseFilters(c.form), func(v vpcXML) attributes {
		return tagged(tags, oneOf(map[string]string{
			"vpc-id": v.ID, "cidr": v.CIDR, "cidr-block": v.CIDR, "is-default": "false", "state": v.State, "owner-id": v.OwnerID,
		}))
	})
	return describeVpcsXML{all}, err
}
