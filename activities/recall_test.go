package activities

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporal "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.uber.org/zap"
	"google.golang.org/protobuf/types/known/timestamppb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// TestWhatRatesCountOutlivesAProcess evaluates in a process that has just started. Only Temporal's histories know what
// runs of Disruption that are over have begun. test/outside does the same with a real Temporal server.
func TestWhatRatesCountOutlivesAProcess(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	began := func(pool string, nodes int, ago time.Duration) workflows.Disrupted {
		return workflows.Disrupted{NodePool: pool, Nodes: nodes, At: now.Add(-ago)}
	}
	removal := func(pool string) []workflows.Removal {
		return []workflows.Removal{{Nodes: []workflows.RemovedNode{{NodePool: pool}}}}
	}
	state := func(disrupted ...workflows.Disrupted) workflows.DisruptionInput {
		return workflows.DisruptionInput{ClusterUID: "this", Disrupted: disrupted}
	}
	evaluation := func(ago time.Duration, commands []workflows.Removal, disrupted ...workflows.Disrupted) pastEvaluation {
		return pastEvaluation{now.Add(-ago), workflows.Evaluation{ClusterUID: "this", Commands: commands, Disrupted: disrupted}}
	}
	anothers := evaluation(time.Minute, removal("slow"))
	anothers.found.ClusterUID = "another"
	first, second := began("slow", 1, 5*time.Minute), began("slow", 1, time.Minute)
	for _, test := range []struct {
		reason string
		rate   string
		past   []pastRun // the newest first
		asked  []workflows.Disrupted
		hidden bool // the list does not show the run that asks
		want   []workflows.Disrupted
		reads  int
		fails  bool
	}{
		{reason: "no run is over", rate: "1/10m", asked: []workflows.Disrupted{first}, want: []workflows.Disrupted{first}},
		{reason: "a run was terminated before it evaluated", rate: "1/10m", past: []pastRun{{state: state(first)}}, want: []workflows.Disrupted{first}, reads: 1},
		{reason: "its last evaluation counts", rate: "1/10m",
			past: []pastRun{{evaluations: []pastEvaluation{evaluation(5*time.Minute, removal("slow")), evaluation(time.Minute, removal("slow"), first)}}},
			want: []workflows.Disrupted{first, second}, reads: 1},
		{reason: "what its last evaluation no longer counted is forgotten", rate: "1/10m",
			past: []pastRun{{state: state(first), evaluations: []pastEvaluation{evaluation(time.Minute, nil)}}}, reads: 1},
		{reason: "two were terminated one after the other", rate: "1/10m",
			past: []pastRun{{}, {evaluations: []pastEvaluation{evaluation(time.Minute, removal("slow"))}}}, want: []workflows.Disrupted{second}, reads: 2},
		{reason: "the one that asks knows more", rate: "1/10m", past: []pastRun{{state: state(first)}}, asked: []workflows.Disrupted{first, second},
			want: []workflows.Disrupted{first, second}, reads: 1},
		{reason: "it belongs to another cluster of the same name", rate: "1/10m", past: []pastRun{{state: workflows.DisruptionInput{ClusterUID: "another", Disrupted: []workflows.Disrupted{first}},
			evaluations: []pastEvaluation{anothers}}}, reads: 1},
		{reason: "its history is past its retention", rate: "1/10m", past: []pastRun{{missing: true}, {state: state(first)}}, want: []workflows.Disrupted{first}, reads: 2},
		{reason: "it ended long ago", rate: "1/10m", past: []pastRun{{closed: 25 * time.Hour, state: state(first)}}},
		{reason: "no rate counts anything", past: []pastRun{{state: state(first)}}},
		{reason: "a list that lags may lack a run that has just ended", rate: "1/10m", hidden: true, fails: true},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "slow"}}
			if test.rate != "" {
				pool.Annotations = map[string]string{karpv1.DisruptionRateAnnotationKey: test.rate}
			}
			past := &pastRuns{now: now, runs: test.past, hidden: test.hidden}
			acts := New(Config{ClusterUID: "this", Temporal: past, Log: zap.NewNop(),
				Mirror: &ratedPools{snapshot: plan.Snapshot{Time: now, NodePools: []*karpv1.NodePool{pool}}}})
			var suite testsuite.WorkflowTestSuite
			env := suite.NewTestActivityEnvironment()
			env.RegisterActivity(acts.Evaluate)
			for range 2 { // the second evaluation reads nothing more
				answer, err := env.ExecuteActivity(acts.Evaluate, workflows.EvaluateInput{Disrupted: test.asked})
				if (err != nil) != test.fails {
					t.Fatalf("error %v, want one: %v", err, test.fails)
				}
				var found workflows.Evaluation
				if err == nil {
					err = answer.Get(&found)
				}
				if diff := cmp.Diff(test.want, found.Disrupted); diff != "" {
					t.Errorf("remembered (-want +got): %v\n%s", err, diff)
				}
			}
			if past.reads != test.reads {
				t.Errorf("%d histories were read, want %d", past.reads, test.reads)
			}
		})
	}
}

// pastRuns is a Temporal server with nothing but runs of Disruption that are over.
type pastRuns struct {
	temporal.Client
	now    time.Time
	runs   []pastRun
	hidden bool
	reads  int
}

type pastRun struct {
	state       workflows.DisruptionInput
	evaluations []pastEvaluation
	closed      time.Duration // how long ago
	missing     bool          // the history is gone
}

type pastEvaluation struct {
	at    time.Time
	found workflows.Evaluation
}

func (p *pastRuns) ListWorkflow(context.Context, *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	var page workflowservice.ListWorkflowExecutionsResponse
	if !p.hidden { // the id is the test environment's
		page.Executions = append(page.Executions, &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{RunId: "default-test-run-id"}})
	}
	for i, run := range p.runs {
		page.Executions = append(page.Executions, &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{RunId: string(rune('0' + i))},
			CloseTime: timestamppb.New(p.now.Add(-run.closed))})
	}
	return &page, nil
}

func (p *pastRuns) GetWorkflowHistory(_ context.Context, _, run string, _ bool, _ enums.HistoryEventFilterType) temporal.HistoryEventIterator {
	p.reads++
	past := p.runs[run[0]-'0']
	if past.missing {
		return &events{nil}
	}
	payloads := func(value any) *commonpb.Payloads {
		made, err := converter.GetDefaultDataConverter().ToPayloads(value)
		if err != nil {
			panic(err)
		}
		return made
	}
	events := events{{EventId: 1, EventTime: timestamppb.New(p.now), Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
		WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{Input: payloads(past.state)}}}}
	schedule := func(activity string, at time.Time, result any) {
		scheduled := int64(len(events) + 1)
		events = append(events, &historypb.HistoryEvent{EventId: scheduled, Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
			ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{ActivityType: &commonpb.ActivityType{Name: activity}}}},
			&historypb.HistoryEvent{EventId: scheduled + 1, EventTime: timestamppb.New(at), Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
				ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: scheduled, Result: payloads(result)}}})
	}
	for _, evaluation := range past.evaluations {
		schedule(workflows.EvaluateActivity.Name, evaluation.at, evaluation.found)
		schedule(workflows.RemoveActivity.Name, evaluation.at, workflows.RemovalResult{Removed: 1})
	}
	return &events
}

// events iterates over a history.
type events []*historypb.HistoryEvent

func (e *events) HasNext() bool { return len(*e) > 0 }

func (e *events) Next() (*historypb.HistoryEvent, error) {
	if len(*e) == 0 {
		return nil, errors.New("there is no other event")
	}
	first := (*e)[0]
	*e = slices.Delete(*e, 0, 1)
	if first == nil {
		return nil, serviceerror.NewNotFound("the history is gone")
	}
	return first, nil
}
