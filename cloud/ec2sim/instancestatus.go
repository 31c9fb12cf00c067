package ec2sim

import "slices"

type instanceStatusXML struct {
	ID       string    `xml:"instanceId"`
	Zone     string    `xml:"availabilityZone"`
	State    stateXML  `xml:"instanceState"`
	System   statusXML `xml:"systemStatus"`
	Instance statusXML `xml:"instanceStatus"`
}

type statusXML struct {
	Status  string `xml:"status"`
	Details struct {
		Name   string `xml:"name"`
		Status string `xml:"status"`
	} `xml:"details>item"`
}

func newStatus(status, reachability string) statusXML {
	x := statusXML{Status: status}
	x.Details.Name, x.Details.Status = "reachability", reachability
	return x
}

type describeInstanceStatusXML struct {
	Statuses []instanceStatusXML `xml:"instanceStatusSet>item"`
	Next     string              `xml:"nextToken,omitempty"`
}

// describeInstanceStatus reports running instances only, unless all are asked for.
func describeInstanceStatus(s *Server, c *call) (any, error) {
	found, err := s.visibleInstances(c.form.strings("InstanceId"), c.at)
	if err != nil {
		return nil, err
	}
	all := *orFalse(c.form.flag("IncludeAllInstances"))
	found = slices.DeleteFunc(found, func(i *instance) bool { return !all && i.seen(c.at) != stateRunning })
	found, err = sift(found, parseFilters(c.form), func(i *instance) attributes {
		return func(name string) ([]string, bool) {
			switch name {
			case "instance-state-name", "instance-state-code", "availability-zone":
				return s.instanceAttributes(i, c.at)(name)
			case "instance-status.status", "system-status.status":
				return []string{"ok"}, true
			}
			return nil, false
		}
	})
	if err != nil {
		return nil, err
	}
	size, err := pageSize(c.form, 5, 1000, 1000)
	if err != nil {
		return nil, err
	}
	page, next, err := paginate(found, func(i *instance) string { return i.ID }, c.form.str("NextToken"), size)
	if err != nil {
		return nil, err
	}
	out := describeInstanceStatusXML{Next: next}
	for _, i := range page {
		state := i.seen(c.at)
		status := newStatus("not-applicable", "insufficient-data")
		if state == stateRunning {
			status = newStatus("ok", "passed")
		}
		out.Statuses = append(out.Statuses, instanceStatusXML{i.ID, i.Zone, stateXML{state.code, state.name}, status, status})
	}
	return out, nil
}
