package temporal

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	"github.com/tenon-sh/tenon/internal/metrics"
)

// actions counts what Temporal Cloud bills, as this process asks for it: https://docs.temporal.io/cloud/actions. Requests that
// fail are not billed and not counted. An activity that Temporal tries again is one more action, which only the server knows.
type actions struct{ counted *prometheus.CounterVec }

// newActions registers the metric.
func newActions(registry prometheus.Registerer) (actions, error) {
	set := metrics.NewSet(registry, nil)
	return actions{set.Counter("tenon_temporal_actions_total")}, set.Err()
}

// intercept counts the actions of a request that succeeds.
func (a actions) intercept(ctx context.Context, method string, request, reply any, connection *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
	err := call(ctx, method, request, reply, connection, options...)
	if err == nil {
		a.count(request)
	}
	return err
}

func (a actions) count(request any) {
	switch request := request.(type) {
	case *workflowservice.StartWorkflowExecutionRequest:
		a.add("start")
	case *workflowservice.SignalWithStartWorkflowExecutionRequest:
		a.add("start")
		a.add("signal")
	case *workflowservice.SignalWorkflowExecutionRequest:
		a.add("signal")
	case *workflowservice.QueryWorkflowRequest:
		a.add("query")
	case *workflowservice.UpdateWorkflowExecutionRequest:
		a.add("update")
	case *workflowservice.RecordActivityTaskHeartbeatRequest:
		a.add("heartbeat")
	case *workflowservice.RespondWorkflowTaskCompletedRequest:
		for _, command := range request.GetCommands() {
			if name := commandActions[command.GetCommandType()]; name != "" {
				a.add(name)
			}
		}
	}
}

func (a actions) add(name string) { a.counted.WithLabelValues(name).Inc() }

// commandActions are the commands of workflows that are actions.
var commandActions = map[enums.CommandType]string{
	enums.COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK:             "activity",
	enums.COMMAND_TYPE_START_TIMER:                        "timer",
	enums.COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION:     "child",
	enums.COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION: "signal",
	enums.COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION: "continue_as_new",
	enums.COMMAND_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:  "search_attributes",
	enums.COMMAND_TYPE_RECORD_MARKER:                      "marker",
}
