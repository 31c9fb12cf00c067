package ec2sim

// launchOrder is an instance to launch, with all names resolved.
type launchOrder struct {
	spec        *launchSpec
	itype       *InstanceType
	image       *image
	subnet      *subnet
	groups      []string
	placement   *placementGroup // nil if it names none
	profileARN  string
	spot        bool
	fleet       string
	fleetTags   map[string]string // instance tags of the request's TagSpecification
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

// checkMarket refuses a launch template that does not fit the market in which the launch is bought: "" for on-demand,
// spot, or that of a reservation.
func (o *launchOrder) checkMarket(market string) error {
	// aws/karpenter-provider-aws, issue 5850.
	if o.spec.Tags["spot-instances-request"] != nil && market != capacitySpot {
		return invalidValue("You cannot specify tags for Spot instances requests if there are no Spot instances requests being created by the request.")
	}
	// User guide, "Launch instances using Capacity Blocks" and "Interruptible Capacity Reservations": the market type
	// must be that of the reservation. A fleet buys spot and on-demand by its target capacity (API reference,
	// TargetCapacitySpecificationRequest), not by its launch template.
	if of := o.spec.MarketType; of != market && !(of == "" && market == capacitySpot) {
		return refuse("InvalidParameterCombination", "The market type '%s' is not that of the request, '%s'", of, market)
	}
	return nil
}
