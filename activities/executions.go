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

// executions asks Temporal about executions of workflows, each by its id: the list of them may lag.
type executions struct{ temporal.Client }

// describe returns what Temporal says of an execution, nil where it knows of none.
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

// runs asks Temporal whether a workflow runs.
func (e executions) runs(ctx context.Context, id string) (bool, error) {
	described, err := e.describe(ctx, id)
	return described.GetWorkflowExecutionInfo().GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING, err
}

// known reports whether there is a workflow of an id, running or not.
func (e executions) known(ctx context.Context, id string) (bool, error) {
	described, err := e.describe(ctx, id)
	return described != nil, err
}

// ended says whether a workflow came to an end of its own, or did so long ago. One that somebody cancelled or terminated
// did not.
func (e executions) ended(ctx context.Context, id string) (bool, error) {
	described, err := e.describe(ctx, id)
	return described == nil || described.GetWorkflowExecutionInfo().GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_COMPLETED, err
}

// doing says whether an activity of a workflow is under way.
func (e executions) doing(ctx context.Context, id, activity string) (bool, error) {
	described, err := e.describe(ctx, id)
	return slices.ContainsFunc(described.GetPendingActivities(), func(pending *workflowpb.PendingActivityInfo) bool {
		return pending.GetActivityType().GetName() == activity
	}), err
}

// handedOut returns the instance with which the workflow of a claim was started, if it runs.
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
