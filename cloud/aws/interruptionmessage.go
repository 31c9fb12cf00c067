package aws

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tenon-sh/tenon/cloud"
)

// eventEnvelope is what all EventBridge events have in common. Fields that are not used are not decoded: EC2 documents
// "resources" as a list for some events and as a string for others.
type eventEnvelope struct {
	Source     string          `json:"source"`
	DetailType string          `json:"detail-type"`
	Time       time.Time       `json:"time"`
	Detail     json.RawMessage `json:"detail"`
}

// instanceDetail is the detail of the events EC2 sends about one instance.
type instanceDetail struct {
	Instance string `json:"instance-id"`
	State    string `json:"state"`
}

// healthDetail is the detail of an AWS Health event.
type healthDetail struct {
	Service  string `json:"service"`
	Category string `json:"eventTypeCategory"`
	// Status is open, upcoming or closed; older events have none.
	Status   string `json:"statusCode"`
	Affected []struct {
		Entity string `json:"entityValue"`
	} `json:"affectedEntities"`
}

// instanceEvents are the kinds of EC2's events about one instance, by detail type. The kind of a state change depends
// on the state.
var instanceEvents = map[string]cloud.InterruptionKind{
	"EC2 Spot Instance Interruption Warning":                 cloud.SpotInterruption,
	"EC2 Instance Rebalance Recommendation":                  cloud.RebalanceRecommendation,
	"EC2 Capacity Reservation Instance Interruption Warning": cloud.ReservationInterruption,
	"EC2 Instance State-change Notification":                 "",
}

// changedStates are the states of an instance that mean its end.
var changedStates = map[string]cloud.InterruptionKind{
	"stopping":      cloud.InstanceStopping,
	"stopped":       cloud.InstanceStopping,
	"shutting-down": cloud.InstanceTerminating,
	"terminated":    cloud.InstanceTerminated,
}

// parseInterruption parses an EventBridge event from the queue. An irrelevant event, such as that an instance is now
// running or that a database is about to be patched, is not an error and has no kind. It fails if the body is not an
// event, or if an event of a known type lacks what it must have.
func parseInterruption(body string) (cloud.Interruption, error) {
	var event eventEnvelope
	if err := json.Unmarshal([]byte(body), &event); err != nil {
		return cloud.Interruption{}, fmt.Errorf("not an event: %w", err)
	}
	if event.Source == "" || event.DetailType == "" {
		return cloud.Interruption{}, errors.New("not an event: it has no source or no detail-type")
	}
	found, err := cloud.Interruption{}, error(nil)
	switch event.Source {
	case "aws.ec2":
		found, err = parseInstanceEvent(event)
	case "aws.health":
		found, err = parseHealthEvent(event)
	}
	if err != nil {
		return cloud.Interruption{}, fmt.Errorf("event %q: %w", event.DetailType, err)
	}
	found.At = event.Time
	return found, nil
}

func parseInstanceEvent(event eventEnvelope) (cloud.Interruption, error) {
	kind, known := instanceEvents[event.DetailType]
	if !known {
		return cloud.Interruption{}, nil
	}
	var detail instanceDetail
	if err := json.Unmarshal(event.Detail, &detail); err != nil {
		return cloud.Interruption{}, fmt.Errorf("read its detail: %w", err)
	}
	if kind == "" {
		if kind, known = changedStates[detail.State]; !known {
			return cloud.Interruption{}, nil
		}
	}
	if detail.Instance == "" {
		return cloud.Interruption{}, errors.New("it names no instance")
	}
	return cloud.Interruption{Kind: kind, Instances: []string{detail.Instance}}, nil
}

// parseHealthEvent parses a scheduled change of EC2. A closed one has happened or was called off, and is ignored.
func parseHealthEvent(event eventEnvelope) (cloud.Interruption, error) {
	if event.DetailType != "AWS Health Event" {
		return cloud.Interruption{}, nil
	}
	var detail healthDetail
	if err := json.Unmarshal(event.Detail, &detail); err != nil {
		return cloud.Interruption{}, fmt.Errorf("read its detail: %w", err)
	}
	if detail.Service != "EC2" || detail.Category != "scheduledChange" || detail.Status == "closed" {
		return cloud.Interruption{}, nil
	}
	found := cloud.Interruption{Kind: cloud.ScheduledChange}
	for _, affected := range detail.Affected {
		if affected.Entity != "" {
			found.Instances = append(found.Instances, affected.Entity)
		}
	}
	if len(found.Instances) == 0 {
		return cloud.Interruption{}, nil
	}
	return found, nil
}
