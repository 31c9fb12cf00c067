package ec2sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
)

// event is what EventBridge would deliver: a source, a detail type and a detail.
type event struct {
	source, detailType string
	resources          any
	detail             map[string]any
}

// instanceEvent is an event of EC2's about one instance, with further details.
func (s *Server) instanceEvent(id, detailType string, detail map[string]any) event {
	e := event{source: "aws.ec2", detailType: detailType, detail: map[string]any{"instance-id": id},
		resources: []string{s.account.arn("ec2", "instance/"+id)}}
	maps.Copy(e.detail, detail)
	return e
}

func (s *Server) interruptionEvent(id string, _ time.Time) event {
	return s.instanceEvent(id, "EC2 Spot Instance Interruption Warning", map[string]any{"instance-action": "terminate"})
}

func (s *Server) rebalanceEvent(id string, _ time.Time) event {
	return s.instanceEvent(id, "EC2 Instance Rebalance Recommendation", nil)
}

// reservationEvent has its resource as a string, as EC2 documents it.
func (s *Server) reservationEvent(id string, at time.Time) event {
	e := s.instanceEvent(id, "EC2 Capacity Reservation Instance Interruption Warning", map[string]any{
		"instance-action": "terminate", "instance-termination-time": at.Add(time.Duration(spotNotice)).UTC().Format(time.RFC3339),
	})
	if i := s.instances.rows[id]; i != nil {
		e.detail["azId"] = s.zoneOf(i).id
	}
	e.resources = s.account.arn("ec2", "instance/"+id)
	return e
}

// scheduledChangeEvent is AWS Health's about one instance.
func (s *Server) scheduledChangeEvent(id string, at time.Time) event {
	const code = "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"
	return event{source: "aws.health", detailType: "AWS Health Event", resources: []string{id}, detail: map[string]any{
		"eventArn": s.account.arn("health", "event/EC2/"+code+"/"+uuid.NewString()), "service": "EC2", "eventTypeCode": code, "eventTypeCategory": "scheduledChange",
		"startTime": at.Add(14 * 24 * time.Hour).UTC().Format(time.RFC1123), "statusCode": "upcoming",
		"eventDescription": []map[string]string{{"language": "en_US", "latestDescription": "EC2 has detected degradation of the underlying hardware."}},
		"affectedEntities": []map[string]any{{"entityValue": id, "tags": map[string]string{}}},
	}}
}

func (s *Server) stateChange(state string) func(id string, at time.Time) event {
	return func(id string, _ time.Time) event {
		return s.instanceEvent(id, "EC2 Instance State-change Notification", map[string]any{"state": state})
	}
}

// eventsByName are the events that can be had on demand.
func (s *Server) eventsByName() map[string]func(id string, at time.Time) event {
	return map[string]func(string, time.Time) event{
		"spot-interruption":        s.interruptionEvent,
		"rebalance-recommendation": s.rebalanceEvent,
		"reservation-interruption": s.reservationEvent,
		"scheduled-change":         s.scheduledChangeEvent,
		"pending":                  s.stateChange("pending"),
		"running":                  s.stateChange("running"),
		"stopping":                 s.stateChange("stopping"),
		"stopped":                  s.stateChange("stopped"),
		"shutting-down":            s.stateChange("shutting-down"),
		"terminated":               s.stateChange("terminated"),
	}
}

// Announce delivers an event about each of the instances to every queue and does nothing else: spot-interruption,
// rebalance-recommendation, reservation-interruption, scheduled-change, or a state, such as stopped. The instances need
// not exist.
func (s *Server) Announce(name string, ids ...string) error {
	named := s.eventsByName()
	made := named[name]
	if made == nil {
		return fmt.Errorf("no event %q: there are %s", name, strings.Join(slices.Sorted(maps.Keys(named)), ", "))
	}
	return s.locked(func(now time.Time) error {
		for _, id := range ids {
			s.announce(now, made(id, now))
		}
		return nil
	})
}

// Post puts a text into every queue, whatever it is.
func (s *Server) Post(body string) error {
	return s.locked(func(now time.Time) error {
		for _, q := range s.queues.sorted() {
			s.post(q, body, now, 0)
		}
		return nil
	})
}

// announce delivers an event to every queue at an instant, which may be to come, as if each were the target of a rule for
// the events.
func (s *Server) announce(at time.Time, e event) {
	if len(s.queues.rows) == 0 {
		return
	}
	body, err := json.Marshal(map[string]any{
		"version": "0", "id": uuid.NewString(), "detail-type": e.detailType, "source": e.source, "account": accountID,
		"time": at.UTC().Format(time.RFC3339), "region": s.account.region, "resources": e.resources, "detail": e.detail,
	})
	if err != nil {
		s.log.Error("encode event", zap.String("type", e.detailType), zap.Error(err))
		return
	}
	for _, q := range s.queues.sorted() {
		s.post(q, string(body), at, 0)
	}
}
