package aws

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/cloud"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// resolvedClass holds the machines of the region as nodes of a node class. Their sizes never change; the offerings
// follow prices and capacity.
type resolvedClass struct {
	key    string
	nodes  []classNode
	byName map[string]*classNode
	// subnets are those in which its nodes can run, and zones the same by zone.
	subnets []awsv1.Subnet
	zones   map[string][]awsv1.Subnet
	group   *placementGroup // nil if the class names none
	// onRequest are the resources that a node has only if its claim asks for them.
	onRequest []corev1.ResourceName
	// reservations are the capacity reservations, by instance type.
	reservations map[string][]awsv1.CapacityReservation
	// excluded are the machines of the region that cannot be launched for the class, and the devices that it takes from
	// others.
	excluded []cloud.Exclusion

	mu        sync.Mutex
	version   offeringsVersion
	offerings []*cloud.InstanceType
}

// classNode is a machine as a node of the class.
type classNode struct {
	machine               *machine
	labels                map[string]string
	image                 string
	pods                  int64
	capacity, allocatable corev1.ResourceList
}

// offeringsVersion changes when any offering of the class may have changed.
type offeringsVersion struct{ onDemand, spot, unavailable, shifts, reservations uint64 }

// InstanceTypes implements cloud.Provider.
func (p *Provider) InstanceTypes(ctx context.Context, given cloud.NodeClass) ([]*cloud.InstanceType, error) {
	class, err := ec2Class(given)
	if err != nil {
		return nil, err
	}
	resolved, err := p.catalogue.resolve(ctx, class)
	if err != nil {
		return nil, err
	}
	market, version, err := p.catalogue.market(ctx, class)
	if err != nil {
		return nil, err
	}
	resolved.mu.Lock()
	defer resolved.mu.Unlock()
	if resolved.offerings == nil || resolved.version != version {
		resolved.offerings, resolved.version = resolved.price(market), version
	}
	return slices.Clone(resolved.offerings), nil
}

// Excluded implements cloud.Provider.
func (p *Provider) Excluded(given cloud.NodeClass) []cloud.Exclusion {
	class, err := ec2Class(given)
	if err != nil {
		return nil
	}
	if resolved, ok := p.catalogue.resolved.get(resolvedName(class)); ok {
		return resolved.excluded
	}
	return nil
}

// ec2Class returns a node class as what it has to be.
func ec2Class(class cloud.NodeClass) (*awsv1.EC2NodeClass, error) {
	own, ok := class.(*awsv1.EC2NodeClass)
	if !ok {
		return nil, invalid("EC2NodeClass", fmt.Errorf("a node class is a %T", class))
	}
	return own, nil
}

// resolvedName is the key of a class in the cache.
func resolvedName(class *awsv1.EC2NodeClass) string { return class.Name + "/" + string(class.UID) }

// resolveKey returns a key made of everything resolveClass reads. The order of the subnets does not affect it.
func resolveKey(class *awsv1.EC2NodeClass, group *placementGroup, subnets []awsv1.Subnet, ipv6 bool, machines, learnt uint64) (string, error) {
	subnets = slices.SortedFunc(slices.Values(subnets), func(a, b awsv1.Subnet) int { return cmp.Compare(a.ID, b.ID) })
	key, err := json.Marshal([]any{
		machines, learnt, group.key(), ipv6, class.AMIFamily(), class.Spec.Kubelet, class.Spec.BlockDeviceMappings, class.Spec.InstanceStorePolicy,
		class.Spec.NetworkInterfaces, class.Spec.IPPrefixCount, class.Spec.ConnectionTracking, class.Spec.CPUOptions, class.Status.AMIs, subnets, class.Status.CapacityReservations,
	})
	if err != nil {
		return "", fmt.Errorf("key of node class %s: %w", class.Name, err)
	}
	return string(key), nil
}

// resolveClass computes the size of every machine that can run an image of the class and is offered in a zone of its
// subnets. ipv6 says that nodes have IPv6 addresses.
func resolveClass(class *awsv1.EC2NodeClass, group *placementGroup, subnets []awsv1.Subnet, ipv6 bool, machines []*machine, size shape, known *learnt) (*resolvedClass, error) {
	resolved := &resolvedClass{
		group: group, subnets: subnets, zones: make(map[string][]awsv1.Subnet), reservations: make(map[string][]awsv1.CapacityReservation),
	}
	for _, subnet := range subnets {
		resolved.zones[subnet.Zone] = append(resolved.zones[subnet.Zone], subnet)
	}
	for _, reservation := range class.Status.CapacityReservations {
		resolved.reservations[reservation.InstanceType] = append(resolved.reservations[reservation.InstanceType], reservation)
	}
	if !size.ownInterfaces {
		resolved.onRequest = []corev1.ResourceName{awsv1.ResourceEFA}
	}
	images := imageSelectors(class.Status.AMIs)
	exclude := func(m *machine, device corev1.ResourceName, why string) {
		resolved.excluded = append(resolved.excluded, cloud.Exclusion{InstanceType: m.name, Labels: m.labelsAs(size.family), Resource: device, Why: why})
	}
	for _, m := range machines {
		labels := group.label(m.labelsAs(size.family))
		image, runs := images.imageFor(labels)
		switch why := m.unsuitable(class, group, ipv6); {
		case why != "":
			exclude(m, "", why)
			continue
		case !slices.ContainsFunc(m.zones, func(zone string) bool { return len(resolved.zones[zone]) > 0 }):
			exclude(m, "", "are offered in no zone of the subnets that spec.subnetSelectorTerms selects")
			continue
		case !runs:
			exclude(m, "", "run none of the images that spec.amiSelectorTerms selects")
			continue
		case m.efas > 0 && size.efaDevices(m) == 0:
			exclude(m, awsv1.ResourceEFA, "have EFA only if spec.networkInterfaces lists it")
		}
		capacity, allocatable, err := size.resources(m)
		if err != nil {
			return nil, err
		}
		known.correct(capacity, allocatable, m.name, image)
		resolved.nodes = append(resolved.nodes, classNode{m, labels, image, size.pods(m), capacity, allocatable})
	}
	resolved.byName = make(map[string]*classNode, len(resolved.nodes))
	for i := range resolved.nodes {
		resolved.byName[resolved.nodes[i].machine.name] = &resolved.nodes[i]
	}
	return resolved, nil
}

// market holds prices and availability at the moment.
type market struct {
	region      string
	onDemand    map[string]float64
	spot        map[spotPool]float64
	unavailable *unavailable
	// shifted has the ids of the zones from which traffic is shifted away, and until when.
	shifted map[string]time.Time
	// room is how many more instances each capacity reservation has room for.
	room map[string]int
}

// reachable reports whether any of the subnets is not known to be out of addresses.
func (m market) reachable(subnets []awsv1.Subnet) bool {
	return slices.ContainsFunc(subnets, func(s awsv1.Subnet) bool { return !m.unavailable.subnet(s.ID) })
}

// price returns the price of an offering, and false if it is not known.
func (m market) price(key cloud.OfferingKey) (float64, bool) {
	if key.CapacityType == karpv1.CapacityTypeSpot {
		price, ok := m.spot[spotPool{key.InstanceType, key.Zone}]
		return price, ok
	}
	price, ok := m.onDemand[key.InstanceType]
	if !ok {
		price, ok = staticPrice(m.region, key.InstanceType)
	}
	if key.CapacityType == karpv1.CapacityTypeReserved {
		price /= reservedDiscount
	}
	return price, ok
}

// price attaches the offerings of this moment to the nodes of the class.
func (r *resolvedClass) price(market market) []*cloud.InstanceType {
	out := make([]*cloud.InstanceType, len(r.nodes))
	for i := range r.nodes {
		node := &r.nodes[i]
		out[i] = &cloud.InstanceType{
			Name:        node.machine.name,
			Labels:      node.labels,
			Capacity:    node.capacity,
			Allocatable: node.allocatable,
			Offerings:   r.offeringsOf(node.machine, market),
			BareMetal:   node.machine.bareMetal,
			OnRequest:   r.onRequest,

			PlacementGroup: r.group.groupID(),
			Partitions:     r.group.partitions(),
		}
	}
	return out
}

// offeringsOf returns a machine's offerings in the class's zones, ordered by zone and capacity type, followed by those
// of reservations.
func (r *resolvedClass) offeringsOf(m *machine, market market) []cloud.Offering {
	offerings := make([]cloud.Offering, 0, len(m.zones)*len(m.usage))
	for _, zone := range m.zones {
		subnets := r.zones[zone]
		if len(subnets) == 0 {
			continue
		}
		addresses := market.reachable(subnets)
		for _, capacityType := range m.usage {
			key := cloud.OfferingKey{InstanceType: m.name, Zone: zone, CapacityType: capacityType, PlacementGroup: r.group.groupID()}
			price, known := market.price(key)
			offerings = append(offerings, cloud.Offering{
				CapacityType: capacityType,
				Zone:         zone,
				ZoneID:       subnets[0].ZoneID,
				Price:        price,
				Available:    known && addresses && market.shifted[subnets[0].ZoneID].IsZero() && !market.unavailable.offering(key),
				ShiftedUntil: market.shifted[subnets[0].ZoneID],
			})
		}
	}
	return append(offerings, r.reservedOfferings(m, market)...)
}
