package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporal "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/tenon-sh/tenon/workflows"
)

// executions queries Temporal for workflow executions, each by its id, because the list of executions may lag.
type executions struct{ temporal.Client }

// describe returns Temporal's description of an execution, nil if there is none.
func (e executions) describe(ctx context.Context, id string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	described, err := e.DescribeWorkflowExecution(ctx, id, "")
	var missing *serviceerror.NotFound
	switch {
	case errors.As(err, &missing):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("ask for workflow %s: %w", id, err)
	}
	return described, nil
}

// runs reports whether a workflow is running.
func (e executions) runs(ctx context.Context, id string) (bool, error) {
	described, err := e.describe(ctx, id)
	return described.GetWorkflowExecutionInfo().GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING, err
}

// known reports whether there is a workflow with an id, running or not.
func (e executions) known(ctx context.Context, id string) (bool, error) {
	described, err := e.describe(ctx, id)
	return described != nil, err
}

// ended reports whether a workflow has completed, or is so old that Temporal no longer knows it. A workflow that somebody
// cancelled or terminated has not ended in this sense.
func (e executions) ended(ctx context.Context, id string) (bool, error) {
	described, err := e.describe(ctx, id)
	return described == nil || described.GetWorkflowExecutionInfo().GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_COMPLETED, err
}

// doing reports whether an activity of a workflow is pending.
func (e executions) doing(ctx context.Context, id, activity string) (bool, error) {
	described, err := e.describe(ctx, id)
	return slices.ContainsFunc(described.GetPendingActivities(), func(pending *workflowpb.PendingActivityInfo) bool {
		return pending.GetActivityType().GetName() == activity
	}), err
}

// handedOut returns the instance with which the workflow of a claim was started, if the workflow is running.
func (e executions) handedOut(ctx context.Context, id string) (instance string, running bool, err error) {
	described, err := e.describe(ctx, id)
	if err != nil || described.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return "", false, err
	}
	attribute := described.GetWorkflowExecutionInfo().GetSearchAttributes().GetIndexedFields()[workflows.AttrInstance.GetName()]
	if err := converter.GetDefaultDataConverter().FromPayload(attribute, &instance); err != nil {
		return "", true, fmt.Errorf("read the instance of workflow %s: %w", id, err)
	}
	return instance, true, nil
}
