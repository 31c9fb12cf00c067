package recorded

import (
	"compress/gzip"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/internal/view"
	"github.com/tenon-sh/tenon/workflows"
)

// recording is one recorded history of workflows/testdata.
func recording(t *testing.T, name string) *historypb.History {
	t.Helper()
	packed, err := os.Open(filepath.Join("..", "..", "workflows", "testdata", "histories", name+".json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	history, err := client.HistoryFromJSON(unpacked, client.HistoryJSONOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return history
}

// server is a Temporal server that has recorded these histories, by workflow id. All other methods panic.
type server struct {
	client.Client
	kinds     map[string]string
	histories map[string]*historypb.History
	queries   []string
	reads     int
	lost      error
}

func (s *server) ListWorkflow(_ context.Context, request *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	s.queries = append(s.queries, request.GetQuery())
	answer := &workflowservice.ListWorkflowExecutionsResponse{}
	for id, kind := range s.kinds {
		if strings.Contains(request.GetQuery(), "WorkflowId") != (kind == workflows.LaunchType) && !strings.Contains(request.GetQuery(), "WorkflowType") {
			continue
		}
		events := s.histories[id].GetEvents()
		answer.Executions = append(answer.Executions, &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: "run of " + id},
			Type: &commonpb.WorkflowType{Name: kind}, StartTime: events[0].GetEventTime(), CloseTime: timestamppb.New(events[len(events)-1].GetEventTime().AsTime()),
			Status: enums.WORKFLOW_EXECUTION_STATUS_COMPLETED})
	}
	return answer, s.lost
}

func (s *server) GetWorkflowHistory(_ context.Context, id, _ string, _ bool, _ enums.HistoryEventFilterType) client.HistoryEventIterator {
	s.reads++
	return &iterator{events: s.histories[id].GetEvents()}
}

type iterator struct{ events []*historypb.HistoryEvent }

func (i *iterator) HasNext() bool { return len(i.events) > 0 }

func (i *iterator) Next() (*historypb.HistoryEvent, error) {
	next := i.events[0]
	i.events = i.events[1:]
	return next, nil
}

func text(events []Event) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(strings.Join([]string{e.What, e.Who, e.Why}, " | ") + "\n")
	}
	return b.String()
}

// TestHistoriesAreTold shows that the histories which tests have recorded on laboratories tell who did what, when and why.
func TestHistoriesAreTold(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason, kind, history string
		want                  []string
	}{
		"Life":      {"a node that expires", workflows.NodeClaimType, "nodeclaim-scene-expiration", []string{"is launched: ", "per hour", " serves", "are gone; the drain ended as Drained", "| Expired"}},
		"Deleted":   {"a person deletes the Node", workflows.NodeClaimType, "nodeclaim-scene-deletednode", []string{"the node is to go", "NodeDeleted"}},
		"Paused":    {"people give a drain orders", workflows.DrainType, "drain-paused-and-resumed", []string{"order to the drain: pause", "order to the drain: resume", "the drain ends: Drained"}},
		"Blocked":   {"a budget stands in the way", workflows.DrainType, "drain-waits-for-its-budget", []string{"guarded/web-0: PodDisruptionBudget web needs 2 healthy pods", "the drain ends: Drained"}},
		"Cancelled": {"a person cancels the drain", workflows.DrainType, "drain-canceled", []string{"order to the drain: cancel", "the drain ends: Canceled"}},
		"Launch":    {"EC2 has no capacity", workflows.LaunchType, "launch-refused", []string{"launch ", "the launch ends: 0 launched", "given up"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events, life := tell("id", "run", row.kind, recording(t, row.history).GetEvents())
			told := text(events)
			for _, want := range row.want {
				if !strings.Contains(told, want) {
					t.Errorf("%s: %q is not told:\n%s", row.reason, want, told)
				}
			}
			if (life != nil) != (row.kind == workflows.NodeClaimType) {
				t.Errorf("the history of a %s has the life %+v", row.kind, life)
			}
		})
	}
}

// TestStoryOfANode shows that a node's story joins the histories about it in the order in which things happened, with the
// launch of its claim and what it has cost.
func TestStoryOfANode(t *testing.T) {
	t.Parallel()
	life := recording(t, "nodeclaim-scene-expiration")
	temporal := &server{kinds: map[string]string{"blue/nodeclaim/a": workflows.NodeClaimType, "blue/drain/n": workflows.DrainType, "blue/launch/g": workflows.LaunchType},
		histories: map[string]*historypb.History{"blue/nodeclaim/a": life, "blue/drain/n": recording(t, "drain-uneventful"), "blue/launch/g": recording(t, "launch-uneventful")}}
	story, err := Reader{Temporal: temporal, Cluster: "blue"}.Node(t.Context(), "it's", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(temporal.queries[0], "TenonCluster = 'blue' AND (Node = 'its' OR NodeClaim = 'its')") {
		t.Errorf("the query is %s", temporal.queries[0])
	}
	if len(story.Lives) != 1 || len(temporal.queries) != 2 {
		t.Fatalf("%d lives after the queries %q", len(story.Lives), temporal.queries)
	}
	last := life.GetEvents()[len(life.GetEvents())-1].GetEventTime().AsTime()
	if one := story.Lives[0]; one.PerHour <= 0 || !one.Ended.Equal(last) || one.Cost != one.PerHour*last.Sub(one.Began).Hours() {
		t.Errorf("the life is %+v", one)
	}
	workflowsTold := map[string]bool{}
	for i, e := range story.Events {
		workflowsTold[e.Workflow] = true
		if i > 0 && e.At.Before(story.Events[i-1].At) {
			t.Errorf("event %d, %s, comes after a later one", i, e.What)
		}
	}
	if len(workflowsTold) != 3 {
		t.Errorf("the story is told by %v", workflowsTold)
	}
}

// TestStoryOfAPod shows what drains tell about a pod that stood in their way.
func TestStoryOfAPod(t *testing.T) {
	t.Parallel()
	drain := recording(t, "drain-waits-for-its-budget")
	events, _ := tell("blue/drain/n", "run", workflows.DrainType, drain.GetEvents())
	pod := ""
	for _, e := range events {
		if name, _, found := strings.Cut(e.Why, ": "); found && strings.Contains(name, "/") {
			pod = name
		}
	}
	if pod == "" {
		t.Fatalf("no pod stood in the way of the recorded drain:\n%s", text(events))
	}
	temporal := &server{kinds: map[string]string{"blue/drain/n": workflows.DrainType}, histories: map[string]*historypb.History{"blue/drain/n": drain}}
	reader := Reader{Temporal: temporal, Cluster: "blue"}
	if story, err := reader.Pod(t.Context(), pod); err != nil || !strings.Contains(text(story.Events), "keeps its node") {
		t.Errorf("pod %s: %+v, %v", pod, story, err)
	}
	if story, err := reader.Pod(t.Context(), pod+"x"); err != nil || len(story.Events) > 0 {
		t.Errorf("a pod that nobody knows has the story %+v, %v", story, err)
	}
}

// TestLatelyReadsWhatIsNew shows that a history is read once, that what has not changed is the same pointer, and that an
// error leaves what is known.
func TestLatelyReadsWhatIsNew(t *testing.T) {
	t.Parallel()
	temporal := &server{kinds: map[string]string{"blue/drain/n": workflows.DrainType}, histories: map[string]*historypb.History{"blue/drain/n": recording(t, "drain-uneventful")}}
	lately := NewLately(Reader{Temporal: temporal, Cluster: "blue"})
	_, first, err := lately.Read(t.Context())
	if err != nil || len(first) != 1 || first[0].Outcome != view.OutcomeCompleted || first[0].What == "" || len(first[0].Nodes) != 1 {
		t.Fatalf("the decisions are %+v, %v", first, err)
	}
	reads := temporal.reads
	_, second, err := lately.Read(t.Context())
	if err != nil || len(second) != 1 || second[0] != first[0] || temporal.reads != reads {
		t.Errorf("the second reading: the same decision %t, %d histories read, %v", second[0] == first[0], temporal.reads-reads, err)
	}
	temporal.lost = errors.New("away")
	if _, _, err := lately.Read(t.Context()); !errors.Is(err, temporal.lost) {
		t.Errorf("without Temporal the error is %v", err)
	}
}

// TestStoryOfAClaimWithoutAMachine shows that a claim is told about whose launch was refused, which has no workflow of its own.
func TestStoryOfAClaimWithoutAMachine(t *testing.T) {
	t.Parallel()
	refused := recording(t, "launch-refused")
	var in workflows.LaunchInput
	read(refused.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetInput(), &in)
	reader := Reader{Temporal: &server{kinds: map[string]string{"blue/launch/g": workflows.LaunchType}, histories: map[string]*historypb.History{"blue/launch/g": refused}}, Cluster: "blue"}
	story, err := reader.Node(t.Context(), in.Claims[0].Name, time.Now())
	if err != nil || len(story.Lives) != 0 || !strings.Contains(text(story.Events), "0 launched") || !strings.Contains(text(story.Events), "InsufficientCapacity") {
		t.Errorf("%v, the lives are %v and the events\n%s", err, story.Lives, text(story.Events))
	}
	if story, err := reader.Node(t.Context(), in.Claims[0].Name+"x", time.Now()); err != nil || len(story.Events) > 0 {
		t.Errorf("a claim that nobody knows has the story %+v, %v", story, err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	offering := cloud.OfferingKey{InstanceType: "m5.large", Zone: "us-east-1a", CapacityType: "spot"}
	for name, row := range map[string]struct {
		reason string
		out    workflows.LaunchOutcome
		want   string
	}{
		"Nothing":   {"all were launched", workflows.LaunchOutcome{Launched: 1}, ""},
		"Reason":    {"the cloud's reason", workflows.LaunchOutcome{Reason: "UnauthorizedOperation"}, "UnauthorizedOperation"},
		"Offerings": {"what has no capacity", workflows.LaunchOutcome{Launched: 1, Refused: []cloud.OfferingKey{offering}}, "no capacity: spot m5.large in us-east-1a"},
		"Both":      {"both", workflows.LaunchOutcome{Reason: "InsufficientCapacity", Refused: []cloud.OfferingKey{offering}}, "InsufficientCapacity; no capacity: spot m5.large in us-east-1a"},
	} {
		if got := refusal(row.out); got != row.want {
			t.Errorf("%s: %q, want %q: %s", name, got, row.want, row.reason)
		}
	}
}
