package ec2sim

import "slices"

type spotRequestXML struct {
	ID         string    `xml:"spotInstanceRequestId"`
	Price      string    `xml:"spotPrice"`
	Type       string    `xml:"type"`
	State      string    `xml:"state"`
	Status     statusRef `xml:"status"`
	InstanceID string    `xml:"instanceId"`
	CreatedAt  string    `xml:"createTime"`
	Product    string    `xml:"productDescription"`
	Zone       string    `xml:"launchedAvailabilityZone"`
	Tags       []tagXML  `xml:"tagSet>item,omitempty"`
}

type statusRef struct {
	Code string `xml:"code"`
}

type describeSpotRequestsXML struct {
	Requests []spotRequestXML `xml:"spotInstanceRequestSet>item"`
	Next     string           `xml:"nextToken,omitempty"`
}

func (api *instanceAPI) describeSpotRequests(c *call) (any, error) {
	ids := c.form.strings("SpotInstanceRequestId")
	var found []*instance
	seen := map[string]bool{}
	for _, i := range api.instances.rows {
		if i.Spot && i.visible(c.at) && (len(ids) == 0 || slices.Contains(ids, i.SpotRequest)) {
			found = append(found, i)
			seen[i.SpotRequest] = true
		}
	}
	for _, id := range ids {
		if !seen[id] {
			return nil, refuse("InvalidSpotInstanceRequestID.NotFound", "The spot instance request ID '%s' does not exist", id)
		}
	}
	request := func(i *instance) spotRequestXML {
		x := spotRequestXML{
			ID: i.SpotRequest, Price: formatUSD(api.catalogue.Type(i.Type).PriceUSD), Type: "one-time", State: "active",
			Status: statusRef{"fulfilled"}, InstanceID: i.ID, CreatedAt: timestamp(i.LaunchedAt), Product: "Linux/UNIX", Zone: i.Zone,
			Tags: tagsXML(i.RequestTags),
		}
		if i.ended() {
			x.State, x.Status.Code = "closed", "instance-terminated-by-user"
			if i.EndCode == "Server.SpotInstanceTermination" {
				x.Status.Code = "instance-terminated-no-capacity"
			}
		}
		return x
	}
	found, err := sift(found, parseFilters(c.form), func(i *instance) attributes {
		x := request(i)
		return tagged(i.RequestTags, func(name string) ([]string, bool) {
			v, ok := map[string]string{
				"state": x.State, "status-code": x.Status.Code, "instance-id": x.InstanceID,
				"spot-instance-request-id": x.ID, "launched-availability-zone": x.Zone,
			}[name]
			return []string{v}, ok
		})
	})
	if err != nil {
		return nil, err
	}
	page, next, err := pageOf(c.form, found, 5, 1000, func(i *instance) string { return i.SpotRequest })
	if err != nil {
		return nil, err
	}
	out := describeSpotRequestsXML{Next: next}
	for _, i := range page {
		out.Requests = append(out.Requests, request(i))
	}
	return out, nil
}
