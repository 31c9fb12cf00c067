package ec2sim

import "slices"

// fleetCandidate is one override of a fleet's configuration, resolved and priced.
type fleetCandidate struct {
	order    *launchOrder
	refusal  error // the override can never be launched
	xml      launchTemplateAndOverridesXML
	price    float64
	depth    float64
	priority float64
	maxPrice float64
	weight   int
	dry      error // why it gives no more instances
	made     []*instance
}

type fleetRequest struct {
	candidates     []*fleetCandidate
	onDemand, spot int
	reserved       int    // from capacity blocks and interruptible reservations, which have their own markets
	market         string // of reserved: kindBlock or marketInterruptible
	onDemandPlan   allocationPlan
	spotPlan       allocationPlan
	tags           map[string]map[string]string
}

// fleetTagKinds are the resources that an instant fleet can tag (API reference, CreateFleet, TagSpecification.N).
var fleetTagKinds = []string{"fleet", "instance", "volume", "network-interface"}

// hasDuplicatePools reports whether overrides of one launch template name an instance type twice in one zone, regardless
// of the subnets (aws-samples/aws-plugin-for-slurm, issue 19; github-aws-runners/terraform-aws-github-runner, issue
// 5297). Karpenter names a pool once for each reservation in it, but each with its own launch template.
func hasDuplicatePools(candidates []*fleetCandidate) bool {
	seen := map[[3]string]bool{}
	for _, k := range candidates {
		if k.refusal != nil {
			continue
		}
		pool := [3]string{k.order.itype.Name, k.order.subnet.Zone, k.order.image.ID}
		if seen[pool] {
			return true
		}
		seen[pool] = true
	}
	return false
}

// marketReserved is the target capacity type of interruptible reservations.
const marketReserved = "reserved-capacity"

// parseCapacity reads the target capacities. Options of another capacity type are refused for capacity with a market of
// its own: the documentation does not say what EC2 does with them, Karpenter sends none (its
// pkg/providers/instance/types.go), and the simulator errs on the strict side.
func (r *fleetRequest) parseCapacity(request *params) error {
	p := request.sub("TargetCapacitySpecification")
	var n numbers
	total := n.read(p, "TotalTargetCapacity")
	r.onDemand, r.spot = n.read(p, "OnDemandTargetCapacity"), n.read(p, "SpotTargetCapacity")
	if n.err != nil {
		return n.err
	}
	if total < 1 || total > maxFleetCapacity || r.onDemand+r.spot > total {
		return refuse("InvalidTargetCapacitySpecification", "TotalTargetCapacity %d is not valid", total)
	}
	rest := total - r.onDemand - r.spot
	kind, reservations := p.str("DefaultTargetCapacityType"), request.sub("ReservedCapacityOptions").strings("ReservationType")
	switch kind {
	case "", capacityOnDemand:
		r.onDemand += rest
	case capacitySpot:
		r.spot += rest
	case kindBlock:
		r.reserved, r.market = rest, kindBlock
	case marketReserved:
		if !slices.Contains(reservations, marketInterruptible) {
			return refuse("InvalidFleetConfig", "This simulator takes reserved capacity of the type %s only", marketInterruptible)
		}
		r.reserved, r.market = rest, marketInterruptible
	default:
		return refuse("InvalidTargetCapacitySpecification", "DefaultTargetCapacityType %s is not valid", kind)
	}
	if r.market != "" && (request.has("OnDemandOptions") || request.has("SpotOptions")) {
		return refuse("InvalidFleetConfig", "OnDemandOptions and SpotOptions are not for the target capacity type %s", kind)
	}
	if kind != marketReserved && request.has("ReservedCapacityOptions") {
		return refuse("InvalidFleetConfig", "ReservedCapacityOptions are for the target capacity type %s only", marketReserved)
	}
	return nil
}

type createFleetXML struct {
	FleetID   string             `xml:"fleetId"`
	Errors    []fleetErrorXML    `xml:"errorSet>item"`
	Instances []fleetInstanceXML `xml:"fleetInstanceSet>item"`
}

type fleetErrorXML struct {
	Config    launchTemplateAndOverridesXML `xml:"launchTemplateAndOverrides"`
	Lifecycle string                        `xml:"lifecycle"`
	Code      string                        `xml:"errorCode"`
	Message   string                        `xml:"errorMessage"`
}

type fleetInstanceXML struct {
	Config    launchTemplateAndOverridesXML `xml:"launchTemplateAndOverrides"`
	Lifecycle string                        `xml:"lifecycle"`
	IDs       []string                      `xml:"instanceIds>item"`
	Type      string                        `xml:"instanceType"`
	SubnetID  string                        `xml:"subnetId"`
	Zone      string                        `xml:"availabilityZone"`
	ZoneID    string                        `xml:"availabilityZoneId"`
}

type launchTemplateAndOverridesXML struct {
	Template  templateRefXML `xml:"launchTemplateSpecification"`
	Overrides overridesXML   `xml:"overrides"`
}

type templateRefXML struct {
	ID      string `xml:"launchTemplateId"`
	Version string `xml:"version"`
}

type overridesXML struct {
	InstanceType string        `xml:"instanceType,omitempty"`
	SubnetID     string        `xml:"subnetId,omitempty"`
	Zone         string        `xml:"availabilityZone,omitempty"`
	ZoneID       string        `xml:"availabilityZoneId,omitempty"`
	Image        string        `xml:"imageId,omitempty"`
	MaxPrice     string        `xml:"maxPrice,omitempty"`
	Priority     string        `xml:"priority,omitempty"`
	Weight       string        `xml:"weightedCapacity,omitempty"`
	Placement    *placementXML `xml:"placement"`
}
