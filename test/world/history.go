package world

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporal "go.temporal.io/sdk/client"
	"google.golang.org/protobuf/encoding/protojson"
)

// RecordEnv names the directory into which Record writes histories for the replay tests.
const RecordEnv = "TENON_RECORD_HISTORIES"

// identity matches the identity of the process that polled or asked, in a history's JSON.
var identity = regexp.MustCompile(`"identity":\s*"[^"]*"`)

// Run is one run of a workflow with its history.
type Run struct {
	ID, RunID, Type string
	Status          enumspb.WorkflowExecutionStatus
	Events          []*historypb.HistoryEvent
}

// Cost is the cost of runs.
type Cost struct {
	Runs, Events, Actions int
	// Heartbeats is the largest possible number of activity heartbeats, each of which is an action as well. Histories do not
	// show them, so it follows from the activities' durations.
	Heartbeats int
}

// Add sums costs up.
func (c Cost) Add(other Cost) Cost {
	return Cost{c.Runs + other.Runs, c.Events + other.Events, c.Actions + other.Actions, c.Heartbeats + other.Heartbeats}
}

// Executions lists the cluster's workflows that match a query in Temporal's list filter language, running and closed.
func (w *World) Executions(query string) []*workflowpb.WorkflowExecutionInfo {
	w.T.Helper()
	var all []*workflowpb.WorkflowExecutionInfo
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: query}
	for {
		page, err := w.Temporal.ListWorkflow(w.Context(), request)
		if err != nil {
			w.T.Fatalf("list workflows %q: %v", query, err)
		}
		all = append(all, page.GetExecutions()...)
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return all
		}
	}
}

// Runs returns the runs that match a query with their histories, the oldest first.
func (w *World) Runs(query string) []Run {
	w.T.Helper()
	var runs []Run
	for _, execution := range w.Executions(query) {
		id, run := execution.GetExecution().GetWorkflowId(), execution.GetExecution().GetRunId()
		runs = append(runs, Run{id, run, execution.GetType().GetName(), execution.GetStatus(), w.History(id, run)})
	}
	slices.SortStableFunc(runs, func(a, b Run) int {
		return a.Events[0].GetEventTime().AsTime().Compare(b.Events[0].GetEventTime().AsTime())
	})
	return runs
}

// History returns the events of a run, or of the latest run if none is named.
func (w *World) History(id, run string) []*historypb.HistoryEvent {
	w.T.Helper()
	var events []*historypb.HistoryEvent
	for it := w.Temporal.GetWorkflowHistory(w.Context(), id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); it.HasNext(); {
		event, err := it.Next()
		if err != nil {
			w.T.Fatalf("history of %s: %v", id, err)
		}
		events = append(events, event)
	}
	return events
}

// CostOf counts the events of a history and the actions that Temporal Cloud would bill for them
// (https://docs.temporal.io/cloud/actions): every start of a workflow, two more if a Schedule started it, every activity and
// every retry of it, timers, received signals, updates, upserts of search attributes, and markers other than those of
// versions. Queries leave no trace, and the tests that use this make none. A workflow task that no worker took in time, as
// happens on a busy machine, is not counted: it says nothing of the workflow.
func CostOf(events []*historypb.HistoryEvent) Cost {
	cost := Cost{Runs: 1, Events: len(events)}
	beat, started := map[int64]time.Duration{}, map[int64]time.Time{}
	for _, event := range events {
		switch event.GetEventType() {
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
			cost.Actions++
			if _, scheduled := event.GetWorkflowExecutionStartedEventAttributes().GetSearchAttributes().GetIndexedFields()["TemporalScheduledById"]; scheduled {
				cost.Actions += 2
			}
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
			cost.Events -= 2 // with the one that scheduled it
			if event.GetWorkflowTaskTimedOutEventAttributes().GetStartedEventId() != 0 {
				cost.Events--
			}
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
			cost.Actions++
			beat[event.GetEventId()] = event.GetActivityTaskScheduledEventAttributes().GetHeartbeatTimeout().AsDuration() / 2
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
			attributes := event.GetActivityTaskStartedEventAttributes()
			cost.Actions += int(attributes.GetAttempt()) - 1
			started[attributes.GetScheduledEventId()] = event.GetEventTime().AsTime()
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
			scheduled := event.GetActivityTaskCompletedEventAttributes().GetScheduledEventId()
			if every := beat[scheduled]; every > 0 {
				cost.Heartbeats += int(event.GetEventTime().AsTime().Sub(started[scheduled]) / every)
			}
		case enumspb.EVENT_TYPE_TIMER_STARTED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
			enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
			cost.Actions++
		case enumspb.EVENT_TYPE_MARKER_RECORDED:
			if event.GetMarkerRecordedEventAttributes().GetMarkerName() != "Version" {
				cost.Actions++
			}
		}
	}
	return cost
}

// RecordLatest is Record for the latest run of a workflow.
func (w *World) RecordLatest(id, what string) {
	w.T.Helper()
	if os.Getenv(RecordEnv) == "" {
		return
	}
	events := w.History(id, "")
	w.Record(Run{ID: id, Type: events[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName(), Events: events}, what)
}

// Record saves a history for the replay tests, if TENON_RECORD_HISTORIES names a directory.
func (w *World) Record(run Run, what string) {
	w.T.Helper()
	dir := os.Getenv(RecordEnv)
	if dir == "" {
		return
	}
	data, err := protojson.Marshal(&historypb.History{Events: run.Events})
	if err != nil {
		w.T.Fatal(err)
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	// The identity of a process means nothing to a replay, and names the machine that recorded the history.
	_, err = zip.Write(identity.ReplaceAll(data, []byte(`"identity":"tenon"`)))
	file := filepath.Join(dir, fmt.Sprintf("%s-%s.json.gz", strings.ToLower(run.Type), what))
	if err := errors.Join(err, zip.Close(), os.WriteFile(file, packed.Bytes(), 0o644)); err != nil {
		w.T.Fatal(err)
	}
}

// ErrNotBegun says that a workflow has no point to be reset to.
var ErrNotBegun = errors.New("the workflow has completed no workflow task")

// Reset resets a workflow to its first workflow task, as the button of Temporal's UI does.
func (w *World) Reset(ctx context.Context, id string) error {
	events := w.Temporal.GetWorkflowHistory(ctx, id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return err
		}
		if event.GetEventType() != enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			continue
		}
		_, err = w.Temporal.ResetWorkflowExecution(ctx, &workflowservice.ResetWorkflowExecutionRequest{Namespace: temporal.DefaultNamespace,
			WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id}, Reason: "a person", WorkflowTaskFinishEventId: event.GetEventId(), RequestId: uuid.NewString()})
		return err
	}
	return ErrNotBegun
}
