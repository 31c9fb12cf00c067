package ec2sim

import (
	"slices"
	"strconv"
	"strings"
)

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

func describeAvailabilityZones(s *Server, c *call) (any, error) {
	names, ids := c.form.strings("ZoneName"), c.form.strings("ZoneId")
	for _, name := range names {
		if _, ok := s.account.zone(name); !ok {
			return nil, invalidValue("Invalid availability zone: [%s]", name)
		}
	}
	var all []zoneXML
	for _, z := range s.account.zones {
		if len(names)+len(ids) > 0 && !slices.Contains(names, z.name) && !slices.Contains(ids, z.id) {
			continue
		}
		x := zoneXML{
			Name: z.name, ID: z.id, State: "available", Region: s.account.region, Group: s.account.region + "-zg-1",
			Border: s.account.region, OptIn: "opt-in-not-required", Type: "availability-zone",
		}
		if z.local != "" {
			x.Group, x.Border, x.OptIn, x.Type = z.local, z.local, "opted-in", "local-zone"
			x.Parent, x.ParentID = s.account.zones[0].name, s.account.zones[0].id
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

// oneOf are attributes with one value each.
func oneOf(values map[string]string) attributes {
	return func(name string) ([]string, bool) {
		v, ok := values[name]
		return []string{v}, ok
	}
}

// byID keeps the items that are asked for by id, all if none are, and refuses ids that do not exist.
func byID[T any](items []T, id func(T) string, asked []string, notFound func(id string) error) ([]T, error) {
	if len(asked) == 0 {
		return items, nil
	}
	var found []T
	for _, want := range asked {
		at := slices.IndexFunc(items, func(item T) bool { return id(item) == want })
		if at < 0 {
			return nil, notFound(want)
		}
		found = append(found, items[at])
	}
	return found, nil
}

type subnetXML struct {
	ID         string   `xml:"subnetId"`
	ARN        string   `xml:"subnetArn"`
	State      string   `xml:"state"`
	OwnerID    string   `xml:"ownerId"`
	VPCID      string   `xml:"vpcId"`
	CIDR       string   `xml:"cidrBlock"`
	Free       int      `xml:"availableIpAddressCount"`
	Zone       string   `xml:"availabilityZone"`
	ZoneID     string   `xml:"availabilityZoneId"`
	DefaultFor bool     `xml:"defaultForAz"`
	PublicIP   bool     `xml:"mapPublicIpOnLaunch"`
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

func describeSubnets(s *Server, c *call) (any, error) {
	found, err := byID(s.account.subnets, func(n *subnet) string { return n.ID }, c.form.strings("SubnetId"), func(id string) error {
		return refuse("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", id)
	})
	if err != nil {
		return nil, err
	}
	found, err = sift(found, parseFilters(c.form), func(n *subnet) attributes {
		return tagged(s.shownTags(n.ID), oneOf(map[string]string{
			"subnet-id": n.ID, "vpc-id": vpcID, "availability-zone": n.Zone, "availabilityZone": n.Zone,
			"availability-zone-id": n.ZoneID, "cidr-block": n.Prefix.String(), "state": "available", "owner-id": s.account.network,
			"default-for-az": "false", "map-public-ip-on-launch": strconv.FormatBool(s.publicByDefault(n)), "available-ip-address-count": strconv.Itoa(s.freeAddresses(n)),
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
			CIDR: n.Prefix.String(), Free: s.freeAddresses(n), Zone: n.Zone, ZoneID: n.ZoneID, PublicIP: s.publicByDefault(n),
			Tags: tagsXML(s.shownTags(n.ID)), IPv6: n.ipv6XML(),
		})
	}
	return out, nil
}

type securityGroupXML struct {
	ID          string   `xml:"groupId"`
	ARN         string   `xml:"securityGroupArn"`
	Name        string   `xml:"groupName"`
	Description string   `xml:"groupDescription"`
	OwnerID     string   `xml:"ownerId"`
	VPCID       string   `xml:"vpcId"`
	Tags        []tagXML `xml:"tagSet>item,omitempty"`
}

type describeGroupsXML struct {
	Groups []securityGroupXML `xml:"securityGroupInfo>item"`
	Next   string             `xml:"nextToken,omitempty"`
}

func describeSecurityGroups(s *Server, c *call) (any, error) {
	notFound := func(id string) error {
		return refuse("InvalidGroup.NotFound", "The security group '%s' does not exist", id)
	}
	found, err := byID(s.allGroups(), func(g *securityGroup) string { return g.ID }, c.form.strings("GroupId"), notFound)
	if err != nil {
		return nil, err
	}
	if names := c.form.strings("GroupName"); len(names) > 0 {
		if found, err = byID(found, func(g *securityGroup) string { return g.Name }, names, notFound); err != nil {
			return nil, err
		}
	}
	found, err = sift(found, parseFilters(c.form), func(g *securityGroup) attributes {
		return tagged(s.shownTags(g.ID), oneOf(map[string]string{
			"group-id": g.ID, "group-name": g.Name, "vpc-id": vpcID, "owner-id": accountID, "description": g.Description,
		}))
	})
	if err != nil {
		return nil, err
	}
	page, next, err := pageOf(c.form, found, 5, 1000, func(g *securityGroup) string { return g.ID })
	if err != nil {
		return nil, err
	}
	out := describeGroupsXML{Next: next}
	for _, g := range page {
		out.Groups = append(out.Groups, securityGroupXML{
			ID: g.ID, ARN: s.account.arn("ec2", "security-group/"+g.ID), Name: g.Name, Description: g.Description,
			OwnerID: accountID, VPCID: vpcID, Tags: tagsXML(s.shownTags(g.ID)),
		})
	}
	return out, nil
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

func describeVpcs(s *Server, c *call) (any, error) {
	tags := map[string]string{"Name": s.account.cluster + "-vpc"}
	all := []vpcXML{{ID: vpcID, OwnerID: s.account.network, State: "available", CIDR: vpcCIDR, Tenancy: "default", Tags: tagsXML(tags)}}
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

type describeNoPlacementGroupsXML struct {
	Groups []struct{} `xml:"placementGroupSet>item"`
}

// describePlacementGroups answers truthfully: the account has none.
func describePlacementGroups(_ *Server, c *call) (any, error) {
	parseFilters(c.form) // of nothing they leave nothing
	for _, key := range []string{"GroupName", "GroupId"} {
		if names := c.form.strings(key); len(names) > 0 {
			return nil, refuse("InvalidPlacementGroup.Unknown", "The Placement Group '%s' is unknown.", names[0])
		}
	}
	return describeNoPlacementGroupsXML{}, nil
}

type spotPriceXML struct {
	Type    string `xml:"instanceType"`
	Product string `xml:"productDescription"`
	Price   string `xml:"spotPrice"`
	At      string `xml:"timestamp"`
	Zone    string `xml:"availabilityZone"`
	ZoneID  string `xml:"availabilityZoneId"`
}

type describeSpotPricesXML struct {
	Prices []spotPriceXML `xml:"spotPriceHistorySet>item"`
	Next   string         `xml:"nextToken"`
}

// spotPricesPerPage is how many prices come at once where the caller does not say.
const spotPricesPerPage = 1000

// describeSpotPriceHistory reports the price each pool has at the moment, and none of those it had.
func describeSpotPriceHistory(s *Server, c *call) (any, error) {
	types, products := c.form.strings("InstanceType"), c.form.strings("ProductDescription")
	zoneName := c.form.str("AvailabilityZone")
	_, perDollar := s.account.currency()
	var all []spotPriceXML
	for _, t := range s.catalogue.types {
		if !t.Supports(capacitySpot) || t.PriceUSD == 0 || len(types) > 0 && !slices.Contains(types, t.Name) {
			continue
		}
		for _, z := range s.account.zones {
			if z.local != "" || !s.account.offered(t, z.name) || zoneName != "" && zoneName != z.name {
				continue
			}
			price := strconv.FormatFloat(perDollar*s.market.spotPrice(t, z.name, c.at), 'f', 6, 64)
			for _, product := range []string{"Linux/UNIX", "Linux/UNIX (Amazon VPC)"} {
				if len(products) == 0 && product == "Linux/UNIX" || slices.Contains(products, product) {
					all = append(all, spotPriceXML{t.Name, product, price, timestamp(s.market.since(c.at)), z.name, z.id})
				}
			}
		}
	}
	all, err := sift(all, parseFilters(c.form), func(p spotPriceXML) attributes {
		return oneOf(map[string]string{
			"instance-type": p.Type, "availability-zone": p.Zone, "product-description": p.Product, "spot-price": p.Price, "timestamp": p.At,
		})
	})
	if err != nil {
		return nil, err
	}
	// EC2 has no bound for the pages of this call, unlike for others: Karpenter asks for 2,000 prices at once.
	size, err := c.form.integer("MaxResults", spotPricesPerPage)
	if err != nil {
		return nil, err
	}
	page, next, err := pageOf(c.form, all, 1, max(size, spotPricesPerPage), func(p spotPriceXML) string { return p.Type + "\x00" + p.Zone + "\x00" + p.Product })
	return describeSpotPricesXML{page, next}, err
}

// formatUSD prints a price with as many digits as it has.
func formatUSD(usd float64) string { return strconv.FormatFloat(usd, 'f', -1, 64) }
