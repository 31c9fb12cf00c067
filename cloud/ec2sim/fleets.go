package ec2sim

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/tenon-sh/tenon/cloud/catalogue"
)

// errSilent marks a dry pool that the answer does not mention.
var errSilent = errors.New("not said")

// fleets handles CreateFleet for instant fleets.
type fleets struct {
	*table[fleet]
	account   *account
	market    catalogue.Market
	tokens    *clientTokens
	faults    *injector
	templates *launchTemplates
	launcher  *launcher
	instances *instances
}

func (fs *fleets) create(c *call) (any, error) {
	return fs.tokens.once(c, func() (any, error) {
		r, err := fs.parse(c)
		if err != nil {
			return nil, err
		}
		if *orFalse(c.form.flag("DryRun")) {
			return nil, errDryRun
		}
		return fs.fill(c, r, fs.faults.spendLaunches(r.onDemand+r.spot+r.reserved)), nil
	})
}

func (fs *fleets) parse(c *call) (*fleetRequest, error) {
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
		t, version, err := fs.templates.forLaunch(ref)
		if err != nil {
			return nil, err
		}
		overrides := config.items("Overrides")
		if len(overrides) == 0 {
			overrides = []*params{nil}
		}
		for _, o := range overrides {
			candidate, err := fs.parseCandidate(o, t, version)
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

func (fs *fleets) parseCandidate(p *params, t *launchTemplate, version *templateVersion) (*fleetCandidate, error) {
	c := &fleetCandidate{weight: 1, priority: -1}
	c.xml.Template = templateRefXML{t.ID, versionNumber(version.Number)}
	over := &launchSpec{}
	if p != nil {
		var err error
		if err := checkOverridePlacement(p.sub("Placement")); err != nil {
			return nil, err
		}
		if over, err = parseLaunchSpec(p); err != nil {
			return nil, err
		}
		if over.Zone == "" {
			over.Zone = p.str("AvailabilityZone")
		}
		if id := p.str("AvailabilityZoneId"); id != "" {
			z, ok := fs.account.zoneByID(id)
			if !ok {
				return nil, invalidValue("Invalid availability zone id: [%s]", id)
			}
			over.Zone = z.Name
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
	c.order, c.refusal = fs.launcher.prepare(version.Spec.overlay(over))
	if c.order != nil && c.refusal == nil {
		c.order.template, c.order.version = t, version.Number
	}
	return c, nil
}

// checkOverridePlacement refuses what an override cannot say about placement, although launch templates can: all but the group
// "is not supported for CreateFleet" (API reference, Placement). The code of the error is not documented.
func checkOverridePlacement(p *params) error {
	for _, name := range []string{"Affinity", "AvailabilityZone", "AvailabilityZoneId", "HostId", "HostResourceGroupArn", "PartitionNumber", "SpreadDomain", "Tenancy"} {
		if p.has(name) {
			return refuse("InvalidParameterCombination", "The parameter Placement.%s is not supported in the overrides of CreateFleet", name)
		}
	}
	return nil
}

// fill takes instances from the candidates, and reports the instances and the error of each dry pool. If the launches of
// an instant fleet are throttled, the answer reports it for each pool (aws/karpenter-provider-aws, pull request 8936).
func (fs *fleets) fill(c *call, r *fleetRequest, throttled error) createFleetXML {
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
		candidates := fs.candidatesFor(c, f, r, half.market)
		for _, k := range candidates {
			k.dry = cmp.Or(throttled, k.dry)
		}
		fs.strike(candidates)
		fill(half.target, half.plan, candidates, func(k *fleetCandidate) error {
			i, err := fs.launcher.obtain(k.order, len(f.Instances), c.at)
			if err == nil {
				k.made = append(k.made, i)
				f.Instances = append(f.Instances, i.ID)
			}
			return err
		})
		if half.plan.minTarget > 0 && made(candidates) < half.plan.minTarget {
			fs.undo(f, candidates)
		}
		report(&out, candidates, half.lifecycle)
	}
	fs.put(f.ID, f)
	return out
}

// candidatesFor copies the request's candidates for the part of the fleet that is bought in one market.
func (fs *fleets) candidatesFor(c *call, f *fleet, r *fleetRequest, market string) []*fleetCandidate {
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
			k.price = order.pool().price(fs.market, order.itype, c.at)
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

// strike applies the fleet faults to the candidates.
func (fs *fleets) strike(candidates []*fleetCandidate) {
	for n, fault := range fs.faults.current().Fleet {
		hit := slices.DeleteFunc(slices.Clone(candidates), func(k *fleetCandidate) bool { return k.refusal != nil || !fault.matches(k.order.pool()) })
		if len(hit) == 0 || !fs.faults.strikes(fault.Occurrence, "fleet", n) {
			continue
		}
		for _, k := range hit {
			k.dry = errSilent
			if fault.Code != "" {
				k.dry = ErrorFault{Code: fault.Code, Message: fault.Message}.refusal()
			}
		}
	}
}

// undo removes what was launched for a half that missed its minimum: EC2 then launches nothing.
func (fs *fleets) undo(f *fleet, candidates []*fleetCandidate) {
	for _, k := range candidates {
		for _, i := range k.made {
			fs.instances.takeBack(i)
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
		if k.dry != nil && !errors.Is(k.dry, errSilent) {
			e := asAPIError(k.dry)
			out.Errors = append(out.Errors, fleetErrorXML{Config: k.xml, Lifecycle: lifecycle, Code: e.code, Message: e.message})
		}
	}
}
