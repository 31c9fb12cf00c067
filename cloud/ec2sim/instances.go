package ec2sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

func instanceNotFound(ids ...string) error {
	if len(ids) == 1 {
		return refuse("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", ids[0])
	}
	return refuse("InvalidInstanceID.NotFound", "The instance IDs '%s' do not exist", strings.Join(ids, ", "))
}

type placementXML struct {
	Zone    string `xml:"availabilityZone,omitempty"`
	ZoneID  string `xml:"availabilityZoneId,omitempty"`
	Group   string `xml:"groupName"`
	Tenancy string `xml:"tenancy,omitempty"`
}

type stateXML struct {
	Code int    `xml:"code"`
	Name string `xml:"name"`
}

type groupXML struct {
	ID   string `xml:"groupId"`
	Name string `xml:"groupName"`
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
	ID          string     `xml:"networkInterfaceId"`
	SubnetID    string     `xml:"subnetId"`
	VPCID       string     `xml:"vpcId"`
	Description string     `xml:"description"`
	OwnerID     string     `xml:"ownerId"`
	Status      string     `xml:"status"`
	Type        string     `xml:"interfaceType"`
	PrivateIP   string     `xml:"privateIpAddress,omitempty"`
	PrivateDNS  string     `xml:"privateDnsName,omitempty"`
	Groups      []groupXML `xml:"groupSet>item"`
	Attachment  struct {
		DeviceIndex         int    `xml:"deviceIndex"`
		CardIndex           int    `xml:"networkCardIndex"`
		Status              string `xml:"status"`
		AttachedAt          string `xml:"attachTime"`
		DeleteOnTermination bool   `xml:"deleteOnTermination"`
	} `xml:"attachment"`
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
	SpotRequest    string                 `xml:"spotInstanceRequestId,omitempty"`
	EBSOptimized   bool                   `xml:"ebsOptimized"`
	ENA            bool                   `xml:"enaSupport"`
	CPU            cpuOptionsXML          `xml:"cpuOptions"`
	Metadata       struct {
		State string `xml:"state"`
		metadataOptions
	} `xml:"metadataOptions"`
	Platform string `xml:"platformDetails"`
}

type monitoringXML struct {
	State string `xml:"state"`
}

type cpuOptionsXML struct {
	Cores   int `xml:"coreCount"`
	Threads int `xml:"threadsPerCore"`
}

// instanceXML prints an instance as Describe calls see it at an instant.
func (s *Server) instanceXML(i *instance, now time.Time) instanceXML {
	state := i.seen(now)
	t, z := s.catalogue.Type(i.Type), s.zoneOf(i)
	x := instanceXML{
		ID: i.ID, ImageID: i.Image, State: stateXML{state.code, state.name}, KeyName: i.KeyName, LaunchIndex: i.LaunchIndex,
		Type: i.Type, LaunchedAt: timestamp(i.LaunchedAt), Placement: placementXML{i.Zone, z.id, i.PlacementGroup, "default"},
		Monitoring: monitoringXML{"disabled"}, SourceCheck: true, Architecture: t.ec2Arch(), RootDeviceType: "ebs", RootDeviceName: rootDevice,
		Virtualization: "hvm", ClientToken: i.ClientToken, Tags: tagsXML(i.Tags), Hypervisor: "xen",
		SpotRequest: i.SpotRequest, EBSOptimized: i.EBSOptimized, ENA: true, Platform: "Linux/UNIX", CPU: cpuOptions(t),
	}
	setDefault(&x.Placement.Tenancy, i.Tenancy)
	x.Metadata.State, x.Metadata.metadataOptions = "applied", i.Metadata
	if i.Monitoring {
		x.Monitoring.State = "enabled"
	}
	if i.Spot {
		x.Lifecycle = "spot"
	}
	if i.Profile != "" {
		x.Profile = &profileRefXML{ARN: i.Profile}
		if p := s.profiles.rows[i.Profile[strings.LastIndexByte(i.Profile, '/')+1:]]; p != nil {
			x.Profile.ID = p.ID
		}
	}
	if state == stateShuttingDown || state == stateTerminated {
		x.Reason = i.EndReason
		x.StateReason = &stateReasonXML{i.EndCode, i.EndReason}
	}
	if state == stateTerminated {
		return x // EC2 forgets the network and the disks
	}
	x.SubnetID, x.VPCID, x.PrivateIP, x.PrivateDNS = i.Subnet, vpcID, i.PrivateIP, s.account.privateDNS(i.PrivateIP)
	x.Groups = s.groupsXML(i.Groups)
	for _, v := range i.Volumes {
		a := attachedVolumeXML{Device: v.Device}
		a.EBS.ID, a.EBS.Status, a.EBS.AttachedAt, a.EBS.DeleteOnTermination = v.ID, "attached", timestamp(i.LaunchedAt), !v.Keep
		x.Volumes = append(x.Volumes, a)
	}
	for _, n := range i.Interfaces {
		x.Interfaces = append(x.Interfaces, s.attachedInterfaceXML(i, n))
	}
	return x
}

func (s *Server) attachedInterfaceXML(i *instance, n networkInterface) attachedInterfaceXML {
	a := attachedInterfaceXML{
		ID: n.ID, SubnetID: i.Subnet, VPCID: vpcID, Description: n.Description, OwnerID: accountID, Status: "in-use",
		Type: n.Type, Groups: s.groupsXML(n.Groups),
	}
	if n.DeviceIndex == 0 && n.CardIndex == 0 {
		a.PrivateIP, a.PrivateDNS = i.PrivateIP, s.account.privateDNS(i.PrivateIP)
	}
	a.Attachment.DeviceIndex, a.Attachment.CardIndex = n.DeviceIndex, n.CardIndex
	a.Attachment.Status, a.Attachment.AttachedAt, a.Attachment.DeleteOnTermination = "attached", timestamp(i.LaunchedAt), true
	return a
}

func (s *Server) groupsXML(ids []string) []groupXML {
	var out []groupXML
	for _, id := range ids {
		if g := s.account.group(id); g != nil {
			out = append(out, groupXML{g.ID, g.Name})
		}
	}
	return out
}

// zoneOf finds the zone of an instance, which may no longer be configured after a restart.
func (s *Server) zoneOf(i *instance) zone {
	z, ok := s.account.zone(i.Zone)
	if !ok {
		z.name = i.Zone
	}
	return z
}

// cpuOptions tells cores from vCPUs: x86 types have two threads per core, but for AMD's from the 7th generation on and
// the bursting T2; Graviton has one.
func cpuOptions(t *InstanceType) cpuOptionsXML {
	family, _, _ := strings.Cut(t.Name, ".")
	single := t.Arch == "arm64" || family == "t2" || t.CPUManufacturer == "AMD" && (strings.Contains(family, "7a") || strings.Contains(family, "8a"))
	if single || t.VCPUs == 1 {
		return cpuOptionsXML{t.VCPUs, 1}
	}
	return cpuOptionsXML{t.VCPUs / 2, 2}
}

type reservationXML struct {
	ID        string        `xml:"reservationId"`
	OwnerID   string        `xml:"ownerId"`
	Groups    []groupXML    `xml:"groupSet>item,omitempty"`
	Instances []instanceXML `xml:"instancesSet>item"`
}

type describeInstancesXML struct {
	Reservations []reservationXML `xml:"reservationSet>item"`
	Next         string           `xml:"nextToken,omitempty"`
}

// visibleInstances are those with the ids, or all, that Describe calls know of by now.
func (s *Server) visibleInstances(ids []string, now time.Time) ([]*instance, error) {
	if len(ids) > 0 {
		var found []*instance
		var missing []string
		for _, id := range ids {
			i := s.instances.rows[id]
			switch {
			case !strings.HasPrefix(id, "i-"):
				return nil, refuse("InvalidInstanceID.Malformed", "Invalid id: \"%s\"", id)
			case i == nil || !i.visible(now):
				missing = append(missing, id)
			case !slices.Contains(found, i):
				found = append(found, i)
			}
		}
		if missing != nil {
			return nil, instanceNotFound(missing...)
		}
		return found, nil
	}
	var all []*instance
	for _, i := range s.instances.rows {
		if i.visible(now) {
			all = append(all, i)
		}
	}
	return all, nil
}

func describeInstances(s *Server, c *call) (any, error) {
	ids := c.form.strings("InstanceId")
	if len(ids) > 0 && c.form.has("MaxResults") {
		return nil, refuse("InvalidParameterCombination", "The parameter instancesSet cannot be used with the parameter maxResults")
	}
	found, err := s.visibleInstances(ids, c.at)
	if err != nil {
		return nil, err
	}
	found, err = sift(found, parseFilters(c.form), func(i *instance) attributes { return s.instanceAttributes(i, c.at) })
	if err != nil {
		return nil, err
	}
	size, err := pageSize(c.form, 5, 1000, 1000)
	if err != nil {
		return nil, err
	}
	page, next, err := paginate(found, func(i *instance) string {
		return strconv.FormatInt(i.LaunchedAt.UnixNano(), 36) + i.Reservation + i.ID
	}, c.form.str("NextToken"), size)
	if err != nil {
		return nil, err
	}
	out := describeInstancesXML{Next: next}
	for _, i := range page {
		last := len(out.Reservations) - 1
		if last < 0 || out.Reservations[last].ID != i.Reservation {
			out.Reservations = append(out.Reservations, reservationXML{ID: i.Reservation, OwnerID: accountID})
			last++
		}
		out.Reservations[last].Instances = append(out.Reservations[last].Instances, s.instanceXML(i, c.at))
	}
	return out, nil
}

// instanceAttributes are the filters of DescribeInstances.
func (s *Server) instanceAttributes(i *instance, now time.Time) attributes {
	return tagged(i.Tags, func(name string) ([]string, bool) {
		one := func(v string) ([]string, bool) { return []string{v}, true }
		state := i.seen(now)
		switch name {
		case "instance-id":
			return one(i.ID)
		case "instance-state-name":
			return one(state.name)
		case "instance-state-code":
			return one(strconv.Itoa(state.code))
		case "instance-type":
			return one(i.Type)
		case "instance-lifecycle":
			if i.Spot {
				return one("spot")
			}
			return nil, true
		case "availability-zone":
			return one(i.Zone)
		case "availability-zone-id":
			return one(s.zoneOf(i).id)
		case "architecture":
			return one(s.catalogue.Type(i.Type).ec2Arch())
		case "image-id":
			return one(i.Image)
		case "subnet-id":
			return one(i.Subnet)
		case "vpc-id":
			return one(vpcID)
		case "private-ip-address":
			return one(i.PrivateIP)
		case "private-dns-name":
			return one(s.account.privateDNS(i.PrivateIP))
		case "client-token":
			return one(i.ClientToken)
		case "reservation-id":
			return one(i.Reservation)
		case "spot-instance-request-id":
			return one(i.SpotRequest)
		case "owner-id":
			return one(accountID)
		case "key-name":
			return one(i.KeyName)
		case "launch-time":
			return one(timestamp(i.LaunchedAt))
		case "iam-instance-profile.arn":
			return one(i.Profile)
		case "instance.group-id":
			return i.Groups, true
		case "placement-group-name":
			return one(i.PlacementGroup)
		case "tenancy":
			return one("default")
		}
		return nil, false
	})
}

type runInstancesXML struct {
	ID        string        `xml:"reservationId"`
	OwnerID   string        `xml:"ownerId"`
	Groups    []groupXML    `xml:"groupSet>item,omitempty"`
	Instances []instanceXML `xml:"instancesSet>item"`
}

func runInstances(s *Server, c *call) (any, error) {
	return s.idempotent(c, func() (any, error) {
		var n numbers
		least, most := n.read(c.form, "MinCount"), n.read(c.form, "MaxCount")
		if n.err != nil {
			return nil, n.err
		}
		if least < 1 || most < least {
			return nil, invalidValue("MinCount (%d) and MaxCount (%d) are not valid", least, most)
		}
		order, err := s.runOrder(c)
		if err != nil {
			return nil, err
		}
		if *orFalse(c.form.flag("DryRun")) {
			return nil, errDryRun
		}
		if err := s.spendLaunches(most); err != nil {
			return nil, err
		}
		var made []*instance
		for len(made) < most {
			i, err := s.obtain(order, len(made), c.at)
			if err != nil && len(made) >= least {
				break
			}
			if err != nil {
				for _, m := range made {
					s.instances.del(m.ID)
				}
				return nil, err
			}
			made = append(made, i)
		}
		out := runInstancesXML{ID: order.reservation, OwnerID: accountID}
		for _, i := range made {
			out.Instances = append(out.Instances, s.instanceXML(i, c.at))
		}
		return out, nil
	})
}

// runOrder looks up what RunInstances asks for.
func (s *Server) runOrder(c *call) (*launchOrder, error) {
	spec, err := parseLaunchSpec(c.form)
	if err != nil {
		return nil, err
	}
	var t *launchTemplate
	number := 0
	if ref := c.form.sub("LaunchTemplate"); ref != nil {
		template, version, err := s.findTemplate(ref, ref.str("Version"))
		if err != nil {
			return nil, err
		}
		spec, t, number = version.Spec.overlay(spec), template, version.Number
	}
	setDefault(&spec.InstanceType, "m1.small") // EC2's default, which no modern image fits
	order, err := s.prepare(spec)
	if err != nil {
		return nil, err
	}
	order.template, order.version = t, number
	order.spot, order.token, order.reservation = spec.MarketType == "spot", c.form.str("ClientToken"), newID("r")
	return order, nil
}

type stateChangeXML struct {
	ID       string   `xml:"instanceId"`
	Current  stateXML `xml:"currentState"`
	Previous stateXML `xml:"previousState"`
}

type terminateInstancesXML struct {
	Changes []stateChangeXML `xml:"instancesSet>item"`
}

func terminateInstances(s *Server, c *call) (any, error) {
	ids := c.form.strings("InstanceId")
	if len(ids) == 0 {
		return nil, missingParameter("InstanceId")
	}
	if len(ids) > 1000 {
		return nil, invalidValue("At most 1000 instances can be terminated at once")
	}
	found, err := s.visibleInstances(ids, c.at)
	if err != nil {
		return nil, err
	}
	if *orFalse(c.form.flag("DryRun")) {
		return nil, errDryRun
	}
	var out terminateInstancesXML
	for _, i := range found {
		before := i.state(c.at)
		s.end(i, c.at, "Client.UserInitiatedShutdown",
			fmt.Sprintf("Client.UserInitiatedShutdown: User initiated shutdown (%s)", c.at.UTC().Format("2006-01-02 15:04:05 GMT")))
		after := i.state(c.at)
		out.Changes = append(out.Changes, stateChangeXML{i.ID, stateXML{after.code, after.name}, stateXML{before.code, before.name}})
	}
	return out, nil
}

type instanceStatusXML struct {
	ID       string    `xml:"instanceId"`
	Zone     string    `xml:"availabilityZone"`
	State    stateXML  `xml:"instanceState"`
	System   statusXML `xml:"systemStatus"`
	Instance statusXML `xml:"instanceStatus"`
}

type statusXML struct {
	Status  string `xml:"status"`
	Details struct {
		Name   string `xml:"name"`
		Status string `xml:"status"`
	} `xml:"details>item"`
}

func newStatus(status, reachability string) statusXML {
	x := statusXML{Status: status}
	x.Details.Name, x.Details.Status = "reachability", reachability
	return x
}

type describeInstanceStatusXML struct {
	Statuses []instanceStatusXML `xml:"instanceStatusSet>item"`
	Next     string              `xml:"nextToken,omitempty"`
}

// describeInstanceStatus reports running instances only, unless all are asked for.
func describeInstanceStatus(s *Server, c *call) (any, error) {
	found, err := s.visibleInstances(c.form.strings("InstanceId"), c.at)
	if err != nil {
		return nil, err
	}
	all := *orFalse(c.form.flag("IncludeAllInstances"))
	found = slices.DeleteFunc(found, func(i *instance) bool { return !all && i.seen(c.at) != stateRunning })
	found, err = sift(found, parseFilters(c.form), func(i *instance) attributes {
		return func(name string) ([]string, bool) {
			switch name {
			case "instance-state-name", "instance-state-code", "availability-zone":
				return s.instanceAttributes(i, c.at)(name)
			case "instance-status.status", "system-status.status":
				return []string{"ok"}, true
			}
			return nil, false
		}
	})
	if err != nil {
		return nil, err
	}
	size, err := pageSize(c.form, 5, 1000, 1000)
	if err != nil {
		return nil, err
	}
	page, next, err := paginate(found, func(i *instance) string { return i.ID }, c.form.str("NextToken"), size)
	if err != nil {
		return nil, err
	}
	out := describeInstanceStatusXML{Next: next}
	for _, i := range page {
		state := i.seen(c.at)
		status := newStatus("not-applicable", "insufficient-data")
		if state == stateRunning {
			status = newStatus("ok", "passed")
		}
		out.Statuses = append(out.Statuses, instanceStatusXML{i.ID, i.Zone, stateXML{state.code, state.name}, status, status})
	}
	return out, nil
}

type spotRequestXML struct {
	ID         string    `xml:"spotInstanceRequestId"`
	Price      string    `xml:"spotPrice"`
	Type       string    `xml:"type"`
	State      string    `xml:"state"`
	Status     statusRef `xml:"status"`
	InstanceID string    `xml:"instanceId"`
	CreatedAt  string    `xml:"createTime"`
	Product    string    `xml:"productDescription"`
	Zone       string    `xml:"launchedAvailabilityZone"`
	Tags       []tagXML  `xml:"tagSet>item,omitempty"`
}

type statusRef struct {
	Code string `xml:"code"`
}

type describeSpotRequestsXML struct {
	Requests []spotRequestXML `xml:"spotInstanceRequestSet>item"`
	Next     string           `xml:"nextToken,omitempty"`
}

func describeSpotInstanceRequests(s *Server, c *call) (any, error) {
	ids := c.form.strings("SpotInstanceRequestId")
	var found []*instance
	seen := map[string]bool{}
	for _, i := range s.instances.rows {
		if i.Spot && i.visible(c.at) && (len(ids) == 0 || slices.Contains(ids, i.SpotRequest)) {
			found = append(found, i)
			seen[i.SpotRequest] = true
		}
	}
	for _, id := range ids {
		if !seen[id] {
			return nil, refuse("InvalidSpotInstanceRequestID.NotFound", "The spot instance request ID '%s' does not exist", id)
		}
	}
	request := func(i *instance) spotRequestXML {
		x := spotRequestXML{
			ID: i.SpotRequest, Price: formatUSD(s.catalogue.Type(i.Type).PriceUSD), Type: "one-time", State: "active",
			Status: statusRef{"fulfilled"}, InstanceID: i.ID, CreatedAt: timestamp(i.LaunchedAt), Product: "Linux/UNIX", Zone: i.Zone,
			Tags: tagsXML(i.RequestTags),
		}
		if i.ended() {
			x.State, x.Status.Code = "closed", "instance-terminated-by-user"
			if i.EndCode == "Server.SpotInstanceTermination" {
				x.Status.Code = "instance-terminated-no-capacity"
			}
		}
		return x
	}
	found, err := sift(found, parseFilters(c.form), func(i *instance) attributes {
		x := request(i)
		return tagged(i.RequestTags, func(name string) ([]string, bool) {
			v, ok := map[string]string{
				"state": x.State, "status-code": x.Status.Code, "instance-id": x.InstanceID,
				"spot-instance-request-id": x.ID, "launched-availability-zone": x.Zone,
			}[name]
			return []string{v}, ok
		})
	})
	if err != nil {
		return nil, err
	}
	size, err := pageSize(c.form, 5, 1000, 1000)
	if err != nil {
		return nil, err
	}
	page, next, err := paginate(found, func(i *instance) string { return i.SpotRequest }, c.form.str("NextToken"), size)
	if err != nil {
		return nil, err
	}
	out := describeSpotRequestsXML{Next: next}
	for _, i := range page {
		out.Requests = append(out.Requests, request(i))
	}
	return out, nil
}
