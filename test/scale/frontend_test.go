package scale_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tenon-sh/tenon/workflows"
)

// pageOf is how many workflows Temporal lists at once.
const pageOf = 1000

// frontend is a minimal Temporal server for a worker. It hands out the workflows of a cluster's nodes, each with the history
// of one that serves, and activities one by one. It stores none of the answers.
type frontend struct {
	workflowservice.UnimplementedWorkflowServiceServer
	template []*historypb.HistoryEvent
	inputs   []workflows.NodeClaimInput
	// listed are the workflows as a list returns them.
	listed []*workflowpb.WorkflowExecutionInfo

	mu sync.Mutex
	// handed and answered count workflow tasks; failed says why one failed.
	handed, answered int
	failed           string
	tasks            chan *activityTask
	running          map[string]*activityTask
}

// activityTask is an activity for a worker.
type activityTask struct {
	name   string
	input  *commonpb.Payloads
	result chan activityResult
}

type activityResult struct {
	payloads *commonpb.Payloads
	failure  string
}

// newFrontend starts a server with a workflow for each input.
func newFrontend(t testing.TB, inputs []workflows.NodeClaimInput) (*frontend, string) {
	t.Helper()
	f := &frontend{template: servingHistory(t), inputs: inputs, tasks: make(chan *activityTask), running: map[string]*activityTask{}}
	for _, in := range inputs {
		f.listed = append(f.listed, f.info(t, in))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(64 << 20))
	workflowservice.RegisterWorkflowServiceServer(server, f)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return f, listener.Addr().String()
}

// servingHistory returns the beginning of the recorded history of an uneventful life, up to the workflow task after which
// the node serves.
func servingHistory(t testing.TB) []*historypb.HistoryEvent {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "..", "workflows", "testdata", "histories", "nodeclaim-uneventful.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(unzipped)
	if err != nil {
		t.Fatal(err)
	}
	var history historypb.History
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, &history); err != nil {
		t.Fatal(err)
	}
	for i, event := range history.GetEvents() {
		if event.GetEventType() == enumspb.EVENT_TYPE_TIMER_STARTED {
			for history.GetEvents()[i].GetEventType() != enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED {
				i--
			}
			return history.GetEvents()[:i+1]
		}
	}
	t.Fatal("the recorded node never serves")
	return nil
}

// info returns a workflow as a list returns it, with its memo and search attributes.
func (f *frontend) info(t testing.TB, in workflows.NodeClaimInput) *workflowpb.WorkflowExecutionInfo {
	t.Helper()
	start := workflows.NodeClaimOptions(in)
	memo := &commonpb.Memo{Fields: map[string]*commonpb.Payload{}}
	for key, value := range start.Memo {
		memo.Fields[key] = payload(t, value)
	}
	attributes := proto.CloneOf(f.template[0].GetWorkflowExecutionStartedEventAttributes().GetSearchAttributes())
	for key, value := range map[string]string{"Instance": in.Instance.ID, "NodeClaim": in.Claim.Name, "TenonCluster": string(in.Cluster)} {
		attributes.IndexedFields[key] = payload(t, value)
	}
	return &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: start.ID, RunId: fmt.Sprintf("run-of-%s", in.Claim.UID)},
		Type:      &commonpb.WorkflowType{Name: workflows.NodeClaimType}, StartTime: timestamppb.New(time.Now().Add(-time.Hour)),
		Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, Memo: memo, SearchAttributes: attributes, TaskQueue: start.TaskQueue, HistoryLength: 12,
	}
}

func payload(t testing.TB, value any) *commonpb.Payload {
	t.Helper()
	p, err := converter.GetDefaultDataConverter().ToPayload(value)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// do lets a worker run an activity and returns how long it took.
func (f *frontend) do(t testing.TB, name string, input, result any) time.Duration {
	t.Helper()
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(input)
	if err != nil {
		t.Fatal(err)
	}
	task := &activityTask{name: name, input: payloads, result: make(chan activityResult, 1)}
	began := time.Now()
	select {
	case f.tasks <- task:
	case <-time.After(time.Minute):
		t.Fatalf("nobody asks for the activity %s", name)
	}
	select {
	case done := <-task.result:
		if done.failure != "" {
			t.Fatalf("%s: %s", name, done.failure)
		}
		took := time.Since(began)
		if err := converter.GetDefaultDataConverter().FromPayloads(done.payloads, result); err != nil {
			t.Fatal(err)
		}
		return took
	case <-time.After(3 * time.Minute):
		t.Fatalf("%s is not done after three minutes", name)
	}
	return 0
}

// served returns how many workflow tasks were answered, and why one failed.
func (f *frontend) served() (int, string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.answered, f.failed
}

func (f *frontend) GetSystemInfo(context.Context, *workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{ServerVersion: "1.32.0", Capabilities: &workflowservice.GetSystemInfoResponse_Capabilities{
		SignalAndQueryHeader: true, InternalErrorDifferentiation: true, ActivityFailureIncludeHeartbeat: true, SupportsSchedules: true, EncodedFailureAttributes: true,
		UpsertMemo: true, EagerWorkflowStart: true, SdkMetadata: true}}, nil
}

func (f *frontend) DescribeNamespace(_ context.Context, in *workflowservice.DescribeNamespaceRequest) (*workflowservice.DescribeNamespaceResponse, error) {
	return &workflowservice.DescribeNamespaceResponse{NamespaceInfo: &namespacepb.NamespaceInfo{Name: in.GetNamespace()}}, nil
}

// PollWorkflowTaskQueue hands out one task for each workflow.
func (f *frontend) PollWorkflowTaskQueue(ctx context.Context, in *workflowservice.PollWorkflowTaskQueueRequest) (*workflowservice.PollWorkflowTaskQueueResponse, error) {
	next := -1
	if in.GetTaskQueue().GetKind() != enumspb.TASK_QUEUE_KIND_STICKY {
		f.mu.Lock()
		if f.handed < len(f.inputs) {
			next = f.handed
			f.handed++
		}
		f.mu.Unlock()
	}
	if next < 0 {
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
		}
		return &workflowservice.PollWorkflowTaskQueueResponse{}, nil
	}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(f.inputs[next])
	if err != nil {
		return nil, err
	}
	events := make([]*historypb.HistoryEvent, len(f.template))
	copy(events, f.template)
	events[0] = proto.CloneOf(events[0])
	execution := f.listed[next].GetExecution()
	started := events[0].GetWorkflowExecutionStartedEventAttributes()
	started.Input, started.WorkflowId, started.OriginalExecutionRunId = payloads, execution.GetWorkflowId(), execution.GetRunId()
	return &workflowservice.PollWorkflowTaskQueueResponse{TaskToken: []byte("task"), WorkflowExecution: execution,
		WorkflowType: started.GetWorkflowType(), PreviousStartedEventId: 3, StartedEventId: events[len(events)-1].GetEventId(), Attempt: 1,
		History: &historypb.History{Events: events}, ScheduledTime: timestamppb.Now(), StartedTime: timestamppb.Now()}, nil
}

func (f *frontend) RespondWorkflowTaskCompleted(context.Context, *workflowservice.RespondWorkflowTaskCompletedRequest) (*workflowservice.RespondWorkflowTaskCompletedResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answered++
	return &workflowservice.RespondWorkflowTaskCompletedResponse{}, nil
}

func (f *frontend) RespondWorkflowTaskFailed(_ context.Context, in *workflowservice.RespondWorkflowTaskFailedRequest) (*workflowservice.RespondWorkflowTaskFailedResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = in.GetFailure().GetMessage()
	return &workflowservice.RespondWorkflowTaskFailedResponse{}, nil
}

func (f *frontend) PollActivityTaskQueue(ctx context.Context, in *workflowservice.PollActivityTaskQueueRequest) (*workflowservice.PollActivityTaskQueueResponse, error) {
	var task *activityTask
	select {
	case task = <-f.tasks:
	case <-ctx.Done():
		return &workflowservice.PollActivityTaskQueueResponse{}, nil
	case <-time.After(time.Minute):
		return &workflowservice.PollActivityTaskQueueResponse{}, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	token := strconv.Itoa(len(f.running))
	f.running[token] = task
	return &workflowservice.PollActivityTaskQueueResponse{TaskToken: []byte(token), WorkflowNamespace: in.GetNamespace(), ActivityId: token,
		WorkflowType: &commonpb.WorkflowType{Name: task.name}, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: task.name, RunId: "run"},
		ActivityType: &commonpb.ActivityType{Name: task.name}, Input: task.input, Attempt: 1,
		ScheduledTime: timestamppb.Now(), CurrentAttemptScheduledTime: timestamppb.Now(), StartedTime: timestamppb.Now(),
		ScheduleToCloseTimeout: durationpb.New(10 * time.Minute), StartToCloseTimeout: durationpb.New(10 * time.Minute), HeartbeatTimeout: durationpb.New(30 * time.Second)}, nil
}

func (f *frontend) answer(token []byte, result activityResult) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if task := f.running[string(token)]; task != nil {
		task.result <- result
	}
}

func (f *frontend) RespondActivityTaskCompleted(_ context.Context, in *workflowservice.RespondActivityTaskCompletedRequest) (*workflowservice.RespondActivityTaskCompletedResponse, error) {
	f.answer(in.GetTaskToken(), activityResult{payloads: in.GetResult()})
	return &workflowservice.RespondActivityTaskCompletedResponse{}, nil
}

func (f *frontend) RespondActivityTaskFailed(_ context.Context, in *workflowservice.RespondActivityTaskFailedRequest) (*workflowservice.RespondActivityTaskFailedResponse, error) {
	f.answer(in.GetTaskToken(), activityResult{failure: in.GetFailure().GetMessage()})
	return &workflowservice.RespondActivityTaskFailedResponse{}, nil
}

func (f *frontend) RecordActivityTaskHeartbeat(context.Context, *workflowservice.RecordActivityTaskHeartbeatRequest) (*workflowservice.RecordActivityTaskHeartbeatResponse, error) {
	return &workflowservice.RecordActivityTaskHeartbeatResponse{}, nil
}

// ListWorkflowExecutions lists the workflows of nodes page by page; nothing else runs.
func (f *frontend) ListWorkflowExecutions(_ context.Context, in *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	if !strings.Contains(in.GetQuery(), "WorkflowType IN") {
		return &workflowservice.ListWorkflowExecutionsResponse{}, nil
	}
	from := 0
	if token := in.GetNextPageToken(); len(token) > 0 {
		var err error
		if from, err = strconv.Atoi(string(token)); err != nil {
			return nil, err
		}
	}
	to := min(from+pageOf, len(f.listed))
	page := &workflowservice.ListWorkflowExecutionsResponse{Executions: f.listed[from:to]}
	if to < len(f.listed) {
		page.NextPageToken = []byte(strconv.Itoa(to))
	}
	return page, nil
}
