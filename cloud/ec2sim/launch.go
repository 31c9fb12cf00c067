package ec2sim

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// userData is user data shared by many instances, kept once.
type userData struct {
	Text string // decoded
}

// launchOrder is one instance to be made, with everything looked up.
type launchOrder struct {
	spec        *launchSpec
	itype       *InstanceType
	image       *image
	subnet      *subnet
	groups      []string
	profileARN  string
	spot        bool
	fleet       string
	fleetTags   map[string]string // tags of TagSpecification for instances, of the request
	template    *launchTemplate
	version     int
	token       string
	reservation string
}

func (o *launchOrder) pool() pool {
	p := pool{o.itype.Name, o.subnet.Zone, capacityOnDemand}
	if o.spot {
		p.capacityType = capacitySpot
	}
	return p
}

// checkMarket refuses a launch whose launch template does not fit the market in which it is bought: "" for on-demand, spot,
// or that of a reservation.
func (o *launchOrder) checkMarket(market string) error {
	// aws/karpenter-provider-aws, issue 5850.
	if o.spec.Tags["spot-instances-request"] != nil && market != capacitySpot {
		return invalidValue("You cannot specify tags for Spot instances requests if there are no Spot instances requests being created by the request.")
	}
	// User guide, "Launch instances using Capacity Blocks" and "Interruptible Capacity Reservations": the market type has to
	// be that of the reservation. A fleet buys spot and on-demand by its target capacity (API reference,
	// TargetCapacitySpecificationRequest), not by its launch template.
	if of := o.spec.MarketType; of != market && !(of == "" && market == capacitySpot) {
		return refuse("InvalidParameterCombination", "The market type '%s' is not that of the request, '%s'", of, market)
	}
	return nil
}

// newID makes an EC2 id: a prefix and 17 hexadecimal digits.
func newID(prefix string) string { return fmt.Sprintf("%s-0%016x", prefix, rand.Uint64()) }

// prepare checks a spec the way EC2 does before it asks for capacity.
func (s *Server) prepare(spec *launchSpec) (*launchOrder, error) {
	o := &launchOrder{spec: spec, itype: s.catalogue.Type(spec.InstanceType)}
	if o.itype == nil {
		return nil, invalidValue("Invalid value '%s' for InstanceType.", spec.InstanceType)
	}
	var err error
	if o.image, err = s.launchImage(spec.ImageID, o.itype); err != nil {
		return nil, err
	}
	if o.subnet, err = s.launchSubnet(spec); err != nil {
		return nil, err
	}
	if !s.account.offered(o.itype, o.subnet.Zone) {
		return nil, refuse("Unsupported", "Your requested instance type (%s) is not supported in your requested Availability Zone (%s).",
			o.itype.Name, o.subnet.Zone)
	}
	if err := checkMachine(spec, o.itype); err != nil {
		return nil, err
	}
	if err := s.checkDevices(spec, o.image); err != nil {
		return nil, err
	}
	if err := checkAddresses(spec, o.subnet); err != nil {
		return nil, err
	}
	if name := spec.PlacementGroup + spec.PlacementID; name != "" {
		return nil, refuse("InvalidPlacementGroup.Unknown", "The Placement Group '%s' is unknown.", name) // there are none
	}
	if o.groups, err = s.launchGroups(spec); err != nil {
		return nil, err
	}
	o.profileARN, err = s.launchProfile(spec)
	return o, err
}

func (s *Server) launchImage(id string, t *InstanceType) (*image, error) {
	if id == "" {
		return nil, missingParameter("ImageId")
	}
	if !strings.HasPrefix(id, "ami-") {
		return nil, refuse("InvalidAMIID.Malformed", "Invalid id: \"%s\"", id)
	}
	im := s.image(id)
	if im == nil || s.late(s.faults().ImageLag, im.MadeAt) {
		return nil, refuse("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
	}
	if im.Gone {
		return nil, refuse("InvalidAMIID.Unavailable", "The image ID '%s' is no longer available", id)
	}
	if !im.visible() {
		return nil, notAuthorized(im)
	}
	if im.Arch != t.ec2Arch() {
		return nil, invalidValue("The architecture '%s' of the specified instance type does not match the architecture '%s' of the specified AMI. Specify an instance type and an AMI that have matching architectures, and try again.", t.ec2Arch(), im.Arch)
	}
	return im, im.checkBoot(t)
}

// launchSubnet finds the subnet: named, or in the primary interface, or the one of the zone.
func (s *Server) launchSubnet(spec *launchSpec) (*subnet, error) {
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

func (s *Server) launchGroups(spec *launchSpec) ([]string, error) {
	ids := slices.Clone(spec.GroupIDs)
	for _, name := range spec.GroupNames {
		groups := s.allGroups()
		at := slices.IndexFunc(groups, func(g *securityGroup) bool { return g.Name == name })
		if at < 0 {
			return nil, refuse("InvalidGroup.NotFound", "The security group '%s' does not exist in VPC '%s'", name, vpcID)
		}
		ids = append(ids, groups[at].ID)
	}
	for _, n := range spec.Interfaces {
		for _, id := range n.Groups {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	for _, id := range ids {
		if s.launchGroup(id) == nil {
			return nil, refuse("InvalidGroup.NotFound", "The security group '%s' does not exist", id)
		}
	}
	if ids == nil {
		ids = []string{s.account.groups[1].ID}
	}
	return ids, nil
}

func (s *Server) launchProfile(spec *launchSpec) (string, error) {
	name := spec.ProfileName
	if spec.ProfileARN != "" {
		name = spec.ProfileARN[strings.LastIndexByte(spec.ProfileARN, '/')+1:]
	}
	if name == "" {
		return "", nil
	}
	p := s.profiles.rows[name]
	switch {
	case p == nil && spec.ProfileARN != "":
		return "", invalidValue("Value (%s) for parameter iamInstanceProfile.arn is invalid. Invalid IAM Instance Profile ARN", spec.ProfileARN)
	case p == nil || s.late(s.faults().ProfileLag, p.CreatedAt):
		return "", invalidValue("Value (%s) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name", name)
	case p.Role == "":
		return "", invalidValue("IAM Instance Profile \"%s\" has no associated IAM Roles", s.account.profileARN(p.Path+p.Name))
	}
	return s.account.profileARN(p.Path + p.Name), nil
}

// obtain takes one instance out of a pool and makes it, or says why the pool is dry.
func (s *Server) obtain(o *launchOrder, index int, now time.Time) (*instance, error) {
	capacity, err := s.reservationFor(o, now)
	if err != nil {
		return nil, err
	}
	if err := s.poolRefuses(o.pool(), capacity != nil); err != nil {
		return nil, err
	}
	if z, _ := s.account.zone(o.subnet.Zone); o.spot && z.local != "" {
		return nil, refuse("Unsupported", "Spot is not supported in your requested Availability Zone (%s).", z.name)
	}
	if o.spot && !o.itype.Supports("spot") {
		return nil, refuse("InvalidFleetConfiguration", "The instance type %s is not supported for Spot", o.itype.Name)
	}
	if s.freeAddresses(o.subnet) < o.spec.addresses() {
		return nil, refuse("InsufficientFreeAddressesInSubnet", "There are not enough free addresses in subnet '%s' to satisfy the requested number of instances.", o.subnet.ID)
	}
	i := s.newInstance(o, index, now)
	if capacity == nil {
		s.poolTaken(o.pool())
	} else {
		i.Capacity, i.Targeted = capacity.ID, o.spec.Reservation != ""
	}
	i.ReservationUse = o.spec.ReservationUse
	s.further[i.Subnet] += i.further()
	s.instances.put(i.ID, i)
	s.notBefore(i)
	s.wakeKubelets()
	return i, nil
}

func (s *Server) newInstance(o *launchOrder, index int, now time.Time) *instance {
	spec, faults := o.spec, s.faults()
	i := &instance{
		ID: newID("i"), Type: o.itype.Name, Zone: o.subnet.Zone, Subnet: o.subnet.ID, Image: o.image.ID,
		Spot: o.spot, Fleet: o.fleet, Reservation: o.reservation, LaunchIndex: index, ClientToken: o.token,
		PrivateIP: s.takeAddress(o.subnet), Groups: o.groups, Profile: o.profileARN, KeyName: spec.KeyName,
		VolumeTags: maps.Clone(spec.Tags["volume"]), InterfaceTags: maps.Clone(spec.Tags["network-interface"]),
		UserData: s.keepUserData(spec.UserData), Tenancy: spec.Tenancy, Enclave: spec.Enclave != nil && *spec.Enclave,
		Metadata:   metadataOptions{Endpoint: "enabled", IPv6: "disabled", HopLimit: 2, Tokens: "required", InstanceTags: "disabled"},
		Monitoring: spec.Monitoring != nil && *spec.Monitoring, EBSOptimized: spec.EBSOptimized != nil && *spec.EBSOptimized,
		LaunchedAt: now, VisibleAt: now.Add(time.Duration(faults.DescribeLag)), RunningAt: now.Add(s.opts.PendingFor),
	}
	i.Tags = map[string]string{}
	maps.Copy(i.Tags, spec.Tags["instance"])
	maps.Copy(i.Tags, o.fleetTags)
	if o.fleet != "" {
		i.Tags["aws:ec2:fleet-id"] = o.fleet
	}
	if o.template != nil {
		i.Template, i.TemplateVersion = o.template.ID, versionNumber(o.version)
		i.Tags["aws:ec2launchtemplate:id"] = i.Template
		i.Tags["aws:ec2launchtemplate:version"] = i.TemplateVersion
	}
	if o.spot {
		i.SpotRequest = "sir-" + strings.ToLower(fmt.Sprintf("%08x", rand.Uint32()))
		i.RequestTags = maps.Clone(spec.Tags["spot-instances-request"])
	}
	if spec.Metadata != nil {
		i.Metadata.merge(spec.Metadata)
	}
	i.Volumes = newVolumes(spec, o.image)
	i.Interfaces = newInterfaces(spec, o.groups, o.subnet)
	if s.public(o) {
		i.PublicIP = publicAddress()
	}
	i.BootAt = now.Add(s.opts.BootDelay)
	i.ReadyAt = i.BootAt.Add(s.opts.ReadyDelay)
	s.bootFaults(i, now)
	return i
}

func (m *metadataOptions) merge(over *metadataOptions) {
	for _, f := range []struct {
		to   *string
		from string
	}{{&m.Endpoint, over.Endpoint}, {&m.IPv6, over.IPv6}, {&m.Tokens, over.Tokens}, {&m.InstanceTags, over.InstanceTags}} {
		if f.from != "" {
			*f.to = f.from
		}
	}
	if over.HopLimit > 0 {
		m.HopLimit = over.HopLimit
	}
}

func newInterfaces(spec *launchSpec, groups []string, in *subnet) []networkInterface {
	if len(spec.Interfaces) == 0 {
		return []networkInterface{{ID: newID("eni"), Type: "interface", Groups: groups}}
	}
	var out []networkInterface
	for _, n := range spec.Interfaces {
		i := networkInterface{
			ID: newID("eni"), DeviceIndex: n.DeviceIndex, CardIndex: n.CardIndex, Type: n.Type, Groups: n.Groups, Description: n.Description,
		}
		for range n.Ipv6Count {
			i.IPv6 = append(i.IPv6, in.newIPv6())
		}
		i.PrimaryIPv6, i.Secondary = n.PrimaryIPv6, n.SecondaryCount+prefixAddresses*n.Ipv4PrefixCount
		setDefault(&i.Type, "interface")
		if i.Groups == nil {
			i.Groups = groups
		}
		out = append(out, i)
	}
	return out
}

func (s *Server) keepUserData(encoded string) string {
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(raw) == 0 {
		return "" // malformed user data was refused when the spec was parsed
	}
	key := fmt.Sprintf("%016x", uint64(unit("userdata", encoded)*(1<<53)))
	if s.userData.rows[key] == nil {
		s.userData.put(key, &userData{string(raw)})
	}
	return key
}

// takeBack undoes the launch of an instance that nobody has heard of yet.
func (s *Server) takeBack(i *instance) {
	s.releaseAddress(i)
	s.instances.del(i.ID)
}

// end terminates an instance at an instant, for a reason.
func (s *Server) end(i *instance, at time.Time, code, reason string) {
	if i.ended() {
		return
	}
	i.EndedAt, i.EndCode, i.EndReason = at, code, reason
	s.releaseAddress(i)
	i.EndSeenAt = at.Add(time.Duration(s.faults().DescribeLag))
	i.GoneAt = at.Add(s.opts.ShuttingDownFor)
	s.instances.put(i.ID, i)
	s.notBefore(i)
	s.announce(at, s.stateChange("shutting-down")(i.ID, at))
	s.announce(i.GoneAt, s.stateChange("terminated")(i.ID, i.GoneAt))
	s.wakeKubelets()
}
