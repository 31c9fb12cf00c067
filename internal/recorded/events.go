package recorded

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/workflows"
)

// Event is one thing that happened.
type Event struct {
	At time.Time `json:"at"`
	// Workflow and Run are where it is recorded, both empty for what Kubernetes tells.
	Workflow string `json:"workflow,omitempty"`
	Run      string `json:"run,omitempty"`
	What     string `json:"what"`
	// Who is a person or a component; empty for what the workflow did itself.
	Who string `json:"who,omitempty"`
	Why string `json:"why,omitempty"`
}

// Life is what the first events of a NodeClaim workflow say about its machine.
type Life struct {
	Claim        string `json:"claim,omitempty"`
	NodePool     string `json:"nodePool,omitempty"`
	LaunchGroup  string `json:"launchGroup,omitempty"`
	Instance     string `json:"instance,omitempty"`
	InstanceType string `json:"instanceType,omitempty"`
	Zone         string `json:"zone,omitempty"`
	CapacityType string `json:"capacityType,omitempty"`
	// PerHour is what it cost per hour at its launch, and Cost what it has cost until its end or until now, at that price. Both
	// are in the currency of the zone; zero where the price is not known.
	PerHour float64   `json:"perHour,omitempty"`
	Cost    float64   `json:"cost,omitempty"`
	Began   time.Time `json:"began"`
	// Ended is when it was gone; zero while it lives.
	Ended time.Time `json:"ended,omitzero"`
}

// teller turns the history of one run into events.
type teller struct {
	workflow, run, kind string
	events              []Event
	life                *Life
	// scheduled are activities by the id of the event that scheduled them, with what they are for.
	scheduled map[int64]activity
}

type activity struct{ name, purpose string }

// tell returns what the history of one run tells, and the life it begins if it is that of a NodeClaim.
func tell(workflow, run, kind string, history []*historypb.HistoryEvent) ([]Event, *Life) {
	t := &teller{workflow: workflow, run: run, kind: kind, scheduled: map[int64]activity{}}
	for _, event := range history {
		t.event(event)
	}
	return t.events, t.life
}

func (t *teller) say(event *historypb.HistoryEvent, what, who, why string) {
	t.events = append(t.events, Event{At: event.GetEventTime().AsTime(), Workflow: t.workflow, Run: t.run, What: what, Who: who, Why: why})
}

// read decodes payloads, which the connection has decrypted; what cannot be decoded is left as it is.
func read(payloads *commonpb.Payloads, into any) {
	_ = converter.GetDefaultDataConverter().FromPayloads(payloads, into)
}

func (t *teller) event(event *historypb.HistoryEvent) {
	if started := event.GetWorkflowExecutionStartedEventAttributes(); started != nil {
		t.started(event, started)
	} else if a := event.GetActivityTaskScheduledEventAttributes(); a != nil {
		name := a.GetActivityType().GetName()
		t.scheduled[event.GetEventId()] = activity{name, cmp.Or(summary(event), name)}
	} else if a := event.GetActivityTaskCompletedEventAttributes(); a != nil {
		t.did(event, t.scheduled[a.GetScheduledEventId()], a.GetResult())
	} else if a := event.GetActivityTaskFailedEventAttributes(); a != nil {
		t.say(event, t.scheduled[a.GetScheduledEventId()].purpose+" failed", "", a.GetFailure().GetMessage())
	} else if a := event.GetActivityTaskTimedOutEventAttributes(); a != nil {
		t.say(event, t.scheduled[a.GetScheduledEventId()].purpose+" took too long", "", a.GetFailure().GetMessage())
	} else if a := event.GetWorkflowExecutionSignaledEventAttributes(); a != nil {
		t.signaled(event, a)
	} else if a := event.GetWorkflowExecutionUpdateAcceptedEventAttributes(); a != nil {
		t.ordered(event, a)
	} else if a := event.GetUpsertWorkflowSearchAttributesEventAttributes(); a != nil {
		var phase string
		if payload := a.GetSearchAttributes().GetIndexedFields()[workflows.AttrPhase.GetName()]; payload != nil {
			read(&commonpb.Payloads{Payloads: []*commonpb.Payload{payload}}, &phase)
			t.say(event, strings.ToLower(phase), "", "")
		}
	} else if a := event.GetWorkflowExecutionCompletedEventAttributes(); a != nil {
		t.completed(event, a)
	} else if a := event.GetWorkflowExecutionFailedEventAttributes(); a != nil {
		t.end(event, t.kind+" failed", "", a.GetFailure().GetMessage())
	} else if a := event.GetWorkflowExecutionTerminatedEventAttributes(); a != nil {
		t.end(event, t.kind+" was terminated", a.GetIdentity(), a.GetReason())
	} else if a := event.GetWorkflowExecutionCancelRequestedEventAttributes(); a != nil {
		t.say(event, t.kind+" is to be cancelled", a.GetIdentity(), a.GetCause())
	}
}

func (t *teller) started(event *historypb.HistoryEvent, started *historypb.WorkflowExecutionStartedEventAttributes) {
	what, who, why := cmp.Or(summary(event), t.kind+" begins"), "", ""
	if parent := started.GetParentWorkflowExecution().GetWorkflowId(); parent != "" {
		who = parent
	}
	switch t.kind {
	case workflows.NodeClaimType:
		var in workflows.NodeClaimInput
		read(started.GetInput(), &in)
		t.life = &Life{Claim: in.Claim.Name, NodePool: in.NodePool, LaunchGroup: in.Group, Instance: in.Instance.ID, InstanceType: in.Instance.InstanceType,
			Zone: in.Instance.Zone, CapacityType: in.Instance.CapacityType, PerHour: in.Instance.Price, Began: event.GetEventTime().AsTime()}
		what = fmt.Sprintf("instance %s is launched: %s", in.Instance.ID, what)
		if in.Instance.Price > 0 {
			what += ", " + cloud.Money(in.Instance.Zone, in.Instance.Price) + " per hour"
		}
	case workflows.DrainType:
		var in workflows.DrainInput
		read(started.GetInput(), &in)
		who, why = cmp.Or(in.By, who), in.Note
		if !in.Deadline.IsZero() {
			what += ", until " + in.Deadline.UTC().Format(time.RFC3339)
		}
	case workflows.ReplacementType:
		var in workflows.ReplacementInput
		read(started.GetInput(), &in)
		why = in.Why
		if in.SavesPerHour != 0 {
			what += fmt.Sprintf(", saves %s per hour", cloud.Money(in.Zone, in.SavesPerHour))
		}
	}
	if started.GetContinuedExecutionRunId() == "" {
		t.say(event, what, who, why)
	}
}

// did says that an activity has completed. Evictions that only waited are left out.
func (t *teller) did(event *historypb.HistoryEvent, did activity, result *commonpb.Payloads) {
	switch did.name {
	case workflows.EvictActivity.Name:
		var out workflows.EvictResult
		read(result, &out)
		blocked := make([]string, 0, len(out.Blockers))
		for _, b := range out.Blockers {
			blocked = append(blocked, strings.TrimSpace(b.Pod+": "+cmp.Or(b.Message, b.Cause+" "+b.By)))
		}
		if out.Evicted > 0 || len(blocked) > 0 {
			t.say(event, fmt.Sprintf("%d pods evicted, %d left", out.Evicted, out.Left), "", strings.Join(blocked, "; "))
		}
	case workflows.JoinActivity.Name:
		var out workflows.JoinResult
		read(result, &out)
		switch {
		case out.Failed != "":
			t.say(event, "the node does not come up", "", out.Failed)
		case out.Initialized:
			t.say(event, "node "+out.Node+" serves", "", "")
		default:
			t.say(event, "node "+out.Node+" has joined", "", "")
		}
	default:
		t.say(event, did.purpose, "", "")
	}
}

func (t *teller) signaled(event *historypb.HistoryEvent, signal *historypb.WorkflowExecutionSignaledEventAttributes) {
	if signal.GetSignalName() != workflows.SignalEnding {
		return
	}
	var ending workflows.Ending
	read(signal.GetInput(), &ending)
	what := "the node is to go"
	if !ending.Deadline.IsZero() {
		what += " by " + ending.Deadline.UTC().Format(time.RFC3339)
	}
	t.say(event, what, "", ending.Reason)
}

// ordered says that somebody gave a drain an order. Questions are left out.
func (t *teller) ordered(event *historypb.HistoryEvent, update *historypb.WorkflowExecutionUpdateAcceptedEventAttributes) {
	if t.kind != workflows.DrainType {
		return
	}
	var order workflows.DrainOrder
	read(update.GetAcceptedRequest().GetInput().GetArgs(), &order)
	what := "order to the drain: " + update.GetAcceptedRequest().GetInput().GetName()
	if !order.Deadline.IsZero() {
		what += " " + order.Deadline.UTC().Format(time.RFC3339)
	}
	t.say(event, what, cmp.Or(order.By, update.GetAcceptedRequest().GetMeta().GetIdentity()), order.Note)
}

func (t *teller) completed(event *historypb.HistoryEvent, done *historypb.WorkflowExecutionCompletedEventAttributes) {
	var result struct {
		Reason  string                 `json:"reason"`
		Drain   workflows.DrainOutcome `json:"drain"`
		Outcome string                 `json:"outcome"`
		Evicted int                    `json:"evicted"`
		Undone  string                 `json:"undone"`
	}
	read(done.GetResult(), &result)
	switch t.kind {
	case workflows.NodeClaimType:
		what := "instance, Node and NodeClaim are gone"
		if result.Drain != "" {
			what += "; the drain ended as " + string(result.Drain)
		}
		t.end(event, what, "", result.Reason)
	case workflows.LaunchType:
		var out workflows.LaunchOutcome
		read(done.GetResult(), &out)
		t.end(event, fmt.Sprintf("the launch ends: %d launched, %d given up", out.Launched, out.Released), "", refusal(out))
	case workflows.DrainType:
		t.end(event, fmt.Sprintf("the drain ends: %s, %d pods evicted", result.Outcome, result.Evicted), "", "")
	default:
		t.end(event, t.kind+" ends", "", cmp.Or(result.Undone, result.Reason))
	}
}

// refusal says why a launch has launched less than it was to.
func refusal(out workflows.LaunchOutcome) string {
	offerings := make([]string, 0, len(out.Refused))
	for _, o := range out.Refused {
		offerings = append(offerings, fmt.Sprintf("%s %s in %s", o.CapacityType, o.InstanceType, o.Zone))
	}
	if len(offerings) == 0 {
		return out.Reason
	}
	return strings.TrimPrefix(out.Reason+"; no capacity: "+strings.Join(offerings, ", "), "; ")
}

// end says how a run ended.
func (t *teller) end(event *historypb.HistoryEvent, what, who, why string) {
	if t.life != nil {
		t.life.Ended = event.GetEventTime().AsTime()
	}
	t.say(event, what, who, why)
}
