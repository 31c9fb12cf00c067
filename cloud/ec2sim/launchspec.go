package ec2sim

import (
	"cmp"
	"encoding/base64"
	"maps"
	"strconv"
)

// launchSpec is the description of an instance in a launch template or a RunInstances request. Their parameters have the
// same names.
type launchSpec struct {
	ImageID        string                       `json:",omitempty"`
	InstanceType   string                       `json:",omitempty"`
	KeyName        string                       `json:",omitempty"`
	UserData       string                       `json:",omitempty"` // base64
	ProfileName    string                       `json:",omitempty"`
	ProfileARN     string                       `json:",omitempty"`
	GroupIDs       []string                     `json:",omitempty"`
	GroupNames     []string                     `json:",omitempty"`
	SubnetID       string                       `json:",omitempty"`
	Zone           string                       `json:",omitempty"`
	PlacementGroup string                       `json:",omitempty"` // its name
	PlacementID    string                       `json:",omitempty"` // its id
	Partition      int                          `json:",omitempty"` // of the placement group
	Tenancy        string                       `json:",omitempty"`
	MarketType     string                       `json:",omitempty"`
	Interruption   string                       `json:",omitempty"` // what a spot interruption does
	Nested         string                       `json:",omitempty"` // nested virtualization
	Enclave        *bool                        `json:",omitempty"` // Nitro Enclaves
	EBSOptimized   *bool                        `json:",omitempty"`
	Monitoring     *bool                        `json:",omitempty"`
	Metadata       *metadataOptions             `json:",omitempty"`
	Interfaces     []interfaceSpec              `json:",omitempty"`
	Devices        []deviceSpec                 `json:",omitempty"`
	Tags           map[string]map[string]string `json:",omitempty"` // by resource type
	Reservation    string                       `json:",omitempty"` // capacity reservation id
	ReservationUse string                       `json:",omitempty"` // capacity reservation preference
}

// metadataOptions has only the options given in a launch template, but all of them in an instance. The empty string means
// that an option is not given: none of the enums has it as a value.
type metadataOptions struct {
	Endpoint     string `xml:"httpEndpoint,omitempty"`
	IPv6         string `xml:"httpProtocolIpv6,omitempty"`
	HopLimit     int    `xml:"httpPutResponseHopLimit,omitempty"`
	Tokens       string `xml:"httpTokens,omitempty"`
	InstanceTags string `xml:"instanceMetadataTags,omitempty"`
}

type interfaceSpec struct {
	DeviceIndex         int
	CardIndex           int      `json:",omitempty"`
	Type                string   `json:",omitempty"`
	Groups              []string `json:",omitempty"`
	SubnetID            string   `json:",omitempty"`
	Description         string   `json:",omitempty"`
	PublicIP            *bool    `json:",omitempty"`
	DeleteOnTermination *bool    `json:",omitempty"`
	Tracking            bool     `json:",omitempty"` // connection tracking timeouts are given
	PrimaryIPv6         bool     `json:",omitempty"`
	Ipv6Count           int      `json:",omitempty"`
	Ipv6PrefixCount     int      `json:",omitempty"`
	Ipv4PrefixCount     int      `json:",omitempty"`
	SecondaryCount      int      `json:",omitempty"` // secondary private IPv4 addresses
}

type deviceSpec struct {
	Name                string
	VirtualName         string `json:",omitempty"`
	SizeGiB             int    `json:",omitempty"`
	Type                string `json:",omitempty"`
	Snapshot            string `json:",omitempty"`
	KMSKey              string `json:",omitempty"`
	Encrypted           *bool  `json:",omitempty"`
	DeleteOnTermination *bool  `json:",omitempty"`
	IOPS                int    `json:",omitempty"`
	Throughput          int    `json:",omitempty"`
}

// numbers reads integers and keeps the first error, so that a long list of fields needs only one check.
type numbers struct{ err error }

func (n *numbers) read(p *params, key string) int {
	v, err := p.integer(key, 0)
	if n.err == nil {
		n.err = err
	}
	return v
}

// maxUserData is EC2's limit on user data, in bytes before encoding.
const maxUserData = 16384

func parseLaunchSpec(p *params) (*launchSpec, error) {
	var n numbers
	spec := &launchSpec{
		ImageID: p.str("ImageId"), InstanceType: p.str("InstanceType"), KeyName: p.str("KeyName"),
		UserData:    p.str("UserData"),
		ProfileName: p.sub("IamInstanceProfile").str("Name"), ProfileARN: p.sub("IamInstanceProfile").str("Arn"),
		GroupIDs: p.strings("SecurityGroupId"), GroupNames: p.strings("SecurityGroup"),
		SubnetID: p.str("SubnetId"), Zone: p.sub("Placement").str("AvailabilityZone"),
		PlacementGroup: p.sub("Placement").str("GroupName"), PlacementID: p.sub("Placement").str("GroupId"),
		Partition: n.read(p.sub("Placement"), "PartitionNumber"), Tenancy: p.sub("Placement").str("Tenancy"),
		Interruption: p.sub("InstanceMarketOptions").sub("SpotOptions").str("InstanceInterruptionBehavior"),
		MarketType:   p.sub("InstanceMarketOptions").str("MarketType"), Nested: p.sub("CpuOptions").str("NestedVirtualization"), EBSOptimized: p.flag("EbsOptimized"),
		Monitoring: p.sub("Monitoring").flag("Enabled"), Enclave: p.sub("EnclaveOptions").flag("Enabled"),
		Reservation:    p.sub("CapacityReservationSpecification").sub("CapacityReservationTarget").str("CapacityReservationId"),
		ReservationUse: p.sub("CapacityReservationSpecification").str("CapacityReservationPreference"),
	}
	if raw, err := base64.StdEncoding.DecodeString(spec.UserData); err != nil {
		return nil, refuse("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
	} else if len(raw) > maxUserData {
		return nil, invalidValue("User data is limited to %d bytes", maxUserData)
	}
	if m := p.sub("MetadataOptions"); m != nil {
		spec.Metadata = &metadataOptions{
			Endpoint: m.str("HttpEndpoint"), IPv6: m.str("HttpProtocolIpv6"), HopLimit: n.read(m, "HttpPutResponseHopLimit"),
			Tokens: m.str("HttpTokens"), InstanceTags: m.str("InstanceMetadataTags"),
		}
	}
	for _, item := range p.items("NetworkInterface") {
		spec.Interfaces = append(spec.Interfaces, interfaceSpec{
			DeviceIndex: n.read(item, "DeviceIndex"), CardIndex: n.read(item, "NetworkCardIndex"), Type: item.str("InterfaceType"),
			Groups: item.strings("SecurityGroupId"), SubnetID: item.str("SubnetId"), Description: item.str("Description"),
			PublicIP: item.flag("AssociatePublicIpAddress"), DeleteOnTermination: item.flag("DeleteOnTermination"),
			Tracking:    tracking(item.sub("ConnectionTrackingSpecification")),
			PrimaryIPv6: *orFalse(item.flag("PrimaryIpv6")), Ipv6PrefixCount: n.read(item, "Ipv6PrefixCount"),
			Ipv6Count: n.read(item, "Ipv6AddressCount"), Ipv4PrefixCount: n.read(item, "Ipv4PrefixCount"),
			SecondaryCount: n.read(item, "SecondaryPrivateIpAddressCount"),
		})
	}
	for _, item := range p.items("BlockDeviceMapping") {
		ebs := item.sub("Ebs")
		spec.Devices = append(spec.Devices, deviceSpec{
			Name: item.str("DeviceName"), VirtualName: item.str("VirtualName"), SizeGiB: n.read(ebs, "VolumeSize"),
			Type: ebs.str("VolumeType"), Snapshot: ebs.str("SnapshotId"), KMSKey: ebs.str("KmsKeyId"),
			Encrypted: ebs.flag("Encrypted"), DeleteOnTermination: ebs.flag("DeleteOnTermination"),
			IOPS: n.read(ebs, "Iops"), Throughput: n.read(ebs, "Throughput"),
		})
	}
	if n.err != nil {
		return nil, n.err
	}
	var err error
	spec.Tags, err = parseTagSpecifications(p)
	return spec, err
}

// tracking reports whether connection tracking timeouts are given. Their values have no effect here.
func tracking(p *params) bool {
	given := false
	for _, name := range []string{"TcpEstablishedTimeout", "UdpStreamTimeout", "UdpTimeout"} {
		given = p.has(name) || given
	}
	return given
}

// parseTagSpecifications reads TagSpecification.N into tags by resource type.
func parseTagSpecifications(p *params) (map[string]map[string]string, error) {
	byType := map[string]map[string]string{}
	for _, item := range p.items("TagSpecification") {
		kind := item.str("ResourceType")
		if kind == "" {
			return nil, invalidValue("Tag specification resource type must have a value")
		}
		tags, err := parseTags(item)
		if err != nil {
			return nil, err
		}
		if byType[kind] == nil {
			byType[kind] = map[string]string{}
		}
		maps.Copy(byType[kind], tags)
	}
	return byType, nil
}

// overlay returns the template's spec overridden by that of RunInstances or of a fleet override.
func (s *launchSpec) overlay(over *launchSpec) *launchSpec {
	out := *s
	for _, f := range []struct {
		to   *string
		from string
	}{
		{&out.ImageID, over.ImageID}, {&out.InstanceType, over.InstanceType}, {&out.KeyName, over.KeyName},
		{&out.UserData, over.UserData}, {&out.SubnetID, over.SubnetID}, {&out.Zone, over.Zone},
		{&out.PlacementGroup, over.PlacementGroup}, {&out.PlacementID, over.PlacementID}, {&out.Tenancy, over.Tenancy}, {&out.MarketType, over.MarketType}, {&out.Nested, over.Nested},
		{&out.Reservation, over.Reservation}, {&out.ReservationUse, over.ReservationUse}, {&out.Interruption, over.Interruption},
	} {
		if f.from != "" {
			*f.to = f.from
		}
	}
	out.Partition = cmp.Or(over.Partition, s.Partition)
	if over.ProfileName != "" || over.ProfileARN != "" {
		out.ProfileName, out.ProfileARN = over.ProfileName, over.ProfileARN
	}
	if over.GroupIDs != nil || over.GroupNames != nil {
		out.GroupIDs, out.GroupNames = over.GroupIDs, over.GroupNames
	}
	if over.Interfaces != nil {
		out.Interfaces = over.Interfaces
	}
	if over.Devices != nil {
		out.Devices = over.Devices
	}
	if over.Metadata != nil {
		out.Metadata = over.Metadata
	}
	if over.Monitoring != nil {
		out.Monitoring = over.Monitoring
	}
	if over.Enclave != nil {
		out.Enclave = over.Enclave
	}
	if over.EBSOptimized != nil {
		out.EBSOptimized = over.EBSOptimized
	}
	out.Tags = mergeTagSpecifications(s.Tags, over.Tags)
	return &out
}

// mergeTagSpecifications merges two sets of tags; those of the second override those of the first.
func mergeTagSpecifications(base, over map[string]map[string]string) map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, set := range []map[string]map[string]string{base, over} {
		for kind, tags := range set {
			if out[kind] == nil {
				out[kind] = map[string]string{}
			}
			maps.Copy(out[kind], tags)
		}
	}
	return out
}

// launchSpecXML is the launchTemplateData element.
type launchSpecXML struct {
	ImageID      string           `xml:"imageId,omitempty"`
	InstanceType string           `xml:"instanceType,omitempty"`
	KeyName      string           `xml:"keyName,omitempty"`
	UserData     string           `xml:"userData,omitempty"`
	Profile      *profileRefXML   `xml:"iamInstanceProfile"`
	GroupIDs     []string         `xml:"securityGroupIdSet>item,omitempty"`
	GroupNames   []string         `xml:"securityGroupSet>item,omitempty"`
	EBSOptimized *bool            `xml:"ebsOptimized"`
	Monitoring   *enabledXML      `xml:"monitoring"`
	Metadata     *metadataOptions `xml:"metadataOptions"`
	Placement    *placementXML    `xml:"placement"`
	Market       *marketXML       `xml:"instanceMarketOptions"`
	Interfaces   []interfaceXML   `xml:"networkInterfaceSet>item,omitempty"`
	Devices      []deviceXML      `xml:"blockDeviceMappingSet>item,omitempty"`
	Tags         []tagSpecXML     `xml:"tagSpecificationSet>item,omitempty"`
}

type placementXML struct {
	Zone      string `xml:"availabilityZone,omitempty"`
	ZoneID    string `xml:"availabilityZoneId,omitempty"`
	Group     string `xml:"groupName"`
	GroupID   string `xml:"groupId,omitempty"`
	Partition int    `xml:"partitionNumber,omitempty"`
	Tenancy   string `xml:"tenancy,omitempty"`
}

type profileRefXML struct {
	ARN  string `xml:"arn,omitempty"`
	Name string `xml:"name,omitempty"`
	ID   string `xml:"id,omitempty"`
}

type enabledXML struct {
	Enabled bool `xml:"enabled"`
}

type marketXML struct {
	MarketType string `xml:"marketType"`
}

type interfaceXML struct {
	DeviceIndex         int      `xml:"deviceIndex"`
	CardIndex           int      `xml:"networkCardIndex"`
	Type                string   `xml:"interfaceType,omitempty"`
	Groups              []string `xml:"groupSet>groupId,omitempty"`
	SubnetID            string   `xml:"subnetId,omitempty"`
	Description         string   `xml:"description,omitempty"`
	PublicIP            *bool    `xml:"associatePublicIpAddress"`
	DeleteOnTermination *bool    `xml:"deleteOnTermination"`
	PrimaryIPv6         *bool    `xml:"primaryIpv6"`
	IPv6Count           int      `xml:"ipv6AddressCount,omitempty"`
	IPv6PrefixCount     int      `xml:"ipv6PrefixCount,omitempty"`
	IPv4PrefixCount     int      `xml:"ipv4PrefixCount,omitempty"`
	SecondaryCount      int      `xml:"secondaryPrivateIpAddressCount,omitempty"`
}

type deviceXML struct {
	Name        string  `xml:"deviceName"`
	VirtualName string  `xml:"virtualName,omitempty"`
	EBS         *ebsXML `xml:"ebs"`
}

type ebsXML struct {
	SizeGiB             int    `xml:"volumeSize,omitempty"`
	Type                string `xml:"volumeType,omitempty"`
	Snapshot            string `xml:"snapshotId,omitempty"`
	KMSKey              string `xml:"kmsKeyId,omitempty"`
	Encrypted           *bool  `xml:"encrypted"`
	DeleteOnTermination *bool  `xml:"deleteOnTermination"`
	IOPS                int    `xml:"iops,omitempty"`
	Throughput          int    `xml:"throughput,omitempty"`
}

type tagSpecXML struct {
	Kind string   `xml:"resourceType"`
	Tags []tagXML `xml:"tagSet>item"`
}

func (s *launchSpec) xml() launchSpecXML {
	out := launchSpecXML{
		ImageID: s.ImageID, InstanceType: s.InstanceType, KeyName: s.KeyName, UserData: s.UserData,
		GroupIDs: s.GroupIDs, GroupNames: s.GroupNames, EBSOptimized: s.EBSOptimized, Metadata: s.Metadata,
	}
	if s.ProfileName != "" || s.ProfileARN != "" {
		out.Profile = &profileRefXML{Name: s.ProfileName, ARN: s.ProfileARN}
	}
	if s.Monitoring != nil {
		out.Monitoring = &enabledXML{*s.Monitoring}
	}
	if s.Zone != "" || s.PlacementGroup != "" || s.PlacementID != "" || s.Tenancy != "" {
		out.Placement = &placementXML{Zone: s.Zone, Group: s.PlacementGroup, GroupID: s.PlacementID, Partition: s.Partition, Tenancy: s.Tenancy}
	}
	if s.MarketType != "" {
		out.Market = &marketXML{s.MarketType}
	}
	for _, i := range s.Interfaces {
		x := interfaceXML{
			DeviceIndex: i.DeviceIndex, CardIndex: i.CardIndex, Type: i.Type, Groups: i.Groups, SubnetID: i.SubnetID,
			Description: i.Description, PublicIP: i.PublicIP, DeleteOnTermination: i.DeleteOnTermination,
			IPv6Count: i.Ipv6Count, IPv6PrefixCount: i.Ipv6PrefixCount, IPv4PrefixCount: i.Ipv4PrefixCount, SecondaryCount: i.SecondaryCount,
		}
		if i.PrimaryIPv6 {
			x.PrimaryIPv6 = &i.PrimaryIPv6
		}
		out.Interfaces = append(out.Interfaces, x)
	}
	for _, d := range s.Devices {
		x := deviceXML{Name: d.Name, VirtualName: d.VirtualName}
		if d.VirtualName == "" {
			x.EBS = &ebsXML{
				SizeGiB: d.SizeGiB, Type: d.Type, Snapshot: d.Snapshot, KMSKey: d.KMSKey, Encrypted: d.Encrypted,
				DeleteOnTermination: d.DeleteOnTermination, IOPS: d.IOPS, Throughput: d.Throughput,
			}
		}
		out.Devices = append(out.Devices, x)
	}
	for _, kind := range sortedKeys(s.Tags) {
		out.Tags = append(out.Tags, tagSpecXML{Kind: kind, Tags: tagsXML(s.Tags[kind])})
	}
	return out
}

// versionNumber formats a launch template version.
func versionNumber(n int) string { return strconv.Itoa(n) }
