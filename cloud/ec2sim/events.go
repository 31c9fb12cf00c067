package ec2sim

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
)

// spotNotice is EC2's notice before an interruption.
const spotNotice = Duration(2 * time.Minute)

// event is an EventBridge event: a source, a detail type and a detail.
type event struct {
	source, detailType string
	resources          any
	detail             map[string]any
}

// events simulates EventBridge, with every queue as a target.
type events struct {
	account   *account
	log       *zap.Logger
	queues    *sqs
	instances *table[instance]
}

// about returns an EC2 event about one instance, with the given details added.
func (ev *events) about(id, detailType string, detail map[string]any) event {
	e := event{source: "aws.ec2", detailType: detailType, detail: map[string]any{"instance-id": id},
		resources: []string{ev.account.arn("ec2", "instance/"+id)}}
	maps.Copy(e.detail, detail)
	return e
}

func (ev *events) interruption(id string, _ time.Time) event {
	return ev.about(id, "EC2 Spot Instance Interruption Warning", map[string]any{"instance-action": "terminate"})
}

func (ev *events) rebalance(id string, _ time.Time) event {
	return ev.about(id, "EC2 Instance Rebalance Recommendation", nil)
}

// reservation returns an event whose resource is a string, as EC2 documents it.
func (ev *events) reservation(id string, at time.Time) event {
	e := ev.about(id, "EC2 Capacity Reservation Instance Interruption Warning", map[string]any{
		"instance-action": "terminate", "instance-termination-time": at.Add(time.Duration(spotNotice)).UTC().Format(time.RFC3339),
	})
	if i := ev.instances.rows[id]; i != nil {
		e.detail["azId"] = ev.account.zoneOf(i).ID
	}
	e.resources = ev.account.arn("ec2", "instance/"+id)
	return e
}

// scheduledChange returns an AWS Health event about one instance.
func (ev *events) scheduledChange(id string, at time.Time) event {
	const code = "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"
	return event{source: "aws.health", detailType: "AWS Health Event", resources: []string{id}, detail: map[string]any{
		"eventArn": ev.account.arn("health", "event/EC2/"+code+"/"+uuid.NewString()), "service": "EC2", "eventTypeCode": code, "eventTypeCategory": "scheduledChange",
		"startTime": at.Add(14 * 24 * time.Hour).UTC().Format(time.RFC1123), "statusCode": "upcoming",
		"eventDescription": []map[string]string{{"language": "en_US", "latestDescription": "EC2 has detected degradation of the underlying hardware."}},
		"affectedEntities": []map[string]any{{"entityValue": id, "tags": map[string]string{}}},
	}}
}

func (ev *events) stateChange(state string) func(id string, at time.Time) event {
	return func(id string, _ time.Time) event {
		return ev.about(id, "EC2 Instance State-change Notification", map[string]any{"state": state})
	}
}

// byName returns the events that Announce can deliver.
func (ev *events) byName() map[string]func(id string, at time.Time) event {
	return map[string]func(string, time.Time) event{
		"spot-interruption":        ev.interruption,
		"rebalance-recommendation": ev.rebalance,
		"reservation-interruption": ev.reservation,
		"scheduled-change":         ev.scheduledChange,
		"pending":                  ev.stateChange("pending"),
		"running":                  ev.stateChange("running"),
		"stopping":                 ev.stateChange("stopping"),
		"stopped":                  ev.stateChange("stopped"),
		"shutting-down":            ev.stateChange("shutting-down"),
		"terminated":               ev.stateChange("terminated"),
	}
}

// announce delivers an event at an instant, which may be in the future, to every queue, as if each were the target of a
// rule for the event.
func (ev *events) announce(at time.Time, e event) {
	if len(ev.queues.rows) == 0 {
		return
	}
	body, err := json.Marshal(map[string]any{
		"version": "0", "id": uuid.NewString(), "detail-type": e.detailType, "source": e.source, "account": accountID,
		"time": at.UTC().Format(time.RFC3339), "region": ev.account.region, "resources": e.resources, "detail": e.detail,
	})
	if err != nil {
		ev.log.Error("encode event", zap.String("type", e.detailType), zap.Error(err))
		return
	}
	ev.queues.postAll(string(body), at)
}
