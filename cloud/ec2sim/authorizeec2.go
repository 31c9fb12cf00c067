package ec2sim

import (
	"fmt"
	"maps"
	"strings"

	"github.com/tenon-sh/tenon/cloud/ec2sim/policy"
)

// ec2Needs determines which permissions EC2 calls need.
type ec2Needs struct {
	account      *account
	templates    *launchTemplates
	reservations *table[capacityReservation]
	instances    *table[instance]
	profiles     *table[instanceProfile]
	placements   *placementGroups
	tagging      *tagAPI
	fleets       *fleets
	runs         *runs
}

// of returns what an EC2 call needs, resource by resource ("Actions, resources, and condition keys for Amazon EC2").
func (n *ec2Needs) of(c *call) []policy.Request {
	switch c.action {
	case "CreateFleet":
		return n.ofFleet(c)
	case "RunInstances":
		return n.ofRun(c)
	case "CreateLaunchTemplate":
		tags, err := parseTagSpecifications(c.form)
		if err != nil {
			return nil // the handler reports what is wrong with the request
		}
		l := launchNeeds{ec2Needs: n, action: c.action}
		l.creates("launch-template", tags["launch-template"])
		return l.needs
	case "CreateCapacityReservation":
		tags, err := reservationTags(c.form)
		if err != nil {
			return nil // the handler reports what is wrong with the request
		}
		l := launchNeeds{ec2Needs: n, action: c.action}
		l.creates("capacity-reservation", tags)
		return l.needs
	case "CreatePlacementGroup":
		tags, err := parseTagSpecifications(c.form)
		if err != nil {
			return nil // the handler reports what is wrong with the request
		}
		l := launchNeeds{ec2Needs: n, action: c.action}
		l.creates("placement-group", tags["placement-group"])
		return l.needs
	case "DeletePlacementGroup":
		g := n.placements.named(c.form.str("GroupName"))
		if g == nil {
			return nil
		}
		return []policy.Request{{Action: "ec2:" + c.action, Resource: n.placements.arn(g), Keys: onResourceTags("ec2", g.Tags)}}
	case "CancelCapacityReservation":
		r := n.reservations.rows[c.form.str("CapacityReservationId")]
		if r == nil {
			return nil
		}
		return []policy.Request{{Action: "ec2:" + c.action, Resource: n.account.reservationARN(r), Keys: onResourceTags("ec2", r.Tags)}}
	case "DeleteLaunchTemplate":
		t, _, err := n.templates.find(c.form, "")
		if err != nil {
			return nil
		}
		return []policy.Request{{Action: "ec2:" + c.action, Resource: n.account.arn("ec2", "launch-template/"+t.ID), Keys: onResourceTags("ec2", t.Tags)}}
	case "TerminateInstances":
		var needs []policy.Request
		for _, id := range c.form.strings("InstanceId") {
			if i := n.instances.rows[id]; i != nil {
				needs = append(needs, policy.Request{Action: "ec2:" + c.action, Resource: n.account.arn("ec2", "instance/"+id), Keys: onResourceTags("ec2", i.Tags)})
			}
		}
		return needs
	case "CreateTags", "DeleteTags":
		return n.ofTags(c)
	}
	return []policy.Request{{Action: "ec2:" + c.action, Resource: "*"}}
}

func (n *ec2Needs) ofTags(c *call) []policy.Request {
	tags := map[string]string{}
	for _, item := range c.form.items("Tag") {
		tags[item.str("Key")] = item.str("Value")
	}
	var needs []policy.Request
	for _, id := range c.form.strings("ResourceId") {
		r, err := n.tagging.find(c, id)
		if err != nil {
			continue // the handler reports that there is no such resource
		}
		keys := onRequestTags(tags)
		maps.Copy(keys, onResourceTags("ec2", r.tags))
		needs = append(needs, policy.Request{Action: "ec2:" + c.action, Resource: n.account.arn("ec2", r.kind+"/"+id), Keys: keys})
	}
	return needs
}

// launchNeeds collects what a launch needs, without duplicates.
type launchNeeds struct {
	*ec2Needs
	action string
	needs  []policy.Request
	seen   map[string]bool
}

// ofFleet returns what an instant fleet needs: CreateFleet, and RunInstances for what it launches, since EC2 Fleet
// launches with the caller's permissions (EC2 User Guide, "EC2 Fleet prerequisites": CreateFleet, RunInstances,
// CreateTags and PassRole). A request that cannot be parsed launches nothing; its handler reports why.
func (n *ec2Needs) ofFleet(c *call) []policy.Request {
	fleet := launchNeeds{ec2Needs: n, action: "CreateFleet"}
	r, err := n.fleets.parse(c)
	if err != nil {
		return fleet.unreadable(c, "fleet")
	}
	fleet.creates("fleet", r.tags["fleet"])
	run := launchNeeds{ec2Needs: n, action: "RunInstances"}
	for _, candidate := range r.candidates {
		if candidate.refusal != nil {
			continue // it is not launched; the reply contains the reason
		}
		order := *candidate.order
		order.spot = r.spot > 0
		tags := mergeTagSpecifications(order.spec.Tags, r.tags)
		fleet.uses(&order, tags)
		run.uses(&order, tags)
	}
	return append(fleet.needs, run.needs...)
}

func (n *ec2Needs) ofRun(c *call) []policy.Request {
	l := launchNeeds{ec2Needs: n, action: "RunInstances"}
	order, err := n.runs.order(c)
	if err != nil {
		return l.unreadable(c, "instance")
	}
	l.uses(order, order.spec.Tags)
	return l.needs
}

// unreadable returns what a launch needs that names something that does not exist. Only callers that may launch at all
// get the handler's explanation.
func (l *launchNeeds) unreadable(c *call, kind string) []policy.Request {
	tags, err := parseTagSpecifications(c.form)
	if err != nil {
		return nil
	}
	l.creates(kind, tags[kind])
	return l.needs
}

// uses adds what one order uses and creates. Tags from the launch template count as the request's ("Grant permission to
// tag Amazon EC2 resources during creation").
func (l *launchNeeds) uses(o *launchOrder, tags map[string]map[string]string) {
	a := l.account
	l.add(a.publicARN("ec2", "image/"+o.image.ID), nil)
	l.add(a.subnetARN(o.subnet.ID), onResourceTags("ec2", l.tagging.seeded(o.subnet.ID)))
	for _, group := range o.groups {
		l.add(a.arn("ec2", "security-group/"+group), onResourceTags("ec2", l.tagging.seeded(group)))
	}
	for _, device := range o.spec.Devices {
		if device.Snapshot != "" {
			l.add(a.publicARN("ec2", "snapshot/"+device.Snapshot), nil)
		}
	}
	if o.template != nil {
		l.add(a.arn("ec2", "launch-template/"+o.template.ID), onResourceTags("ec2", o.template.Tags))
	}
	if r := l.reservations.rows[o.spec.Reservation]; r != nil {
		l.add(a.reservationARN(r), onResourceTags("ec2", r.Tags))
	}
	if g := o.placement; g != nil {
		l.add(l.placements.arn(g), onResourceTags("ec2", g.Tags))
	}
	for _, kind := range []string{"instance", "volume", "network-interface"} {
		l.creates(kind, tags[kind])
	}
	if o.spot {
		l.creates("spot-instances-request", tags["spot-instances-request"])
	}
	if o.profileARN == "" {
		return
	}
	if p := l.profiles.rows[o.profileARN[strings.LastIndexByte(o.profileARN, '/')+1:]]; p != nil && p.Role != "" {
		l.put(l.account.passRole(p.Role))
	}
}

// creates adds a resource that the call creates. If it has tags, the call also needs ec2:CreateTags with ec2:CreateAction
// set to the call's action.
func (l *launchNeeds) creates(kind string, tags map[string]string) {
	arn := l.account.arn("ec2", kind+"/*")
	l.add(arn, onRequestTags(tags))
	if len(tags) == 0 {
		return
	}
	keys := onRequestTags(tags)
	keys["ec2:CreateAction"] = []string{l.action}
	l.put(policy.Request{Action: "ec2:CreateTags", Resource: arn, Keys: keys})
}

func (l *launchNeeds) add(arn string, keys map[string][]string) {
	l.put(policy.Request{Action: "ec2:" + l.action, Resource: arn, Keys: keys})
}

// put adds a need unless it is there already: the orders of a fleet mostly need the same.
func (l *launchNeeds) put(need policy.Request) {
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	key := fmt.Sprint(need.Action, need.Resource, need.Keys) // fmt prints maps sorted by key
	if !l.seen[key] {
		l.seen[key] = true
		l.needs = append(l.needs, need)
	}
}
