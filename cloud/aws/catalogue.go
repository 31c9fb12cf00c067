package aws

import (
	"context"

	"github.com/tenon-sh/tenon/cloud"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// catalogue knows what can be bought: the instance types of the region, their prices, and which offerings are
// unavailable at the moment.
type catalogue struct {
	region string
	// vmOverhead is the share of an instance's memory that its node cannot use. reservedENIs is the number of network
	// interfaces whose addresses are not for pods.
	vmOverhead   float64
	reservedENIs int64

	cluster      *refreshed[clusterFacts]
	subnets      *subnetPool
	machines     *refreshed[[]*machine]
	onDemand     *refreshed[map[string]float64]
	spot         *refreshed[map[spotPool]float64]
	unavailable  *unavailable
	shifts       *zonalShifts
	reservations *reservationPool // of capacity
	groups       *placementGroups
	learnt       *learnt
	resolved     *ttlCache[string, *resolvedClass] // by resolvedName
}

// resolve returns the machines as nodes of the class. It computes them again only when the class, the machines, its
// placement group or what nodes report have changed.
func (c *catalogue) resolve(ctx context.Context, class *awsv1.EC2NodeClass) (*resolvedClass, error) {
	switch {
	case len(class.Status.AMIs) == 0:
		return nil, notReady("InstanceTypes", "AMIsNotReady", "the node class has no images in its status")
	case len(class.Status.Subnets) == 0:
		return nil, notReady("InstanceTypes", "SubnetsNotReady", "the node class has no subnets in its status")
	}
	machines, seq, err := c.machines.get(ctx)
	if err != nil {
		return nil, err
	}
	group, err := c.groups.of(ctx, class)
	if err != nil {
		return nil, err
	}
	cluster, _, err := c.cluster.get(ctx)
	if err != nil {
		return nil, err
	}
	subnets, ipv6 := class.Status.Subnets, cluster.ipv6()
	if ipv6 {
		subnets = c.subnets.withIPv6(subnets)
	}
	if len(subnets) == 0 {
		return nil, notReady("InstanceTypes", "SubnetsNotReady", "nodes of this cluster need IPv6 addresses, and none of the subnets that spec.subnetSelectorTerms selects has a range of them")
	}
	key, err := resolveKey(class, group, subnets, ipv6, seq, c.learnt.refresh())
	if err != nil {
		return nil, err
	}
	// There is one entry per class: the sizes of a thousand types are megabytes, and only the current ones are useful.
	name := resolvedName(class)
	if resolved, ok := c.resolved.get(name); ok && resolved.key == key {
		return resolved, nil
	}
	resolved, err := resolveClass(class, group, subnets, ipv6, machines, shapeOf(class, c.vmOverhead, c.reservedENIs), c.learnt)
	if err != nil {
		return nil, &cloud.Error{Kind: cloud.Invalid, Reason: "KubeletConfigurationInvalid", Operation: "InstanceTypes", Err: err}
	}
	resolved.key = key
	c.resolved.put(name, resolved)
	return resolved, nil
}

// market returns the prices and the availability of a class's offerings, and the version of both.
func (c *catalogue) market(ctx context.Context, class *awsv1.EC2NodeClass) (market, offeringsVersion, error) {
	onDemand, onDemandSeq, err := c.onDemand.get(ctx)
	if err != nil {
		return market{}, offeringsVersion{}, err
	}
	spot, spotSeq, err := c.spot.get(ctx)
	if err != nil {
		return market{}, offeringsVersion{}, err
	}
	rooms, reservationSeq, err := c.reservations.rooms(ctx, class.Status.CapacityReservations)
	if err != nil {
		return market{}, offeringsVersion{}, err
	}
	shifted, shiftSeq, err := c.shifts.until(ctx)
	if err != nil {
		return market{}, offeringsVersion{}, err
	}
	return market{region: c.region, onDemand: onDemand, spot: spot, unavailable: c.unavailable, shifted: shifted, room: rooms},
		offeringsVersion{onDemandSeq, spotSeq, c.unavailable.version(), shiftSeq, reservationSeq}, nil
}
