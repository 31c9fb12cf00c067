package ec2sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fleet is a CreateFleet request that was answered; an instant fleet stays as a record only.
type fleet struct {
	ID        string
	Tags      map[string]string
	CreatedAt time.Time
	Instances []string
}

// EC2's quotas for instant fleets.
const (
	maxFleetOverrides = 300
	maxFleetCapacity  = 10000
	maxClientToken    = 64
)

// fleetCandidate is one override of a fleet's configuration, looked up and priced.
type fleetCandidate struct {
	order    *launchOrder
	refusal  error // the override can never be launched
	xml      launchTemplateAndOverridesXML
	price    float64
	depth    float64
	priority float64
	maxPrice float64
	weight   int
	dry      error // why it gave no more
	made     []*instance
}

type fleetRequest struct {
	candidates     []*fleetCandidate
	onDemand, spot int
	reserved       int    // of capacity blocks and interruptible reservations, which have markets of their own
	market         string // of what is reserved: kindBlock or marketInterruptible
	onDemandPlan   allocationPlan
	spotPlan       allocationPlan
	tags           map[string]map[string]string
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

func createFleet(s *Server, c *call) (any, error) {
	return s.idempotent(c, func() (any, error) {
		r, err := s.parseFleet(c)
		if err != nil {
			return nil, err
		}
		if *orFalse(c.form.flag("DryRun")) {
			return nil, errDryRun
		}
		return s.fillFleet(c, r, s.spendLaunches(r.onDemand+r.spot+r.reserved)), nil
	})
}

func (s *Server) parseFleet(c *call) (*fleetRequest, error) {
	p := c.form
	if kind := p.str("Type"); kind != "instant" {
		return nil, invalidValue("This simulator launches fleets of type instant only, not '%s'", kind)
	}
	r := &fleetRequest{}
	var err error
	if r.tags, err = parseTagSpecifications(p); err != nil {
		return nil, err
	}
	for kind := range r.tags {
		if !slices.Contains(fleetTagKinds, kind) {
			return nil, invalidValue("'%s' is not a valid taggable resource type for this operation.", kind)
		}
	}
	if err := r.parseCapacity(p); err != nil {
		return nil, err
	}
	if r.onDemandPlan, err = parseAllocation(p.sub("OnDemandOptions"), "lowest-price", "lowest-price", "prioritized"); err != nil {
		return nil, err
	}
	if r.spotPlan, err = parseAllocation(p.sub("SpotOptions"), "lowest-price", "lowest-price", "diversified",
		"capacity-optimized", "capacity-optimized-prioritized", "price-capacity-optimized"); err != nil {
		return nil, err
	}
	configs := p.items("LaunchTemplateConfigs")
	if len(configs) == 0 {
		return nil, missingParameter("LaunchTemplateConfigs")
	}
	for _, config := range configs {
		ref := config.sub("LaunchTemplateSpecification")
		t, version, err := s.launchedFrom(ref)
		if err != nil {
			return nil, err
		}
		overrides := config.items("Overrides")
		if len(overrides) == 0 {
			overrides = []*params{nil}
		}
		for _, o := range overrides {
			candidate, err := s.parseCandidate(o, t, version)
			if err != nil {
				return nil, err
			}
			r.candidates = append(r.candidates, candidate)
		}
		if hasDuplicatePools(r.candidates[len(r.candidates)-len(overrides):]) {
			return nil, refuse("InvalidFleetConfig", "The fleet configuration contains duplicate instance pools.")
		}
	}
	if len(r.candidates) > maxFleetOverrides {
		return nil, invalidValue("The number of launch template overrides (%d) exceeds the limit of %d", len(r.candidates), maxFleetOverrides)
	}
	return r, nil
}

// fleetTagKinds are the resources that an instant fleet tags (API reference, CreateFleet, TagSpecification.N).
var fleetTagKinds = []string{"fleet", "instance", "volume", "network-interface"}

// hasDuplicatePools says whether overrides of one launch template name an instance type twice in one zone, in whatever
// subnets (aws-samples/aws-plugin-for-slurm, issue 19; github-aws-runners/terraform-aws-github-runner, issue 5297). Karpenter
// names a pool once for each reservation in it, which are launch templates of their own.
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

// parseCapacity reads how much is wanted of which kind. What has a market of its own takes no options of another kind: the
// documentation does not say what EC2 makes of them, Karpenter sends none (its pkg/providers/instance/types.go), and the
// simulator is on the strict side.
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

func (s *Server) parseCandidate(p *params, t *launchTemplate, version *templateVersion) (*fleetCandidate, error) {
	c := &fleetCandidate{weight: 1, priority: -1}
	c.xml.Template = templateRefXML{t.ID, versionNumber(version.Number)}
	over := &launchSpec{}
	if p != nil {
		var err error
		if over, err = parseLaunchSpec(p); err != nil {
			return nil, err
		}
		if over.Zone == "" {
			over.Zone = p.str("AvailabilityZone")
		}
		if id := p.str("AvailabilityZoneId"); id != "" {
			z, ok := s.account.zoneByID(id)
			if !ok {
				return nil, invalidValue("Invalid availability zone id: [%s]", id)
			}
			over.Zone = z.name
		}
		c.xml.Overrides = overridesXML{
			InstanceType: p.str("InstanceType"), SubnetID: p.str("SubnetId"), Zone: p.str("AvailabilityZone"),
			ZoneID: p.str("AvailabilityZoneId"), Image: p.str("ImageId"), MaxPrice: p.str("MaxPrice"), Priority: p.str("Priority"),
			Weight: p.str("WeightedCapacity"),
		}
		for key, to := range map[string]*float64{"Priority": &c.priority, "MaxPrice": &c.maxPrice} {
			if text := p.str(key); text != "" {
				if *to, err = strconv.ParseFloat(text, 64); err != nil || *to < 0 {
					return nil, invalidValue("%s '%s' is not a number that can be used", key, text)
				}
			}
		}
		if text := p.str("WeightedCapacity"); text != "" {
			weight, err := strconv.ParseFloat(text, 64)
			if err != nil || weight < 1 {
				return nil, invalidValue("WeightedCapacity '%s' is not valid", text)
			}
			c.weight = int(weight)
		}
	}
	c.order, c.refusal = s.prepare(version.Spec.overlay(over))
	if c.order != nil && c.refusal == nil {
		c.order.template, c.order.version = t, version.Number
	}
	return c, nil
}

// fillFleet takes instances from the candidates and reports what it got and what each dry pool said. That the launches of
// an instant fleet are throttled is in its answer, for each pool (aws/karpenter-provider-aws, pull request 8936).
func (s *Server) fillFleet(c *call, r *fleetRequest, throttled error) createFleetXML {
	f := &fleet{ID: newFleetID(), Tags: r.tags["fleet"], CreatedAt: c.at}
	out := createFleetXML{FleetID: f.ID}
	for _, half := range []struct {
		target    int
		lifecycle string
		market    string
		plan      allocationPlan
	}{
		{r.onDemand, capacityOnDemand, "", r.onDemandPlan}, {r.spot, capacitySpot, capacitySpot, r.spotPlan},
		{r.reserved, capacityOnDemand, r.market, r.onDemandPlan},
	} {
		if half.target == 0 {
			continue
		}
		candidates := s.candidatesFor(c, f, r, half.market)
		for _, k := range candidates {
			k.dry = cmp.Or(throttled, k.dry)
		}
		s.fleetFaults(candidates)
		fill(half.target, half.plan, candidates, func(k *fleetCandidate) error {
			i, err := s.obtain(k.order, len(f.Instances), c.at)
			if err == nil {
				k.made = append(k.made, i)
				f.Instances = append(f.Instances, i.ID)
			}
			return err
		})
		if half.plan.minTarget > 0 && made(candidates) < half.plan.minTarget {
			s.undo(f, candidates)
		}
		report(&out, candidates, half.lifecycle)
	}
	s.fleets.put(f.ID, f)
	return out
}

// candidatesFor copies the request's candidates for one part of the fleet, which is bought in one market.
func (s *Server) candidatesFor(c *call, f *fleet, r *fleetRequest, market string) []*fleetCandidate {
	var out []*fleetCandidate
	for _, candidate := range r.candidates {
		k := *candidate
		if k.refusal == nil {
			order := *k.order
			order.spot, order.fleet, order.token = market == capacitySpot, f.ID, c.form.str("ClientToken")
			order.reservation = newID("r")
			order.fleetTags = r.tags["instance"]
			spec := *order.spec
			spec.Tags = mergeTagSpecifications(spec.Tags, withoutKind(r.tags, "instance"))
			order.spec = &spec
			k.order = &order
			k.price = s.market.price(order.pool(), order.itype, c.at)
			k.depth = spotDepth(order.itype, order.subnet.Zone)
			if k.maxPrice > 0 && order.spot && k.price > k.maxPrice {
				k.refusal = refuse("SpotMaxPriceTooLow", "Your Spot request price of %g is lower than the minimum required Spot request fulfillment price of %g.", k.maxPrice, k.price)
			}
			if k.refusal == nil {
				k.refusal = order.checkMarket(market)
			}
		}
		k.dry = k.refusal
		out = append(out, &k)
	}
	return out
}

func withoutKind(tags map[string]map[string]string, kind string) map[string]map[string]string {
	out := maps.Clone(tags)
	delete(out, kind)
	return out
}

// undo takes back what was launched for a half that missed its minimum: EC2 launches nothing then.
func (s *Server) undo(f *fleet, candidates []*fleetCandidate) {
	for _, k := range candidates {
		for _, i := range k.made {
			s.takeBack(i)
			f.Instances = slices.DeleteFunc(f.Instances, func(id string) bool { return id == i.ID })
		}
		k.made = nil
	}
}

func report(out *createFleetXML, candidates []*fleetCandidate, lifecycle string) {
	for _, k := range candidates {
		if len(k.made) > 0 {
			item := fleetInstanceXML{
				Config: k.xml, Lifecycle: lifecycle, Type: k.order.itype.Name,
				SubnetID: k.order.subnet.ID, Zone: k.order.subnet.Zone, ZoneID: k.order.subnet.ZoneID,
			}
			for _, i := range k.made {
				item.IDs = append(item.IDs, i.ID)
			}
			out.Instances = append(out.Instances, item)
		}
		if k.dry != nil && k.dry != errSilent {
			e := asAPIError(k.dry)
			out.Errors = append(out.Errors, fleetErrorXML{Config: k.xml, Lifecycle: lifecycle, Code: e.code, Message: e.message})
		}
	}
}

// newFleetID spells a fleet id like EC2: a UUID whose groups are told apart by dashes.
func newFleetID() string {
	a, b := newID("x")[2:], newID("x")[2:]
	return strings.ToLower(fmt.Sprintf("fleet-%s-%s-%s-%s-%s", a[:8], a[8:12], a[12:16], b[:4], b[4:16]))
}
