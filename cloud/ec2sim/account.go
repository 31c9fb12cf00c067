package ec2sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/cloud/catalogue"
)

// The seeded account. Every simulator has the same one, so ids can be written into fixtures.
const (
	accountID       = "123456789012"
	amazonAccountID = "602401143452" // owns the EKS images in us-east-1
	vpcID           = "vpc-0a5e7e0000000001"
	vpcCIDR         = "192.168.0.0/16"
	vpcIPv6         = "2600:1f18:5e7e:ab00::" // a /56, of which every subnet has a /64
	serviceCIDR     = "10.96.0.0/16"
	serviceIPv6CIDR = "fd5e:7e00:0:a::/108"
)

// subnet is a private subnet. Each zone has one of size /19. EC2 reserves five addresses of every subnet.
type subnet struct {
	ID       string
	Zone     string
	ZoneID   string
	Prefix   netip.Prefix
	IPv6     netip.Prefix // invalid if the account or the subnet has only IPv4
	onlyIPv4 bool
	native   bool // it has only IPv6 addresses, and Prefix is invalid
	Tags     map[string]string
}

const reservedPerSubnet = 5

func (n *subnet) size() int {
	if n.native {
		return 0
	}
	return 1<<(32-n.Prefix.Bits()) - reservedPerSubnet
}

// cidr returns the range of IPv4 addresses; empty if the subnet has none.
func (n *subnet) cidr() string {
	if n.native {
		return ""
	}
	return n.Prefix.String()
}

// address returns the usable address number i; EC2 reserves the first four of the network.
func (n *subnet) address(i int) netip.Addr {
	base := n.Prefix.Addr().As4()
	host := uint32(base[2])<<8 + uint32(base[3]) + uint32(i%n.size()) + 4
	return netip.AddrFrom4([4]byte{base[0], base[1], byte(host >> 8), byte(host)})
}

type securityGroup struct {
	ID          string
	Name        string
	Description string
	Tags        map[string]string
	CreatedAt   time.Time // zero for seeded ones
}

// addIPv6 assigns a /64 of the VPC's IPv6 block to every subnet that may have one.
func (a *account) addIPv6() {
	for i, n := range a.subnets {
		if !n.onlyIPv4 {
			n.IPv6 = ipv6Range(i)
		}
	}
}

// ipv6Range returns the /64 of the VPC's IPv6 block that a subnet has.
func ipv6Range(index int) netip.Prefix {
	base := netip.MustParseAddr(vpcIPv6).As16()
	base[7] = byte(index + 1)
	return netip.PrefixFrom(netip.AddrFrom16(base), 64)
}

// account is the part of the AWS account that exists before the first request and does not change.
type account struct {
	network string // the account that owns the VPC and its subnets
	region  string
	cluster string
	zones   []zone
	subnets []*subnet
	groups  []*securityGroup
}

// zone is an Availability Zone or a Local Zone.
type zone = catalogue.Zone

// offered reports whether a zone has the type at all.
func (a *account) offered(t *InstanceType, zoneName string) bool { return t.Offered(zoneName, a.zones) }

func newAccount(cluster, region string, zoneNames []string) (*account, error) {
	if len(zoneNames) > 7 {
		return nil, fmt.Errorf("%d zones asked for, at most 7 fit the VPC", len(zoneNames))
	}
	a := &account{region: region, cluster: cluster, network: accountID}
	discovery := map[string]string{"karpenter.sh/discovery": cluster}
	for i, name := range zoneNames {
		z, err := catalogue.ParseZone(region, name)
		if err != nil {
			return nil, err
		}
		letter := strings.TrimPrefix(strings.TrimPrefix(name, region), "-")
		a.zones = append(a.zones, z)
		a.subnets = append(a.subnets, &subnet{
			ID: fmt.Sprintf("subnet-0a5e7e%010d", i+1), Zone: z.Name, ZoneID: z.ID,
			Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 168, byte(32 * (i + 1)), 0}), 19),
			Tags: withName(discovery, cluster+"-private-"+letter, map[string]string{
				"kubernetes.io/role/internal-elb": "1", "kubernetes.io/cluster/" + cluster: "shared",
			}),
		})
	}
	a.groups = []*securityGroup{
		{
			ID: "sg-0a5e7e0000000001", Name: "eks-cluster-sg-" + cluster, Description: "EKS created security group of the cluster",
			Tags: withName(discovery, "eks-cluster-sg-"+cluster, map[string]string{
				"kubernetes.io/cluster/" + cluster: "owned", "aws:eks:cluster-name": cluster,
			}),
		},
		{ID: "sg-0a5e7e0000000002", Name: "default", Description: "default VPC security group", Tags: map[string]string{}},
		{
			ID: "sg-0a5e7e0000000003", Name: cluster + "-node", Description: "EKS node shared security group",
			Tags: withName(discovery, cluster+"-node", map[string]string{"kubernetes.io/cluster/" + cluster: "owned"}),
		},
	}
	return a, nil
}

// Subnet is an additional private subnet of the VPC.
type Subnet struct {
	// Zone is one of Options.Zones.
	Zone string
	// CIDR lies in 192.168.0.0/16, outside the /19 ranges that the zones occupy from 192.168.32.0 on.
	CIDR string
	// OnlyIPv4 leaves the subnet without a range of IPv6 addresses where the others have one.
	OnlyIPv4 bool
	// IPv6Native makes the subnet one with IPv6 addresses alone, in any account. It has no CIDR.
	IPv6Native bool
}

// add adds subnets, with the tags of the existing ones.
func (a *account) add(subnets []Subnet) error {
	for _, want := range subnets {
		z, known := a.zone(want.Zone)
		tags := maps.Clone(a.subnets[0].Tags)
		tags["Name"] = fmt.Sprintf("%s-private-%d", a.cluster, len(a.subnets)+1)
		added := &subnet{ID: fmt.Sprintf("subnet-0a5e7e%010d", len(a.subnets)+1), Zone: z.Name, ZoneID: z.ID, onlyIPv4: want.OnlyIPv4, native: want.IPv6Native, Tags: tags}
		if want.IPv6Native {
			if !known || want.CIDR != "" || want.OnlyIPv4 {
				return fmt.Errorf("subnet with IPv6 addresses alone in %s: it needs a zone of the account, and has no range of IPv4 addresses", want.Zone)
			}
			added.IPv6 = ipv6Range(len(a.subnets))
			a.subnets = append(a.subnets, added)
			continue
		}
		prefix, err := netip.ParsePrefix(want.CIDR)
		if err != nil || !known || prefix != prefix.Masked() || prefix.Bits() > 28 || !netip.MustParsePrefix(vpcCIDR).Contains(prefix.Addr()) {
			return fmt.Errorf("subnet %s in %s: it needs a zone of the account and a range of %s of 16 addresses or more", want.CIDR, want.Zone, vpcCIDR)
		}
		for _, n := range a.subnets {
			if !n.native && n.Prefix.Overlaps(prefix) {
				return fmt.Errorf("subnet %s overlaps with %s", want.CIDR, n.Prefix)
			}
		}
		added.Prefix = prefix
		a.subnets = append(a.subnets, added)
	}
	return nil
}

func withName(base map[string]string, name string, more map[string]string) map[string]string {
	tags := map[string]string{"Name": name}
	for k, v := range base {
		tags[k] = v
	}
	for k, v := range more {
		tags[k] = v
	}
	return tags
}

func (a *account) zone(name string) (zone, bool) {
	for _, z := range a.zones {
		if z.Name == name {
			return z, true
		}
	}
	return zone{}, false
}

func (a *account) zoneByID(id string) (zone, bool) {
	for _, z := range a.zones {
		if z.ID == id {
			return z, true
		}
	}
	return zone{}, false
}

func (a *account) subnet(id string) *subnet {
	for _, s := range a.subnets {
		if s.ID == id {
			return s
		}
	}
	return nil
}

func (a *account) group(id string) *securityGroup {
	for _, g := range a.groups {
		if g.ID == id {
			return g
		}
	}
	return nil
}

// privateDNS returns the host name that EC2 gives an instance: by its private address, or by its id if it has none ("Amazon
// EC2 instance hostnames and domains": resource names are the only ones in subnets with IPv6 addresses alone).
func (a *account) privateDNS(i *instance) string {
	host := "ip-" + strings.ReplaceAll(i.PrivateIP, ".", "-")
	if i.PrivateIP == "" {
		host = i.ID
	}
	if a.region == "us-east-1" {
		return host + ".ec2.internal"
	}
	return host + "." + a.region + ".compute.internal"
}

// currency returns the currency of the region's prices, and the simulator's exchange rate: units per US dollar.
func (a *account) currency() (code string, perDollar float64) {
	if strings.HasPrefix(a.region, "cn-") {
		return "CNY", 9
	}
	return "USD", 1
}

func (a *account) arn(service, resource string) string { return a.arnIn(accountID, service, resource) }

// arnIn returns the ARN of a resource of any account.
func (a *account) arnIn(owner, service, resource string) string {
	return fmt.Sprintf("arn:%s:%s:%s:%s:%s", a.partition(), service, a.region, owner, resource)
}

// share transfers the VPC and its subnets to another account, which shares them with this one. Their tags belong to the
// owner, and nobody else sees them (VPC User Guide, "Share your VPC subnets with other accounts").
func (a *account) share(owner string) {
	a.network = owner
	for _, n := range a.subnets {
		n.Tags = map[string]string{}
	}
}

// subnetARN returns the ARN of a subnet, in the account that owns it.
func (a *account) subnetARN(id string) string {
	return a.arnIn(a.network, "ec2", "subnet/"+id)
}

// reservationARN returns the ARN of a capacity reservation, in the account that owns it.
func (a *account) reservationARN(r *capacityReservation) string {
	return a.arnIn(r.owner(), "ec2", "capacity-reservation/"+r.ID)
}

// publicARN returns the ARN of a resource that belongs to no account, such as an image, a snapshot or one of Amazon's
// parameters.
func (a *account) publicARN(service, resource string) string {
	return fmt.Sprintf("arn:%s:%s:%s::%s", a.partition(), service, a.region, resource)
}

// partition returns the AWS partition of the region (AWS General Reference, "Amazon Resource Names").
func (a *account) partition() string {
	switch {
	case strings.HasPrefix(a.region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(a.region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}

// newID returns a new EC2 id: a prefix and 17 hexadecimal digits.
func newID(prefix string) string { return fmt.Sprintf("%s-0%016x", prefix, rand.Uint64()) }
