package ec2sim

import (
	"strconv"
	"time"
)

// instanceAPI handles the EC2 actions that describe or end instances.
type instanceAPI struct {
	catalogue *Catalogue
	instances *instances
	answers   *instanceAnswers
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

func (api *instanceAPI) describe(c *call) (any, error) {
	ids := c.form.strings("InstanceId")
	if len(ids) > 0 && c.form.has("MaxResults") {
		return nil, refuse("InvalidParameterCombination", "The parameter instancesSet cannot be used with the parameter maxResults")
	}
	found, err := api.instances.visible(ids, c.at)
	if err != nil {
		return nil, err
	}
	found, err = sift(found, parseFilters(c.form), func(i *instance) attributes { return api.answers.attributes(i, c.at) })
	if err != nil {
		return nil, err
	}
	page, next, err := pageOf(c.form, found, 5, 1000, func(i *instance) string {
		return strconv.FormatInt(i.LaunchedAt.UnixNano(), 36) + i.Reservation + i.ID
	})
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
		out.Reservations[last].Instances = append(out.Reservations[last].Instances, api.answers.xml(i, c.at))
	}
	return out, nil
}

// attributes returns an instance's values for the filters of DescribeInstances.
func (ia *instanceAnswers) attributes(i *instance, now time.Time) attributes {
	return tagged(i.shownTags(now), func(name string) ([]string, bool) {
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
			return one(ia.account.zoneOf(i).ID)
		case "architecture":
			return one(ia.catalogue.Type(i.Type).EC2Arch())
		case "image-id":
			return one(i.Image)
		case "subnet-id":
			return one(i.Subnet)
		case "vpc-id":
			return one(vpcID)
		case "private-ip-address":
			return one(i.PrivateIP)
		case "private-dns-name":
			return one(ia.account.privateDNS(i))
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
			if g := ia.placements.rows[i.PlacementGroup]; g != nil {
				return one(g.Name)
			}
			return nil, true
		case "placement-partition-number":
			if i.Partition == 0 {
				return nil, true
			}
			return one(strconv.Itoa(i.Partition))
		case "tenancy":
			return one("default")
		}
		return nil, false
	})
}
