package temporal

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	commandpb "go.temporal.io/api/command/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

func TestActionsAreCountedFromRequests(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	counted, err := newActions(registry)
	if err != nil {
		t.Fatal(err)
	}
	command := func(kind enums.CommandType) *commandpb.Command { return &commandpb.Command{CommandType: kind} }
	send := func(request any, failure error) {
		err := counted.intercept(t.Context(), "", request, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return failure })
		if !errors.Is(err, failure) {
			t.Errorf("the error became %v", err)
		}
	}
	send(&workflowservice.RespondWorkflowTaskCompletedRequest{Commands: []*commandpb.Command{
		command(enums.COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK), command(enums.COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK),
		command(enums.COMMAND_TYPE_START_TIMER), command(enums.COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION)}}, nil)
	send(&workflowservice.SignalWithStartWorkflowExecutionRequest{}, nil)
	send(&workflowservice.RecordActivityTaskHeartbeatRequest{}, nil)
	send(&workflowservice.RecordActivityTaskHeartbeatRequest{}, errors.New("away"))
	send(&workflowservice.PollActivityTaskQueueRequest{}, nil)
	want := `
# HELP tenon_temporal_actions_total What Temporal Cloud bills as actions: workflows, activities, timers, signals, queries, updates and heartbeats.
# TYPE tenon_temporal_actions_total counter
tenon_temporal_actions_total{action="activity"} 2
tenon_temporal_actions_total{action="heartbeat"} 1
tenon_temporal_actions_total{action="signal"} 1
tenon_temporal_actions_total{action="start"} 1
tenon_temporal_actions_total{action="timer"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
