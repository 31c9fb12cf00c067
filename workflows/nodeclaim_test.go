package workflows

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

const anything = mock.Anything

// life runs a NodeClaim workflow whose node joins at once, and returns its result with what was done to the world.
type life struct {
	deleted    []string
	drains     []DrainInput
	terminated []TerminateInput
	result     NodeClaimResult
}

func live(t *testing.T, joined JoinResult, arrange func(*testsuite.TestWorkflowEnvironment), drain func(workflow.Context, DrainInput) (DrainResult, error)) life {
	t.Helper()
	var l life
	f := &fakes{
		join: func(context.Context, JoinInput) (JoinResult, error) { return joined, nil },
		end:  func(in TerminateInput) { l.terminated = append(l.terminated, in) },
		delete: func(in DeleteClaimInput) Ending {
			l.deleted = append(l.deleted, in.Reason)
			return Ending{Deleting: true}
		},
	}
	env := environment(t, f)
	env.OnWorkflow(DrainType, anything, anything).Return(func(ctx workflow.Context, in DrainInput) (DrainResult, error) {
		l.drains = append(l.drains, in)
		if drain != nil {
			return drain(ctx, in)
		}
		return DrainResult{Outcome: Drained}, nil
	})
	arrange(env)
	env.ExecuteWorkflow(NodeClaimType, NodeClaimInput{Cluster: "c", Claim: ClaimRef{"a", "1"}, NodePool: "p", Instance: instance("i-1")})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatalf("workflow failed: %v", err)
	}
	if err := env.GetWorkflowResult(&l.result); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestNodeClaim(t *testing.T) {
	t.Parallel()
	node := JoinResult{Node: "n", NodeUID: "u", Initialized: true}
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	deadline := start.Add(2 * time.Hour)
	expiring := node
	expiring.ExpireAt = start.Add(time.Hour)
	signal := func(after time.Duration, endings ...Ending) func(*testsuite.TestWorkflowEnvironment) {
		return func(env *testsuite.TestWorkflowEnvironment) {
			env.SetStartTime(start)
			env.RegisterDelayedCallback(func() {
				for _, ending := range endings {
					env.SignalWorkflow(SignalEnding, ending)
				}
			}, after)
		}
	}
	tests := map[string]struct {
		reason  string
		joined  JoinResult
		arrange func(*testsuite.TestWorkflowEnvironment)
		want    NodeClaimResult
		deleted []string
		drains  int
	}{
		"deleted while serving": {
			reason: "the object is being deleted already, so only its node is drained and terminated", joined: node,
			arrange: signal(time.Minute, Ending{Reason: ReasonClaimDeleted, Deleting: true, Deadline: deadline}),
			want:    NodeClaimResult{Reason: ReasonClaimDeleted, Node: "n", Drain: Drained}, drains: 1,
		},
		"expired": {
			reason: "a durable timer ends the life, and the claim is deleted by the workflow", joined: expiring, arrange: signal(3 * time.Hour),
			want: NodeClaimResult{Reason: ReasonExpired, Node: "n", Drain: Drained}, deleted: []string{ReasonExpired}, drains: 1,
		},
		"node deleted": {
			reason: "whoever deletes the Node means the claim", joined: node, arrange: signal(time.Minute, Ending{Reason: ReasonNodeDeleted}),
			want: NodeClaimResult{Reason: ReasonNodeDeleted, Node: "n", Drain: Drained}, deleted: []string{ReasonNodeDeleted}, drains: 1,
		},
		"first reason counts": {
			reason: "one removal has one reason, whatever follows", joined: node,
			arrange: signal(time.Minute, Ending{Reason: ReasonEmpty, Deleting: true}, Ending{Reason: ReasonClaimDeleted, Deleting: true}),
			want:    NodeClaimResult{Reason: ReasonEmpty, Node: "n", Drain: Drained}, drains: 1,
		},
		"never registered": {
			reason: "there is no node to drain", joined: JoinResult{Failed: ReasonRegistrationTimeout}, arrange: signal(24 * time.Hour),
			want: NodeClaimResult{Reason: ReasonRegistrationTimeout}, deleted: []string{ReasonRegistrationTimeout},
		},
		"instance gone": {
			reason: "pods of a dead machine cannot be evicted, so nothing waits for them", joined: node,
			arrange: signal(time.Minute, Ending{Reason: ReasonInstanceGone, Lost: true}),
			want:    NodeClaimResult{Reason: ReasonInstanceGone, Node: "n"}, deleted: []string{ReasonInstanceGone},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := live(t, test.joined, test.arrange, nil)
			if diff := cmp.Diff(test.want, got.result); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
			if diff := cmp.Diff(test.deleted, got.deleted); diff != "" {
				t.Errorf("%s: deleted (-want +got):\n%s", test.reason, diff)
			}
			if len(got.drains) != test.drains || len(got.terminated) != 1 || got.terminated[0].Instance != "i-1" {
				t.Errorf("%s: %d drains, want %d; terminated %+v", test.reason, len(got.drains), test.drains, got.terminated)
			}
		})
	}
}

// upsertWitness records the phase and the reason of every upsert of search attributes.
type upsertWitness struct {
	interceptor.WorkerInterceptorBase
	interceptor.WorkflowInboundInterceptorBase
	interceptor.WorkflowOutboundInterceptorBase
	told []string
}

func (w *upsertWitness) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	w.WorkflowInboundInterceptorBase.Next = next
	return w
}

func (w *upsertWitness) Init(outbound interceptor.WorkflowOutboundInterceptor) error {
	w.WorkflowOutboundInterceptorBase.Next = outbound
	return w.WorkflowInboundInterceptorBase.Init(w)
}

func (w *upsertWitness) UpsertTypedSearchAttributes(_ workflow.Context, attributes ...temporal.SearchAttributeUpdate) error {
	phase, _ := temporal.NewSearchAttributes(attributes...).GetKeyword(AttrPhase)
	reason, _ := temporal.NewSearchAttributes(attributes...).GetKeyword(AttrReason)
	w.told = append(w.told, strings.TrimSpace(phase+" "+reason))
	return nil
}

// TestNodeClaimLeavesItToTheDrainToTell checks what each search attribute upsert of a life says.
func TestNodeClaimLeavesItToTheDrainToTell(t *testing.T) {
	t.Parallel()
	node := JoinResult{Node: "n", NodeUID: "u", Initialized: true}
	tests := map[string]struct {
		reason     string
		joined     JoinResult
		ending     Ending
		drainTells bool
		want       []string
	}{
		"drained": {reason: "the Drain shows phase and reason", joined: node, ending: Ending{Reason: ReasonEmpty, Deleting: true},
			drainTells: true, want: []string{PhaseServing}},
		"lost": {reason: "there is no Drain to show them", joined: node,
			ending: Ending{Reason: ReasonInstanceGone, Deleting: true, Lost: true}, drainTells: true,
			want: []string{PhaseServing, PhaseTerminating + " " + ReasonInstanceGone}},
		"never there": {reason: "there is no Drain to show them", joined: JoinResult{Failed: ReasonRegistrationTimeout}, ending: Ending{},
			drainTells: true, want: []string{PhaseTerminating + " " + ReasonRegistrationTimeout}},
		"an older run": {reason: "its history has the upsert", joined: node, ending: Ending{Reason: ReasonEmpty, Deleting: true},
			drainTells: false, want: []string{PhaseServing, PhaseDraining + " " + ReasonEmpty}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := environment(t, &fakes{
				join:   func(context.Context, JoinInput) (JoinResult, error) { return test.joined, nil },
				end:    func(TerminateInput) {},
				delete: func(DeleteClaimInput) Ending { return Ending{Deleting: true} },
			})
			env.OnWorkflow(DrainType, anything, anything).Return(DrainResult{Outcome: Drained}, nil)
			witness := &upsertWitness{}
			env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{witness}})
			env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalEnding, test.ending) }, time.Minute)
			env.ExecuteWorkflow(NodeClaimType, NodeClaimInput{Cluster: "c", Claim: ClaimRef{"a", "1"}, Instance: instance("i-1"), DrainTells: test.drainTells})
			if err := env.GetWorkflowError(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, witness.told); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

func TestNodeClaimPassesTheDeadlineOn(t *testing.T) {
	t.Parallel()
	deadline := time.Date(2026, 1, 2, 5, 0, 0, 0, time.UTC)
	got := live(t, JoinResult{Node: "n", NodeUID: "u", Initialized: true}, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() {
			env.SignalWorkflow(SignalEnding, Ending{Reason: ReasonClaimDeleted, Deleting: true, Deadline: deadline})
		}, time.Minute)
	}, nil)
	if !got.drains[0].Deadline.Equal(deadline) {
		t.Errorf("drain has deadline %s, want the claim's %s", got.drains[0].Deadline, deadline)
	}
}

// TestNodeClaimIgnoresAnEndWithoutAReason sends a signal such as a person might send by hand, before the claim is deleted.
func TestNodeClaimIgnoresAnEndWithoutAReason(t *testing.T) {
	t.Parallel()
	soon := time.Date(2026, 1, 2, 5, 0, 0, 0, time.UTC)
	got := live(t, JoinResult{Node: "n", NodeUID: "u", Initialized: true}, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalEnding, Ending{Lost: true, Deleting: true, Deadline: soon}) }, time.Minute)
		env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalEnding, Ending{Reason: ReasonExpired}) }, time.Hour)
	}, nil)
	if want := []string{ReasonExpired}; !slices.Equal(got.deleted, want) || len(got.drains) != 1 || !got.drains[0].Deadline.IsZero() || got.terminated[0].Lost {
		t.Errorf("deleted for %v, drains %+v, terminated %+v; want one for %v without a deadline, of an instance that is not lost", got.deleted, got.drains, got.terminated, want)
	}
}

func TestNodeClaimStopsADrainWhoseInstanceIsGone(t *testing.T) {
	t.Parallel()
	got := live(t, JoinResult{Node: "n", NodeUID: "u", Initialized: true}, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalEnding, Ending{Reason: ReasonClaimDeleted, Deleting: true}) }, time.Minute)
		env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalEnding, Ending{Reason: ReasonInstanceGone, Lost: true}) }, time.Hour)
	}, func(ctx workflow.Context, _ DrainInput) (DrainResult, error) {
		_ = workflow.Sleep(ctx, 100*time.Hour)
		return DrainResult{Outcome: DrainCanceled}, nil
	})
	if want := (NodeClaimResult{Reason: ReasonClaimDeleted, Node: "n", Drain: NodeGone}); got.result != want {
		t.Errorf("result %+v, want %+v", got.result, want)
	}
}

// A signal says that the instance is gone, but EC2 says that it runs.
func TestNodeClaimDrainsWhatIsNotLost(t *testing.T) {
	t.Parallel()
	got := live(t, JoinResult{Node: "n", NodeUID: "u", Initialized: true}, func(env *testsuite.TestWorkflowEnvironment) {
		lost := func(want bool) any { return mock.MatchedBy(func(in TerminateInput) bool { return in.Lost == want }) }
		env.OnActivity(TerminateActivity.Name, anything, lost(true)).Return(struct{}{}, temporal.NewNonRetryableApplicationError("it runs", FailureNotLost, nil)).Once()
		env.OnActivity(TerminateActivity.Name, anything, lost(false)).Return(struct{}{}, nil).Once()
		env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalEnding, Ending{Reason: ReasonInstanceGone, Lost: true}) }, time.Minute)
	}, nil)
	if want := (NodeClaimResult{Reason: ReasonInstanceGone, Node: "n", Drain: Drained}); got.result != want || len(got.drains) != 1 {
		t.Errorf("result %+v after %d drains, want %+v: pods that run are evicted", got.result, len(got.drains), want)
	}
}

// Pods have been bound to the node between the end of its drain and that of its machine.
func TestNodeClaimDrainsWhatIsNoLongerDrained(t *testing.T) {
	t.Parallel()
	deadline := time.Date(2126, 1, 2, 3, 4, 5, 0, time.UTC)
	got := live(t, JoinResult{Node: "n", NodeUID: "u", Initialized: true}, func(env *testsuite.TestWorkflowEnvironment) {
		again := mock.MatchedBy(func(in TerminateInput) bool { return in.DrainsAgain && in.Outcome == Drained })
		env.OnActivity(TerminateActivity.Name, anything, again).Return(struct{}{}, temporal.NewNonRetryableApplicationError("pods have come", FailureNotDrained, nil)).Once()
		env.OnActivity(TerminateActivity.Name, anything, again).Return(struct{}{}, nil).Once()
		env.RegisterDelayedCallback(func() {
			env.SignalWorkflow(SignalEnding, Ending{Reason: ReasonClaimDeleted, Deleting: true, Deadline: deadline})
		}, time.Minute)
	}, nil)
	if want := (NodeClaimResult{Reason: ReasonClaimDeleted, Node: "n", Drain: Drained}); got.result != want || len(got.drains) != 2 || !got.drains[1].Deadline.Equal(deadline) {
		t.Errorf("result %+v after the drains %+v, want %+v after two, both by the claim's deadline", got.result, got.drains, want)
	}
}

// A claim that is being deleted cannot stay, however its drain ended.
func TestNodeClaimDrainsAgain(t *testing.T) {
	t.Parallel()
	for reason, first := range map[string]func() (DrainResult, error){
		"a person took the drain back":                      func() (DrainResult, error) { return DrainResult{Outcome: DrainCanceled}, nil },
		"a person pressed Terminate of Temporal's UI on it": func() (DrainResult, error) { return DrainResult{}, &temporal.TerminatedError{} },
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			tries := 0
			got := live(t, JoinResult{Node: "n", NodeUID: "u", Initialized: true}, func(env *testsuite.TestWorkflowEnvironment) {
				env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalEnding, Ending{Reason: ReasonClaimDeleted, Deleting: true}) }, time.Minute)
			}, func(workflow.Context, DrainInput) (DrainResult, error) {
				if tries++; tries == 1 {
					return first()
				}
				return DrainResult{Outcome: Drained}, nil
			})
			if want := (NodeClaimResult{Reason: ReasonClaimDeleted, Node: "n", Drain: Drained}); got.result != want || len(got.drains) != 2 {
				t.Errorf("%d drains, result %+v, want two and %+v", len(got.drains), got.result, want)
			}
		})
	}
}

func TestNodeClaimDrainsANodeItWasNotToldOf(t *testing.T) {
	t.Parallel()
	var drained []DrainInput
	joins, terminated := 0, 0
	f := &fakes{
		join: func(ctx context.Context, _ JoinInput) (JoinResult, error) {
			if joins++; joins == 1 {
				return JoinResult{}, activity.ErrResultPending
			}
			return JoinResult{Failed: ReasonClaimDeleted, Node: "n", NodeUID: "u"}, nil
		},
		end: func(TerminateInput) { terminated++ },
	}
	env := environment(t, f)
	env.OnWorkflow(DrainType, anything, anything).Return(func(_ workflow.Context, in DrainInput) (DrainResult, error) {
		drained = append(drained, in)
		return DrainResult{Outcome: Drained}, nil
	})
	env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalEnding, Ending{Reason: ReasonClaimDeleted, Deleting: true}) }, time.Second)
	env.ExecuteWorkflow(NodeClaimType, NodeClaimInput{Cluster: "c", Claim: ClaimRef{"a", "1"}, Instance: instance("i-1")})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if len(drained) != 1 || drained[0].Node != "n" || drained[0].NodeUID != "u" || terminated != 1 {
		t.Errorf("a claim that ends while its Node is joining: drained %+v, %d terminated", drained, terminated)
	}
}
