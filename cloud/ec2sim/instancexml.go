package ec2sim

import (
	"strings"
	"time"
)

type stateXML struct {
	Code int    `xml:"code"`
	Name string `xml:"name"`
}

type stateReasonXML struct {
	Code    string `xml:"code"`
	Message string `xml:"message"`
}

type attachedVolumeXML struct {
	Device string `xml:"deviceName"`
	EBS    struct {
		ID                  string `xml:"volumeId"`
		Status              string `xml:"status"`
		AttachedAt          string `xml:"attachTime"`
		DeleteOnTermination bool   `xml:"deleteOnTermination"`
	} `xml:"ebs"`
}

type attachedInterfaceXML struct {
	ID          string          `xml:"networkInterfaceId"`
	SubnetID    string          `xml:"subnetId"`
	VPCID       string          `xml:"vpcId"`
	Description string          `xml:"description"`
	OwnerID     string          `xml:"ownerId"`
	Status      string          `xml:"status"`
	Type        string          `xml:"interfaceType"`
	PrivateIP   string          `xml:"privateIpAddress,omitempty"`
	PrivateDNS  string          `xml:"privateDnsName,omitempty"`
	Groups      []groupXML      `xml:"groupSet>item"`
	IPv6        []ipv6XML       `xml:"ipv6AddressesSet>item,omitempty"`
	Prefixes    []ipv6PrefixXML `xml:"ipv6PrefixSet>item,omitempty"`
	Attachment  struct {
		DeviceIndex         int    `xml:"deviceIndex"`
		CardIndex           int    `xml:"networkCardIndex"`
		Status              string `xml:"status"`
		AttachedAt          string `xml:"attachTime"`
		DeleteOnTermination bool   `xml:"deleteOnTermination"`
	} `xml:"attachment"`
}

type ipv6PrefixXML struct {
	Prefix string `xml:"ipv6Prefix"`
}

type ipv6XML struct {
	Address string `xml:"ipv6Address"`
	Primary bool   `xml:"isPrimaryIpv6"`
}

type instanceXML struct {
	ID             string                 `xml:"instanceId"`
	ImageID        string                 `xml:"imageId"`
	State          stateXML               `xml:"instanceState"`
	PrivateDNS     string                 `xml:"privateDnsName"`
	Reason         string                 `xml:"reason"`
	StateReason    *stateReasonXML        `xml:"stateReason"`
	KeyName        string                 `xml:"keyName,omitempty"`
	LaunchIndex    int                    `xml:"amiLaunchIndex"`
	Type           string                 `xml:"instanceType"`
	LaunchedAt     string                 `xml:"launchTime"`
	Placement      placementXML           `xml:"placement"`
	Monitoring     monitoringXML          `xml:"monitoring"`
	SubnetID       string                 `xml:"subnetId,omitempty"`
	VPCID          string                 `xml:"vpcId,omitempty"`
	PrivateIP      string                 `xml:"privateIpAddress,omitempty"`
	IPv6           string                 `xml:"ipv6Address,omitempty"`
	PublicIP       string                 `xml:"ipAddress,omitempty"`
	SourceCheck    bool                   `xml:"sourceDestCheck"`
	Groups         []groupXML             `xml:"groupSet>item,omitempty"`
	Architecture   string                 `xml:"architecture"`
	RootDeviceType string                 `xml:"rootDeviceType"`
	RootDeviceName string                 `xml:"rootDeviceName"`
	Volumes        []attachedVolumeXML    `xml:"blockDeviceMapping>item,omitempty"`
	Virtualization string                 `xml:"virtualizationType"`
	ClientToken    string                 `xml:"clientToken"`
	Tags           []tagXML               `xml:"tagSet>item,omitempty"`
	Hypervisor     string                 `xml:"hypervisor"`
	Interfaces     []attachedInterfaceXML `xml:"networkInterfaceSet>item,omitempty"`
	Profile        *profileRefXML         `xml:"iamInstanceProfile"`
	Lifecycle      string                 `xml:"instanceLifecycle,omitempty"`
	Capacity       string                 `xml:"capacityReservationId,omitempty"`
	CapacityUse    *capacityUseXML        `xml:"capacityReservationSpecification"`
	SpotRequest    string                 `xml:"spotInstanceRequestId,omitempty"`
	EBSOptimized   bool                   `xml:"ebsOptimized"`
	ENA            bool                   `xml:"enaSupport"`
	CPU            cpuOptionsXML          `xml:"cpuOptions"`
	Enclaves       enabledXML             `xml:"enclaveOptions"`
	Metadata       struct {
		State string `xml:"state"`
		metadataOptions
	} `xml:"metadataOptions"`
	Platform string `xml:"platformDetails"`
}

// capacityUseXML describes how an instance got its capacity reservation.
type capacityUseXML struct {
	Preference string          `xml:"capacityReservationPreference,omitempty"`
	Target     *reservationRef `xml:"capacityReservationTarget"`
}

type reservationRef struct {
	ID string `xml:"capacityReservationId"`
}

type monitoringXML struct {
	State string `xml:"state"`
}

type cpuOptionsXML struct {
	Cores   int `xml:"coreCount"`
	Threads int `xml:"threadsPerCore"`
}

// instanceAnswers formats instances for EC2's answers.
type instanceAnswers struct {
	account      *account
	catalogue    *Catalogue
	images       *images
	groups       *securityGroups
	reservations *table[capacityReservation]
	profiles     *table[instanceProfile]
	placements   *table[placementGroup]
}

// xml formats an instance as Describe calls see it at an instant.
func (ia *instanceAnswers) xml(i *instance, now time.Time) instanceXML {
	state := i.seen(now)
	t, z := ia.catalogue.Type(i.Type), ia.account.zoneOf(i)
	x := instanceXML{
		ID: i.ID, ImageID: i.Image, State: stateXML{state.code, state.name}, KeyName: i.KeyName, LaunchIndex: i.LaunchIndex,
		Type: i.Type, LaunchedAt: timestamp(i.LaunchedAt), Placement: placementXML{Zone: i.Zone, ZoneID: z.ID, Partition: i.Partition, Tenancy: i.Tenancy},
		Monitoring: monitoringXML{"disabled"}, SourceCheck: true, Architecture: t.EC2Arch(), RootDeviceType: "ebs", RootDeviceName: rootDevice,
		Virtualization: "hvm", ClientToken: i.ClientToken, Tags: tagsXML(i.shownTags(now)), Hypervisor: "xen",
		SpotRequest: i.SpotRequest, EBSOptimized: i.EBSOptimized, ENA: true, Platform: "Linux/UNIX", CPU: cpuOptions(t),
	}
	if im := ia.images.find(i.Image); im != nil {
		x.RootDeviceName, x.Platform = im.Root, im.platform()
	}
	setDefault(&x.Placement.Tenancy, "default")
	if g := ia.placements.rows[i.PlacementGroup]; g != nil {
		x.Placement.Group, x.Placement.GroupID = g.Name, g.ID
	}
	x.Enclaves.Enabled = i.Enclave
	x.Metadata.State, x.Metadata.metadataOptions = "applied", i.Metadata
	if i.Monitoring {
		x.Monitoring.State = "enabled"
	}
	if i.Spot {
		x.Lifecycle = "spot"
	}
	// Instances outlive their reservation, at the on-demand price (user guide, "Cancel a Capacity Reservation").
	if r := ia.reservations.rows[i.Capacity]; r != nil && r.state(now) == "active" {
		x.Capacity = i.Capacity
		setDefault(&x.Lifecycle, r.market())
	}
	// The API reference (CapacityReservationSpecificationResponse) suggests that a target comes without the preference.
	// Karpenter identifies reserved instances by the preference (pkg/providers/instance/types.go), so the answer contains
	// both.
	x.CapacityUse = &capacityUseXML{Preference: i.ReservationUse}
	if i.Targeted {
		x.CapacityUse.Target = &reservationRef{i.Capacity}
	} else if !i.Spot {
		setDefault(&x.CapacityUse.Preference, matchOpen)
	}
	if i.Profile != "" {
		x.Profile = &profileRefXML{ARN: i.Profile}
		if p := ia.profiles.rows[i.Profile[strings.LastIndexByte(i.Profile, '/')+1:]]; p != nil {
			x.Profile.ID = p.ID
		}
	}
	if state != statePending && state != stateRunning {
		x.Reason = i.EndReason
		x.StateReason = &stateReasonXML{i.EndCode, i.EndReason}
	}
	if state == stateTerminated {
		return x // EC2 no longer reports the network and the disks
	}
	x.SubnetID, x.VPCID, x.PrivateIP, x.PrivateDNS = i.Subnet, vpcID, i.PrivateIP, ia.account.privateDNS(i)
	x.Groups, x.IPv6, x.PublicIP = ia.groups.xml(i.Groups), i.ipv6(), i.PublicIP
	for _, v := range i.Volumes {
		a := attachedVolumeXML{Device: v.Device}
		a.EBS.ID, a.EBS.Status, a.EBS.AttachedAt, a.EBS.DeleteOnTermination = v.ID, "attached", timestamp(i.LaunchedAt), !v.Keep
		x.Volumes = append(x.Volumes, a)
	}
	for _, n := range i.Interfaces {
		x.Interfaces = append(x.Interfaces, ia.interfaceXML(i, n))
	}
	return x
}

func (ia *instanceAnswers) interfaceXML(i *instance, n networkInterface) attachedInterfaceXML {
	a := attachedInterfaceXML{
		ID: n.ID, SubnetID: i.Subnet, VPCID: vpcID, Description: n.Description, OwnerID: accountID, Status: "in-use",
		Type: n.Type, Groups: ia.groups.xml(n.Groups),
	}
	if n.DeviceIndex == 0 && n.CardIndex == 0 {
		a.PrivateIP, a.PrivateDNS = i.PrivateIP, ia.account.privateDNS(i)
	}
	for at, ip := range n.IPv6 {
		a.IPv6 = append(a.IPv6, ipv6XML{ip, n.PrimaryIPv6 && at == 0})
	}
	for _, prefix := range n.IPv6Prefixes {
		a.Prefixes = append(a.Prefixes, ipv6PrefixXML{prefix})
	}
	a.Attachment.DeviceIndex, a.Attachment.CardIndex = n.DeviceIndex, n.CardIndex
	a.Attachment.Status, a.Attachment.AttachedAt, a.Attachment.DeleteOnTermination = "attached", timestamp(i.LaunchedAt), true
	return a
}

// cpuOptions returns cores and threads.
func cpuOptions(t *InstanceType) cpuOptionsXML {
	cores, threads := t.Cores()
	return cpuOptionsXML{cores, threads}
}
