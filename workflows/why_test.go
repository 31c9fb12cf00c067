package workflows

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/testsuite"

	"github.com/tenon-sh/tenon/cloud"
)

// asked is the outcome of an update.
type asked struct {
	rejected, failed error
	answer           PodAnswer
}

func (a *asked) Accept()          {}
func (a *asked) Reject(err error) { a.rejected = err }
func (a *asked) Complete(result any, err error) {
	a.failed = err
	if answer, ok := result.(PodAnswer); ok {
		a.answer = answer
	}
}

func TestProvisioningAnswersWhyAPodWaits(t *testing.T) {
	t.Parallel()
	key := cloud.OfferingKey{InstanceType: "m6i.large", Zone: "us-east-1a", CapacityType: "spot"}
	want := PodAnswer{Verdict: PodUnplaced, Judged: true, Reasons: []PodReason{{NodePool: "default", Message: "taint"}}, Pending: 7}
	var questions []PodQuestion
	plans := 0
	f := &fakes{
		plan: func(PlanInput) (PlanResult, error) { plans++; return PlanResult{}, nil },
		why:  func(q PodQuestion) (PodAnswer, error) { questions = append(questions, q); return want, nil },
	}
	var good, bad asked
	provision(t, f, ProvisioningInput{Cluster: "c"}, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() {
			env.SignalWorkflow(SignalCapacityRefused, CapacityRefused{Refused: []cloud.OfferingKey{key}})
		}, time.Minute)
		env.RegisterDelayedCallback(func() {
			env.UpdateWorkflow(UpdateWhyPod, "good", &good, PodQuestion{Namespace: "shop", Name: "web-0"})
			env.UpdateWorkflow(UpdateWhyPod, "bad", &bad, PodQuestion{Name: "web-0"})
		}, 2*time.Minute)
	})
	if good.rejected != nil || good.failed != nil {
		t.Fatalf("the question was not answered: %v, %v", good.rejected, good.failed)
	}
	if diff := cmp.Diff(want, good.answer); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if len(questions) != 1 || len(questions[0].Unavailable) != 1 || questions[0].Unavailable[0].OfferingKey != key {
		t.Errorf("the activity is told of offerings that were refused: %+v", questions)
	}
	if bad.rejected == nil {
		t.Error("a question without namespace is to be refused")
	}
	if plans > 2 {
		t.Errorf("a question makes no plan; there were %d", plans)
	}
}
