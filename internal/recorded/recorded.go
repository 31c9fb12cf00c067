// Package recorded reads what Temporal has recorded about a cluster's nodes: which workflows are under way, what was decided
// lately and why, and the story of one node, claim or pod, also long after it is gone. It only reads, and starts nothing.
//
// Lists come from Temporal's visibility, which lags a little and may be cut off by its retention; everything else from
// histories, whose first event has a workflow's input and summary.
//
// Reading order: recorded, lately, events, story.
package recorded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/tenon-sh/tenon/workflows"
)

// Reader reads what is recorded about one cluster.
type Reader struct {
	Temporal client.Client
	Cluster  workflows.Cluster
}

// list returns the executions of the cluster that match a filter, the newest first, most of them at most.
func (r Reader) list(ctx context.Context, filter string, most int) ([]*workflowpb.WorkflowExecutionInfo, error) {
	query := fmt.Sprintf("%s = '%s'", workflows.AttrCluster.GetName(), quoted(string(r.Cluster)))
	if filter != "" {
		query += " AND " + filter
	}
	var all []*workflowpb.WorkflowExecutionInfo
	for token := []byte(nil); ; {
		page, err := r.Temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, NextPageToken: token, PageSize: int32(min(most, 1000))})
		if err != nil {
			return nil, fmt.Errorf("list workflows with %s: %w", query, err)
		}
		all = append(all, page.GetExecutions()...)
		if token = page.GetNextPageToken(); len(token) == 0 || len(all) >= most {
			return all[:min(most, len(all))], nil
		}
	}
}

// first returns the first event of a run, nil if its history is gone.
func (r Reader) first(ctx context.Context, id, run string) (*historypb.HistoryEvent, error) {
	history := r.Temporal.GetWorkflowHistory(ctx, id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	if !history.HasNext() {
		return nil, nil
	}
	event, err := history.Next()
	var missing *serviceerror.NotFound
	switch {
	case errors.As(err, &missing):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the history of workflow %s: %w", id, err)
	}
	return event, nil
}

// attribute returns a search attribute, empty if it is not set.
func attribute(execution *workflowpb.WorkflowExecutionInfo, name string) (value string) {
	if payload := execution.GetSearchAttributes().GetIndexedFields()[name]; payload != nil {
		_ = json.Unmarshal(payload.GetData(), &value) // what cannot be read is shown as missing
	}
	return value
}

// summary is what an event says about itself to people.
func summary(event *historypb.HistoryEvent) (text string) {
	if payload := event.GetUserMetadata().GetSummary(); payload != nil {
		_ = converter.GetDefaultDataConverter().FromPayload(payload, &text) // what cannot be read is shown as missing
	}
	return text
}

// quoted makes a name safe in a query. Names of Kubernetes objects have no quotes; other words find nothing.
func quoted(name string) string { return strings.ReplaceAll(name, "'", "") }
