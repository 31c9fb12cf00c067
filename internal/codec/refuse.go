package codec

import (
	"context"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	// refuseWithin is how long giving a task back may take.
	refuseWithin = 10 * time.Second
	// tryLater is when an activity is tried again that a worker could not read. By then, the worker may have the key.
	tryLater = 5 * time.Second
	// unreadable is the type of the failure with which a task is given back.
	unreadable = "PayloadUnreadable"
)

// refuse gives a task back that this worker cannot read, so that Temporal offers it again at once, to whatever worker can, and
// its history says which key was missing. Nothing ends by that: a workflow waits, and an activity is tried again. It returns why
// the answer that it was in is an error.
func refuse(ctx context.Context, request, reply any, connection *grpc.ClientConn, call grpc.UnaryInvoker, why *UnreadableError) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refuseWithin)
	defer cancel()
	// The failure stays in clear: a worker without keys sends it, to people without keys.
	failure := &failurepb.Failure{Message: why.Error(), Source: "Tenon",
		FailureInfo: &failurepb.Failure_ApplicationFailureInfo{ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: unreadable, NextRetryDelay: durationpb.New(tryLater)}}}
	var err error
	var task string
	switch reply := reply.(type) {
	case *workflowservice.PollWorkflowTaskQueueResponse:
		poll, _ := request.(*workflowservice.PollWorkflowTaskQueueRequest)
		task = "workflow task of " + named(reply.GetWorkflowExecution())
		if reply.GetQuery() != nil {
			err = call(ctx, workflowservice.WorkflowService_RespondQueryTaskCompleted_FullMethodName, &workflowservice.RespondQueryTaskCompletedRequest{
				TaskToken: reply.GetTaskToken(), Namespace: poll.GetNamespace(), CompletedType: enums.QUERY_RESULT_TYPE_FAILED, ErrorMessage: why.Error(), Failure: failure,
			}, &workflowservice.RespondQueryTaskCompletedResponse{}, connection)
			break
		}
		err = call(ctx, workflowservice.WorkflowService_RespondWorkflowTaskFailed_FullMethodName, &workflowservice.RespondWorkflowTaskFailedRequest{
			TaskToken: reply.GetTaskToken(), Namespace: poll.GetNamespace(), Identity: poll.GetIdentity(), DeploymentOptions: poll.GetDeploymentOptions(),
			Cause: enums.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE, Failure: failure,
		}, &workflowservice.RespondWorkflowTaskFailedResponse{}, connection)
	case *workflowservice.PollActivityTaskQueueResponse:
		poll, _ := request.(*workflowservice.PollActivityTaskQueueRequest)
		task = "activity " + reply.GetActivityType().GetName() + " of " + named(reply.GetWorkflowExecution())
		err = call(ctx, workflowservice.WorkflowService_RespondActivityTaskFailed_FullMethodName, &workflowservice.RespondActivityTaskFailedRequest{
			TaskToken: reply.GetTaskToken(), Namespace: poll.GetNamespace(), Identity: poll.GetIdentity(), DeploymentOptions: poll.GetDeploymentOptions(), Failure: failure,
		}, &workflowservice.RespondActivityTaskFailedResponse{}, connection)
	default:
		return why
	}
	if err != nil {
		return fmt.Errorf("give back the %s: %w; %w", task, err, why)
	}
	return fmt.Errorf("the %s is given back: %w", task, why)
}

func named(execution *commonpb.WorkflowExecution) string {
	return "workflow " + execution.GetWorkflowId()
}
