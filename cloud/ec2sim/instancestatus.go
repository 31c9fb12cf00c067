package ec2sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Status is the status that DescribeInstanceStatus reports for instances.
type Status struct {
	// Instance and System are ok or impaired; empty means ok.
	Instance string `json:"instance,omitempty"`
	System   string `json:"system,omitempty"`
	// For is how long ago the checks began to fail.
	For Duration `json:"for,omitempty"`
	// Event is the code of an event scheduled for two weeks ahead, such as instance-stop, and Description its
	// description. EC2 puts "[Completed]" before the description of an event that is over.
	Event       string `json:"event,omitempty"`
	Description string `json:"description,omitempty"`
}

// checks converts the status to checks.
func (status Status) checks(now time.Time) (instanceChecks, error) {
	checks := instanceChecks{Event: status.Event, Description: status.Description}
	for name, check := range map[string]struct {
		status string
		since  *time.Time
	}{"instance": {status.Instance, &checks.InstanceSince}, "system": {status.System, &checks.SystemSince}} {
		switch check.status {
		case "", "ok":
		case "impaired":
			*check.since = now.Add(-time.Duration(status.For))
		default:
			return checks, fmt.Errorf("%s status %q: must be ok or impaired", name, check.status)
		}
	}
	if checks.Event != "" {
		checks.EventID, checks.NotBefore = "instance-event-"+uuid.NewString()[:17], now.Add(14*24*time.Hour)
		setDefault(&checks.Description, "The instance is running on degraded hardware")
	}
	return checks, nil
}

type instanceStatusXML struct {
	ID       string           `xml:"instanceId"`
	Zone     string           `xml:"availabilityZone"`
	State    stateXML         `xml:"instanceState"`
	Events   []statusEventXML `xml:"eventsSet>item,omitempty"`
	System   statusXML        `xml:"systemStatus"`
	Instance statusXML        `xml:"instanceStatus"`
}

type statusEventXML struct {
	ID          string `xml:"instanceEventId"`
	Code        string `xml:"code"`
	Description string `xml:"description"`
	NotBefore   string `xml:"notBefore"`
}

type statusXML struct {
	Status  string `xml:"status"`
	Details struct {
		Name   string `xml:"name"`
		Status string `xml:"status"`
		Since  string `xml:"impairedSince,omitempty"`
	} `xml:"details>item"`
}

func newStatus(status, reachability string) statusXML {
	x := statusXML{Status: status}
	x.Details.Name, x.Details.Status = "reachability", reachability
	return x
}

// checked returns the result of a check that has failed since an instant, or that passes if since is zero.
func checked(since time.Time) statusXML {
	if since.IsZero() {
		return newStatus("ok", "passed")
	}
	x := newStatus("impaired", "failed")
	x.Details.Since = timestamp(since)
	return x
}

type describeInstanceStatusXML struct {
	Statuses []instanceStatusXML `xml:"instanceStatusSet>item"`
	Next     string              `xml:"nextToken,omitempty"`
}

// describeStatus handles DescribeInstanceStatus. It reports only running instances, unless IncludeAllInstances is set.
func (api *instanceAPI) describeStatus(c *call) (any, error) {
	found, err := api.instances.visible(c.form.strings("InstanceId"), c.at)
	if err != nil {
		return nil, err
	}
	all := *orFalse(c.form.flag("IncludeAllInstances"))
	found = slices.DeleteFunc(found, func(i *instance) bool { return !all && i.seen(c.at) != stateRunning })
	found, err = sift(found, parseFilters(c.form), func(i *instance) attributes {
		return func(name string) ([]string, bool) {
			switch name {
			case "instance-state-name", "instance-state-code", "availability-zone":
				return api.answers.attributes(i, c.at)(name)
			case "instance-status.status":
				return []string{i.checks(c.at).Instance.Status}, true
			case "system-status.status":
				return []string{i.checks(c.at).System.Status}, true
			case "event.code":
				if i.Status.Event == "" {
					return nil, true
				}
				return []string{i.Status.Event}, true
			}
			return nil, false
		}
	})
	if err != nil {
		return nil, err
	}
	page, next, err := pageOf(c.form, found, 5, 1000, func(i *instance) string { return i.ID })
	if err != nil {
		return nil, err
	}
	out := describeInstanceStatusXML{Next: next}
	for _, i := range page {
		out.Statuses = append(out.Statuses, i.checks(c.at))
	}
	return out, nil
}

// checks returns the status of an instance at an instant. EC2 checks only running instances.
func (i *instance) checks(now time.Time) instanceStatusXML {
	state := i.seen(now)
	x := instanceStatusXML{ID: i.ID, Zone: i.Zone, State: stateXML{state.code, state.name}}
	x.System = newStatus("not-applicable", "insufficient-data")
	x.Instance = x.System
	if state == stateRunning {
		x.System, x.Instance = checked(i.Status.SystemSince), checked(i.Status.InstanceSince)
	}
	if i.Status.Event != "" {
		x.Events = []statusEventXML{{i.Status.EventID, i.Status.Event, i.Status.Description, timestamp(i.Status.NotBefore)}}
	}
	return x
}
