package ec2sim

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"time"
)

// launcher launches instances, for every action that does so: it resolves what a launch names, takes capacity and
// addresses, and creates the machine.
type launcher struct {
	account      *account
	catalogue    *Catalogue
	images       *images
	groups       *securityGroups
	subnets      *subnets
	addresses    *addresses
	iam          *iam
	volumes      *volumes
	reservations *capacityReservations
	placements   *placementGroups
	faults       *injector
	instances    *instances
	userData     *table[userData]

	pendingFor, bootDelay, readyDelay time.Duration
}

// prepare resolves a spec and checks it as EC2 does before it looks for capacity.
func (l *launcher) prepare(spec *launchSpec) (*launchOrder, error) {
	o := &launchOrder{spec: spec, itype: l.catalogue.Type(spec.InstanceType)}
	if o.itype == nil {
		return nil, invalidValue("Invalid value '%s' for InstanceType.", spec.InstanceType)
	}
	var err error
	if o.image, err = l.images.forLaunch(spec.ImageID, o.itype); err != nil {
		return nil, err
	}
	if o.subnet, err = l.subnets.forLaunch(spec); err != nil {
		return nil, err
	}
	if !l.account.offered(o.itype, o.subnet.Zone) {
		return nil, refuse("Unsupported", "Your requested instance type (%s) is not supported in your requested Availability Zone (%s).",
			o.itype.Name, o.subnet.Zone)
	}
	if err := checkMachine(spec, o.itype); err != nil {
		return nil, err
	}
	if err := l.volumes.check(spec, o.image); err != nil {
		return nil, err
	}
	if err := checkAddresses(spec, o.itype, o.subnet); err != nil {
		return nil, err
	}
	if o.placement, err = l.placements.forLaunch(spec, o.itype); err != nil {
		return nil, err
	}
	if o.groups, err = l.groups.forLaunch(spec); err != nil {
		return nil, err
	}
	o.profileARN, err = l.iam.forLaunch(spec)
	return o, err
}

// obtain takes capacity for one instance from a pool and creates the instance. It fails if the pool is dry.
func (l *launcher) obtain(o *launchOrder, index int, now time.Time) (*instance, error) {
	capacity, err := l.reservations.forLaunch(o, now)
	if err != nil {
		return nil, err
	}
	if err := l.faults.poolRefuses(o.pool(), capacity != nil); err != nil {
		return nil, err
	}
	if z, _ := l.account.zone(o.subnet.Zone); o.spot && z.Local != "" {
		return nil, refuse("Unsupported", "Spot is not supported in your requested Availability Zone (%s).", z.Name)
	}
	if o.spot && !o.itype.Supports("spot") {
		return nil, refuse("InvalidFleetConfiguration", "The instance type %s is not supported for Spot", o.itype.Name)
	}
	if !o.subnet.native && l.addresses.free(o.subnet) < o.spec.addresses() {
		return nil, refuse("InsufficientFreeAddressesInSubnet", "There are not enough free addresses in subnet '%s' to satisfy the requested number of instances.", o.subnet.ID)
	}
	partition, err := l.placements.admit(o)
	if err != nil {
		return nil, err
	}
	i := l.newInstance(o, index, now)
	if o.placement != nil {
		i.PlacementGroup, i.Partition = o.placement.ID, partition
	}
	if capacity == nil {
		l.faults.poolTaken(o.pool())
	} else {
		i.Capacity, i.Targeted = capacity.ID, o.spec.Reservation != ""
		i.EmptiedAt = capacity.emptied()
	}
	i.ReservationUse = o.spec.ReservationUse
	l.addresses.takeFurther(i)
	l.instances.put(i.ID, i)
	l.instances.notBefore(i)
	l.instances.wake()
	return i, nil
}

// newInstance creates the instance of an order and takes its primary address.
func (l *launcher) newInstance(o *launchOrder, index int, now time.Time) *instance {
	spec, faults := o.spec, l.faults.current()
	i := &instance{
		ID: newID("i"), Type: o.itype.Name, Zone: o.subnet.Zone, Subnet: o.subnet.ID, Image: o.image.ID,
		Spot: o.spot, Fleet: o.fleet, Reservation: o.reservation, LaunchIndex: index, ClientToken: o.token,
		PrivateIP: l.addresses.take(o.subnet), Groups: o.groups, Profile: o.profileARN, KeyName: spec.KeyName,
		VolumeTags: maps.Clone(spec.Tags["volume"]), InterfaceTags: maps.Clone(spec.Tags["network-interface"]),
		UserData: l.keepUserData(spec.UserData), Tenancy: spec.Tenancy, Enclave: spec.Enclave != nil && *spec.Enclave,
		Metadata:   metadataOptions{Endpoint: "enabled", IPv6: "disabled", HopLimit: 2, Tokens: "required", InstanceTags: "disabled"},
		Monitoring: spec.Monitoring != nil && *spec.Monitoring, EBSOptimized: spec.EBSOptimized != nil && *spec.EBSOptimized,
		LaunchedAt: now, VisibleAt: now.Add(time.Duration(faults.DescribeLag)), RunningAt: now.Add(l.pendingFor),
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
	if l.subnets.public(o) {
		i.PublicIP = publicAddress()
	}
	i.BootAt = now.Add(l.bootDelay)
	i.ReadyAt = i.BootAt.Add(l.readyDelay)
	l.faults.bootFaults(i, o.image, now)
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
		only := networkInterface{ID: newID("eni"), Type: "interface", Groups: groups}
		if in.native { // AssignIpv6AddressOnCreation is always set there
			only.IPv6 = []string{in.newIPv6()}
		}
		return []networkInterface{only}
	}
	var out []networkInterface
	for _, n := range spec.Interfaces {
		i := networkInterface{
			ID: newID("eni"), DeviceIndex: n.DeviceIndex, CardIndex: n.CardIndex, Type: n.Type, Groups: n.Groups, Description: n.Description,
		}
		count := n.Ipv6Count
		if in.native && n.Type != "efa-only" {
			count = max(1, count)
		}
		for range count {
			i.IPv6 = append(i.IPv6, in.newIPv6())
		}
		for range n.Ipv6PrefixCount {
			i.IPv6Prefixes = append(i.IPv6Prefixes, in.newIPv6Prefix())
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

// keepUserData stores user data once, and returns the key of its row, or "" if there is none.
func (l *launcher) keepUserData(encoded string) string {
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(raw) == 0 {
		return "" // malformed user data was refused when the spec was parsed
	}
	key := fmt.Sprintf("%016x", uint64(unit("userdata", encoded)*(1<<53)))
	if l.userData.rows[key] == nil {
		l.userData.put(key, &userData{string(raw)})
	}
	return key
}
