package workflows

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/tenon-sh/tenon/cloud"
)

func TestForcedEndingIsTheDeadlineOfADrainToCome(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var deleted DeleteClaimInput
	var at time.Time
	var env *testsuite.TestWorkflowEnvironment
	env = environment(t, &fakes{
		join: func(context.Context, JoinInput) (JoinResult, error) {
			return JoinResult{Node: "n", NodeUID: "u", Initialized: true}, nil
		},
		end: func(TerminateInput) {},
		delete: func(in DeleteClaimInput) Ending {
			deleted, at = in, env.Now()
			return Ending{Deleting: true, Deadline: in.Deadline}
		},
	})
	var drains []DrainInput
	env.OnWorkflow(DrainType, anything, anything).Return(func(_ workflow.Context, in DrainInput) (DrainResult, error) {
		drains = append(drains, in)
		return DrainResult{Outcome: DeadlineReached}, nil
	})
	env.RegisterDelayedCallback(func() {
		env.SignalWorkflow(SignalEnding, Ending{Reason: ReasonSystemStatusImpaired, Deadline: now, Forced: true})
	}, time.Minute)
	env.ExecuteWorkflow(NodeClaimType, NodeClaimInput{Cluster: "c", Claim: ClaimRef{"a", "1"}, Instance: instance("i-1"), DrainTells: true})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if last := at.Add(lastPass); !deleted.Deadline.Equal(last) || len(drains) != 1 || !drains[0].Deadline.Equal(last) {
		t.Errorf("the claim is deleted with a deadline that leaves a moment to delete its pods, and its drain has it: %+v, %+v", deleted, drains)
	}
}

func TestForcedEndingShortensTheDrainUnderWay(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		forced bool
		told   bool
	}{
		"forced":        {reason: "what is left is deleted a moment later", forced: true, told: true},
		"interruptions": {reason: "a second reason changes nothing for the drain", forced: false, told: false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var told *DrainWaiter
			var at time.Time
			got := live(t, JoinResult{Node: "n", NodeUID: "u", Initialized: true}, func(env *testsuite.TestWorkflowEnvironment) {
				env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalEnding, Ending{Reason: ReasonClaimDeleted, Deleting: true}) }, time.Minute)
				env.RegisterDelayedCallback(func() {
					at = env.Now()
					env.SignalWorkflow(SignalEnding, Ending{Reason: ReasonInstanceStatusImpaired, Deadline: at, Forced: test.forced})
				}, time.Hour)
			}, func(ctx workflow.Context, _ DrainInput) (DrainResult, error) {
				var waiter DrainWaiter
				if ok, _ := workflow.GetSignalChannel(ctx, SignalDrainNotify).ReceiveWithTimeout(ctx, 10*time.Hour, &waiter); ok {
					told = &waiter
				}
				return DrainResult{Outcome: DeadlineReached}, nil
			})
			if (told != nil) != test.told {
				t.Fatalf("%s: the drain was told %+v", test.reason, told)
			}
			if told != nil && (told.Workflow != "" || !told.Deadline.Equal(at.Add(lastPass))) {
				t.Errorf("%s: the drain was told %+v, want only the deadline %s", test.reason, told, at.Add(lastPass))
			}
			if got.result.Reason != ReasonClaimDeleted || len(got.drains) != 1 {
				t.Errorf("one removal has one reason and one drain: %+v, %d drains", got.result, len(got.drains))
			}
		})
	}
}

func TestProvisioningRemembersShunnedOfferingsQuietly(t *testing.T) {
	t.Parallel()
	key := cloud.OfferingKey{InstanceType: "m6i.large", Zone: "us-east-1a", CapacityType: "spot"}
	var plans []PlanInput
	f := &fakes{plan: func(in PlanInput) (PlanResult, error) { plans = append(plans, in); return PlanResult{}, nil }}
	provision(t, f, ProvisioningInput{Cluster: "c"}, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() {
			env.SignalWorkflow(SignalCapacityRefused, CapacityRefused{Refused: []cloud.OfferingKey{key}, Quiet: true})
		}, time.Minute)
		env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalPodsPending, nil) }, 2*time.Minute)
	})
	if len(plans) == 0 || len(plans[0].Unavailable) != 1 || plans[0].Unavailable[0].OfferingKey != key || len(plans) > 2 {
		t.Errorf("an offering that is taken back is no reason to plan, but every plan after it leaves it alone: %+v", plans)
	}
}

func TestDisruptionRemembersShunnedOfferingsQuietly(t *testing.T) {
	t.Parallel()
	key := cloud.OfferingKey{InstanceType: "m6i.large", Zone: "us-east-1a", CapacityType: "spot"}
	var asked [][]Unavailable
	f := &fakes{look: func() Evaluation { return Evaluation{} }, asked: func(in EvaluateInput) { asked = append(asked, slices.Clone(in.Unavailable)) }}
	env := environment(t, f)
	env.RegisterDelayedCallback(func() {
		env.SignalWorkflow(SignalCapacityRefused, CapacityRefused{Refused: []cloud.OfferingKey{key}, Quiet: true})
	}, time.Minute)
	for _, after := range []time.Duration{2 * time.Minute, time.Minute + UnavailableFor} {
		env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalEvaluate, nil) }, after)
	}
	env.RegisterDelayedCallback(env.CancelWorkflow, time.Hour)
	env.ExecuteWorkflow(DisruptionType, DisruptionInput{Cluster: "c"})
	if len(asked) != 2 || len(asked[0]) != 1 || asked[0][0].OfferingKey != key || len(asked[1]) != 0 {
		t.Errorf("an offering that is taken back is no reason to evaluate, but every evaluation leaves it alone for a while: %+v", asked)
	}
}

func TestPlanHasSeenTheClaimThatIsLeaving(t *testing.T) {
	t.Parallel()
	looked := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := map[string]struct {
		reason string
		signal PodsPending
		want   []string
	}{
		"newer": {reason: "the next plan waits for that state", signal: PodsPending{Seen: looked.Add(time.Second), SeenVersion: "9"}, want: []string{"5", "9"}},
		"before": {reason: "another worker may have planned later over an older state",
			signal: PodsPending{Seen: looked.Add(-time.Second), SeenVersion: "9"}, want: []string{"5", "9"}},
		"older": {reason: "what is known is not forgotten", signal: PodsPending{Seen: looked.Add(time.Second), SeenVersion: "4"}, want: []string{"5", "5"}},
		"known": {reason: "the last plan has seen it", signal: PodsPending{Seen: looked.Add(-time.Second), SeenVersion: "5"}, want: []string{"5"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var versions []string
			env := environment(t, &fakes{plan: func(in PlanInput) (PlanResult, error) {
				versions = append(versions, in.SeenVersion)
				return PlanResult{Looked: looked, SeenVersion: in.SeenVersion}, nil
			}})
			env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalPodsPending, PodsPending{Seen: looked}) }, time.Minute)
			env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalPodsPending, test.signal) }, 2*time.Minute)
			env.RegisterDelayedCallback(env.CancelWorkflow, time.Hour)
			env.ExecuteWorkflow(ProvisioningType, ProvisioningInput{Cluster: "c", SeenVersion: "5"})
			if diff := cmp.Diff(test.want, versions); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}
