package bundle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/tenon-sh/tenon/workflows"
)

// mostEvents is how many events of a history are kept, from its begin.
const mostEvents = 5000

// Workflows is what is asked about workflows.
type Workflows interface {
	ListWorkflow(context.Context, *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error)
	GetWorkflowHistory(ctx context.Context, id, run string, longPoll bool, filter enums.HistoryEventFilterType) client.HistoryEventIterator
}

// execution is a workflow in a bundle.
type execution struct {
	ID     string    `json:"id"`
	Run    string    `json:"run"`
	Type   string    `json:"type"`
	Status string    `json:"status"`
	Began  time.Time `json:"began"`
	Ended  time.Time `json:"ended,omitzero"`
	Events int64     `json:"events"`
}

// happened is an event of a history without payloads.
type happened struct {
	ID   int64     `json:"id"`
	At   time.Time `json:"at"`
	Type string    `json:"type"`
	// About is the activity, the signal, or the other workflow that it is about.
	About string `json:"about,omitempty"`
	// Failure is the type of a failure and its message.
	Failure string `json:"failure,omitempty"`
	Attempt int32  `json:"attempt,omitempty"`
}

// workflowParts are the parts that Temporal knows.
func workflowParts(o Options) []Part {
	without := "payloads, memos and details; each event has its type, time, activity or signal, and failure"
	if o.Payloads {
		without = "what the redactor finds in payloads"
	}
	rights := "read the Temporal namespace"
	return []Part{
		{Path: "temporal/running", Has: fmt.Sprintf("workflows under way with their histories, %d at most", o.MostWorkflows), Without: without, Rights: rights, collect: histories("running", "ExecutionStatus = 'Running'")},
		{Path: "temporal/failed", Has: fmt.Sprintf("workflows that failed, timed out or were terminated, with their histories, %d at most", o.MostWorkflows), Without: without, Rights: rights,
			collect: histories("failed", "ExecutionStatus IN ('Failed', 'TimedOut', 'Terminated')")},
	}
}

// histories collects the workflows of the cluster that match a filter, and the history of each.
func histories(dir, filter string) func(context.Context, *collector) error {
	return func(ctx context.Context, c *collector) error {
		if c.Temporal == nil {
			return errors.New("there is no connection to Temporal")
		}
		query := fmt.Sprintf("%s = '%s' AND %s", workflows.AttrCluster.GetName(), c.Cluster, filter)
		found, err := c.list(ctx, query)
		if err != nil {
			return err
		}
		all := []execution{}
		var unread []error
		for _, info := range found {
			of := info.GetExecution()
			e := execution{ID: of.GetWorkflowId(), Run: of.GetRunId(), Type: info.GetType().GetName(), Status: info.GetStatus().String(), Began: info.GetStartTime().AsTime(), Events: info.GetHistoryLength()}
			if info.GetCloseTime() != nil {
				e.Ended = info.GetCloseTime().AsTime()
			}
			all = append(all, e)
			events, err := c.history(ctx, e)
			if err != nil {
				unread = append(unread, err)
			}
			if err := c.addJSON(fmt.Sprintf("temporal/%s/%s.%s.json", dir, strings.ReplaceAll(e.ID, "/", "_"), e.Run), events); err != nil {
				return err
			}
		}
		return errors.Join(c.addJSON("temporal/"+dir+".json", all), errors.Join(unread...))
	}
}

// list returns the first executions that a query finds.
func (c *collector) list(ctx context.Context, query string) ([]*workflowpb.WorkflowExecutionInfo, error) {
	var all []*workflowpb.WorkflowExecutionInfo
	for token := []byte(nil); ; {
		page, err := c.Temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, NextPageToken: token, PageSize: int32(min(c.MostWorkflows, 1000))})
		if err != nil {
			return nil, fmt.Errorf("list workflows with %s: %w", query, err)
		}
		all = append(all, page.GetExecutions()...)
		if token = page.GetNextPageToken(); len(token) == 0 || len(all) >= c.MostWorkflows {
			return all[:min(len(all), c.MostWorkflows)], nil
		}
	}
}

// history returns the events of a run.
func (c *collector) history(ctx context.Context, e execution) ([]any, error) {
	events := []any{}
	for read := c.Temporal.GetWorkflowHistory(ctx, e.ID, e.Run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); read.HasNext() && len(events) < mostEvents; {
		event, err := read.Next()
		if err != nil {
			return events, fmt.Errorf("read the history of %s: %w", e.ID, err)
		}
		if !c.Payloads {
			events = append(events, c.brief(event))
			continue
		}
		whole, err := c.whole(event)
		if err != nil {
			return events, fmt.Errorf("read the history of %s: %w", e.ID, err)
		}
		events = append(events, whole)
	}
	return events, nil
}

// brief returns an event without its payloads.
func (c *collector) brief(event *historypb.HistoryEvent) happened {
	h := happened{ID: event.GetEventId(), At: event.GetEventTime().AsTime(), Type: event.GetEventType().String()}
	var failure *failurepb.Failure
	switch {
	case event.GetActivityTaskScheduledEventAttributes() != nil:
		h.About = event.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()
	case event.GetActivityTaskStartedEventAttributes() != nil:
		started := event.GetActivityTaskStartedEventAttributes()
		h.Attempt, failure = started.GetAttempt(), started.GetLastFailure()
	case event.GetActivityTaskFailedEventAttributes() != nil:
		failure = event.GetActivityTaskFailedEventAttributes().GetFailure()
	case event.GetActivityTaskTimedOutEventAttributes() != nil:
		failure = event.GetActivityTaskTimedOutEventAttributes().GetFailure()
	case event.GetWorkflowTaskFailedEventAttributes() != nil:
		failed := event.GetWorkflowTaskFailedEventAttributes()
		h.About, failure = failed.GetCause().String(), failed.GetFailure()
	case event.GetWorkflowExecutionFailedEventAttributes() != nil:
		failure = event.GetWorkflowExecutionFailedEventAttributes().GetFailure()
	case event.GetWorkflowExecutionTerminatedEventAttributes() != nil:
		h.About = c.Text(event.GetWorkflowExecutionTerminatedEventAttributes().GetReason())
	case event.GetWorkflowExecutionSignaledEventAttributes() != nil:
		h.About = event.GetWorkflowExecutionSignaledEventAttributes().GetSignalName()
	case event.GetStartChildWorkflowExecutionInitiatedEventAttributes() != nil:
		h.About = event.GetStartChildWorkflowExecutionInitiatedEventAttributes().GetWorkflowId()
	case event.GetSignalExternalWorkflowExecutionInitiatedEventAttributes() != nil:
		h.About = event.GetSignalExternalWorkflowExecutionInitiatedEventAttributes().GetWorkflowExecution().GetWorkflowId()
	case event.GetMarkerRecordedEventAttributes() != nil:
		h.About = event.GetMarkerRecordedEventAttributes().GetMarkerName()
	}
	if failure != nil {
		h.Failure = c.Text(failure.GetApplicationFailureInfo().GetType() + ": " + failure.GetMessage())
	}
	return h
}

// whole returns an event with its payloads, decoded as far as they are JSON. Those that are not, such as encrypted ones,
// look like keys to the redactor.
func (c *collector) whole(event *historypb.HistoryEvent) (any, error) {
	encoded, err := temporalproto.CustomJSONMarshalOptions{Metadata: map[string]any{commonpb.EnablePayloadShorthandMetadataKey: true}}.Marshal(event)
	if err != nil {
		return nil, fmt.Errorf("encode an event: %w", err)
	}
	var decoded any
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		return nil, fmt.Errorf("decode an event: %w", err)
	}
	return c.Value(decoded), nil
}
