package tracing

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/tenon-sh/tenon/workflows"
)

// Histories is what is asked of Temporal.
type Histories interface {
	GetWorkflowHistory(ctx context.Context, id, run string, longPoll bool, filter enums.HistoryEventFilterType) client.HistoryEventIterator
}

// recorded reads histories, each once: the claims of a plan share it.
type recorded struct {
	from Histories
	read map[string][]*historypb.HistoryEvent
}

func newRecorded(from Histories) *recorded {
	return &recorded{from: from, read: map[string][]*historypb.HistoryEvent{}}
}

// events returns the history of a run, or of the last one if none is named; nil if it is gone.
func (r *recorded) events(ctx context.Context, id, run string) ([]*historypb.HistoryEvent, error) {
	key := id + " " + run
	if known, is := r.read[key]; is {
		return known, nil
	}
	var events []*historypb.HistoryEvent
	for history := r.from.GetWorkflowHistory(ctx, id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); history.HasNext(); {
		event, err := history.Next()
		var missing *serviceerror.NotFound
		if errors.As(err, &missing) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the history of workflow %s: %w", id, err)
		}
		events = append(events, event)
	}
	r.read[key] = events
	return events, nil
}

// tell adds to a story what Temporal has recorded about the launch of its claim, and about the plan that it comes from.
func (r *recorded) tell(ctx context.Context, cluster workflows.Cluster, s *story) error {
	group := s.claim.LaunchGroup()
	if group == "" {
		return nil
	}
	id := cluster.LaunchID(group)
	launch, err := r.events(ctx, id, "")
	if err != nil || len(launch) == 0 {
		return err
	}
	began := launch[0].GetWorkflowExecutionStartedEventAttributes()
	s.launchBegan, s.launch = launch[0].GetEventTime().AsTime(), untilLaunched(steps(launch, id, began.GetOriginalExecutionRunId()))
	parent := began.GetParentWorkflowExecution()
	if parent.GetWorkflowId() != cluster.ProvisioningID() {
		return nil
	}
	planning, err := r.events(ctx, parent.GetWorkflowId(), parent.GetRunId())
	if err != nil {
		return err
	}
	s.plan = planBefore(steps(planning, parent.GetWorkflowId(), parent.GetRunId()), began.GetParentInitiatedEventId())
	return nil
}

// planBefore returns the last plan that was asked for before an event of its workflow; nil if there is none.
func planBefore(all []step, event int64) *step {
	var last *step
	for i := range all {
		if all[i].activity == workflows.PlanActivity.Name && all[i].event < event {
			last = &all[i]
		}
	}
	return last
}

// untilLaunched returns the steps of a Launch that lead to its instances.
func untilLaunched(all []step) []step {
	var found []step
	for _, s := range all {
		if s.activity != workflows.StartNodeClaimsActivity.Name && s.activity != workflows.ReleaseClaimsActivity.Name {
			found = append(found, s)
		}
	}
	return found
}

// steps returns the activities of a history that have ended, in the order in which they were asked for.
func steps(history []*historypb.HistoryEvent, workflow, run string) []step {
	var all []step
	place := map[int64]int{}
	started := map[int64]int32{}
	end := func(scheduled int64, event *historypb.HistoryEvent, failure string) {
		if i, known := place[scheduled]; known {
			all[i].ended, all[i].failure = event.GetEventTime().AsTime(), failure
			all[i].attempt = started[scheduled]
		}
	}
	for _, event := range history {
		switch {
		case event.GetActivityTaskScheduledEventAttributes() != nil:
			place[event.GetEventId()] = len(all)
			all = append(all, step{event: event.GetEventId(), activity: event.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName(), asked: event.GetEventTime().AsTime(), workflow: workflow, runs: run})
		case event.GetActivityTaskStartedEventAttributes() != nil:
			attributes := event.GetActivityTaskStartedEventAttributes()
			started[attributes.GetScheduledEventId()] = attributes.GetAttempt()
		case event.GetActivityTaskCompletedEventAttributes() != nil:
			attributes := event.GetActivityTaskCompletedEventAttributes()
			end(attributes.GetScheduledEventId(), event, "")
			if i, known := place[attributes.GetScheduledEventId()]; known && all[i].activity == workflows.PlanActivity.Name {
				var plan workflows.PlanResult
				// What cannot be decoded, such as an encrypted result, leaves the wait and the planning undivided.
				if converter.GetDefaultDataConverter().FromPayloads(attributes.GetResult(), &plan) == nil {
					all[i].snapshotTaken = plan.Looked
				}
			}
		case event.GetActivityTaskFailedEventAttributes() != nil:
			attributes := event.GetActivityTaskFailedEventAttributes()
			end(attributes.GetScheduledEventId(), event, attributes.GetFailure().GetApplicationFailureInfo().GetType())
		case event.GetActivityTaskTimedOutEventAttributes() != nil:
			end(event.GetActivityTaskTimedOutEventAttributes().GetScheduledEventId(), event, "TimedOut")
		}
	}
	ended := all[:0]
	for _, s := range all {
		if !s.ended.IsZero() {
			ended = append(ended, s)
		}
	}
	return ended
}
