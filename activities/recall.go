package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// maxRecalled is how many runs of Disruption recall lists: the one that asks, and the newest before it.
const maxRecalled = 10

// recall makes a process that has not evaluated yet know what rates count of the runs of Disruption that are over. A
// Disruption that is started after somebody has terminated the last one begins with nothing, and so does the process; the
// histories of the runs are left. Without a rate, recall does nothing.
func (e *evaluator) recall(ctx context.Context, snapshot *plan.Snapshot) error {
	if e.lately.knows() || !e.lately.counts(snapshot) {
		return nil
	}
	asks := activity.GetInfo(ctx).WorkflowExecution
	page, err := e.executions.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{PageSize: maxRecalled,
		Query: fmt.Sprintf("WorkflowId = '%s' AND ExecutionStatus != 'ContinuedAsNew'", asks.ID)})
	if err != nil {
		return fmt.Errorf("list the runs of workflow %s: %w", asks.ID, err)
	}
	// The list lags, and shows a run that has just ended no sooner than the one that followed it.
	if !slices.ContainsFunc(page.GetExecutions(), func(run *workflowpb.WorkflowExecutionInfo) bool { return run.GetExecution().GetRunId() == asks.RunID }) {
		return fmt.Errorf("the list of the runs of workflow %s does not show run %s yet", asks.ID, asks.RunID)
	}
	var known []workflows.Disrupted
	for _, run := range slices.Backward(page.GetExecutions()) { // from the oldest
		if run.GetCloseTime() == nil || snapshot.Time.Sub(run.GetCloseTime().AsTime()) > karpv1.DisruptionRateMost {
			continue
		}
		began, err := e.executions.begunBy(ctx, run.GetExecution(), e.seen.clusterUID)
		if err != nil {
			return err
		}
		known = remembered(began, known)
	}
	e.lately.set(known)
	return nil
}

// begunBy reads from the history of a run of Disruption what it last knew of nodes that began to be disrupted in a cluster.
func (e executions) begunBy(ctx context.Context, run *commonpb.WorkflowExecution, clusterUID string) ([]workflows.Disrupted, error) {
	var known []workflows.Disrupted
	evaluations := map[int64]bool{} // by the id of the event that scheduled them
	read := func(payloads *commonpb.Payloads, into any) error {
		return converter.GetDefaultDataConverter().FromPayloads(payloads, into)
	}
	history := e.GetWorkflowHistory(ctx, run.GetWorkflowId(), run.GetRunId(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		var missing *serviceerror.NotFound
		switch {
		case errors.As(err, &missing): // the list may outlive a history that is past its retention
			return nil, nil
		case err != nil:
		case event.GetWorkflowExecutionStartedEventAttributes() != nil:
			var state workflows.DisruptionInput
			if err = read(event.GetWorkflowExecutionStartedEventAttributes().GetInput(), &state); state.ClusterUID == clusterUID {
				known = state.Disrupted
			}
		case event.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == workflows.EvaluateActivity.Name:
			evaluations[event.GetEventId()] = true
		case evaluations[event.GetActivityTaskCompletedEventAttributes().GetScheduledEventId()]:
			var found workflows.Evaluation
			if err = read(event.GetActivityTaskCompletedEventAttributes().GetResult(), &found); found.ClusterUID == clusterUID {
				known = found.Begun(event.GetEventTime().AsTime())
			}
		}
		if err != nil {
			return nil, fmt.Errorf("read the history of workflow %s, run %s: %w", run.GetWorkflowId(), run.GetRunId(), err)
		}
	}
	return known, nil
}
