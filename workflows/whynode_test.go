package workflows

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/workflow"
)

// answered is the outcome of a question about a node.
type answered struct {
	rejected, failed error
	answer           NodeAnswer
}

func (a *answered) Accept()          {}
func (a *answered) Reject(err error) { a.rejected = err }
func (a *answered) Complete(result any, err error) {
	a.failed = err
	if answer, ok := result.(NodeAnswer); ok {
		a.answer = answer
	}
}

// An activity answers the question from what Disruption knows. Disruption runs no evaluation for it.
func TestDisruptionAnswersWhyANodeStays(t *testing.T) {
	t.Parallel()
	want := NodeAnswer{Known: true, Managed: true, Claim: "a", Verdicts: []NodeVerdict{{Reason: "Drifted", Cause: "Budget", Message: "budgets allow 0"}}}
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	held := []Held{{Claim: "b", Until: start.Add(time.Hour), Times: 1, Why: "no capacity"}}
	evaluations := 0
	env := environment(t, &fakes{look: func() Evaluation { evaluations++; return Evaluation{} }})
	var questions []NodeQuestion
	WhyNodeActivity.register(env, func(_ context.Context, in NodeQuestion) (NodeAnswer, error) {
		questions = append(questions, in)
		return want, nil
	})
	env.SetStartTime(start)
	var good, bad answered
	env.RegisterDelayedCallback(func() {
		env.UpdateWorkflow(UpdateWhyNode, "good", &good, NodeQuestion{Name: "a"})
		env.UpdateWorkflow(UpdateWhyNode, "bad", &bad, NodeQuestion{})
	}, time.Minute)
	env.RegisterDelayedCallback(func() {
		env.SetContinueAsNewSuggested(true)
		env.SignalWorkflow(SignalEvaluate, nil)
	}, 2*time.Minute)
	env.ExecuteWorkflow(DisruptionType, DisruptionInput{Cluster: "c", Held: held})
	var next *workflow.ContinueAsNewError
	if err := env.GetWorkflowError(); !errors.As(err, &next) {
		t.Fatalf("want continue-as-new, got %v", err)
	}
	if good.rejected != nil || good.failed != nil {
		t.Fatalf("the question was not answered: %v, %v", good.rejected, good.failed)
	}
	if diff := cmp.Diff(want, good.answer); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if bad.rejected == nil {
		t.Error("a question without name is to be refused")
	}
	if len(questions) != 1 || cmp.Diff(held, questions[0].Evaluate.Held) != "" {
		t.Errorf("the activity is told what Disruption knows: %+v", questions)
	}
	if evaluations > 0 {
		t.Errorf("a question evaluates nothing; there were %d evaluations", evaluations)
	}
}
