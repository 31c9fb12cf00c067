package workflows

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/tenon-sh/tenon/cloud"
)

// provision runs Provisioning until it continues as new, and returns the state it passes on.
func provision(t *testing.T, f *fakes, state ProvisioningInput, arrange func(*testsuite.TestWorkflowEnvironment)) ProvisioningInput {
	t.Helper()
	env := environment(t, f)
	arrange(env)
	env.RegisterDelayedCallback(func() {
		env.SetContinueAsNewSuggested(true)
		env.SignalWorkflow(SignalCapacityRefused, CapacityRefused{})
	}, time.Hour)
	env.ExecuteWorkflow(ProvisioningType, state)
	var next *workflow.ContinueAsNewError
	if err := env.GetWorkflowError(); !errors.As(err, &next) {
		t.Fatalf("want continue-as-new, got %v", err)
	}
	var carried ProvisioningInput
	if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &carried); err != nil {
		t.Fatal(err)
	}
	return carried
}

func TestProvisioningPlansABurstOnce(t *testing.T) {
	t.Parallel()
	var plans []PlanInput
	f := &fakes{plan: func(in PlanInput) (PlanResult, error) {
		plans = append(plans, in)
		return PlanResult{SeenVersion: "42", Again: len(plans) == 1}, nil
	}}
	carried := provision(t, f, ProvisioningInput{Cluster: "c"}, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() {
			for range 5 {
				env.SignalWorkflow(SignalPodsPending, nil)
			}
		}, time.Minute)
	})
	if len(plans) != 2 || plans[0].Plan == plans[1].Plan || plans[1].SeenVersion != "42" {
		t.Errorf("five signals are one plan, and a plan that asks for another gets it, with a new id and what was seen: %+v", plans)
	}
	if carried.Round != 2 || carried.SeenVersion != "42" {
		t.Errorf("state carried on: %+v", carried)
	}
}

func TestProvisioningPlansNothingThatAPlanHasSeen(t *testing.T) {
	t.Parallel()
	looked := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := map[string]struct {
		reason  string
		signals []any
		plans   int
	}{
		"the rest of the burst": {reason: "the plan waited for it",
			signals: []any{PodsPending{Seen: looked.Add(-time.Second)}, PodsPending{Seen: looked.Add(-time.Millisecond)}}, plans: 1},
		"another burst": {reason: "no plan has looked at those pods",
			signals: []any{PodsPending{Seen: looked.Add(-time.Second)}, PodsPending{Seen: looked.Add(time.Second)}}, plans: 2},
		"a clock that was ahead": {reason: "the worker that planned had its clock stepped back since",
			signals: []any{PodsPending{Seen: looked.Add(-8 * time.Minute)}}, plans: 2},
		"the very moment":   {reason: "better once too often", signals: []any{PodsPending{Seen: looked}}, plans: 2},
		"nobody knows when": {reason: "workers of an earlier version say no more than that", signals: []any{nil}, plans: 2},
		"refused capacity": {reason: "its pods were given back by a launch after the plan",
			signals: []any{PodsPending{Seen: looked.Add(-time.Second)}, CapacityRefused{}}, plans: 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plans := 0
			f := &fakes{plan: func(PlanInput) (PlanResult, error) {
				plans++
				return PlanResult{Looked: looked}, nil
			}}
			env := environment(t, f)
			env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalPodsPending, PodsPending{Seen: looked}) }, time.Minute)
			env.RegisterDelayedCallback(func() {
				for _, signal := range test.signals {
					if refused, ok := signal.(CapacityRefused); ok {
						env.SignalWorkflow(SignalCapacityRefused, refused)
						continue
					}
					env.SignalWorkflow(SignalPodsPending, signal)
				}
			}, 2*time.Minute)
			env.RegisterDelayedCallback(env.CancelWorkflow, time.Hour)
			env.ExecuteWorkflow(ProvisioningType, ProvisioningInput{Cluster: "c"})
			if plans != test.plans {
				t.Errorf("%s: %d plans, want %d", test.reason, plans, test.plans)
			}
		})
	}
}

func TestProvisioningShowsWhatWasLaunchedLast(t *testing.T) {
	t.Parallel()
	launch, nothing := PlanResult{Note: "3 claims of m5.large", Groups: []LaunchGroup{{Group: "x-1-0"}}}, PlanResult{Note: "3 for nodes on their way"}
	tests := map[string]struct {
		reason string
		plans  []PlanResult
		show   []string
		hide   []string
	}{
		"at the start": {reason: "there is no plan to tell of", show: []string{"0 plans made"}, hide: []string{"Last plan"}},
		"a launch": {reason: "it is the last plan as well, and told once", plans: []PlanResult{launch},
			show: []string{"**Last plan**", "m5.large"}, hide: []string{"launched something"}},
		"nothing after": {reason: "what was launched is not lost", plans: []PlanResult{launch, nothing, nothing},
			show: []string{nothing.Note, "launched something**, 20", "m5.large"}},
		"nothing yet": {reason: "no launch is made up", plans: []PlanResult{nothing}, show: []string{nothing.Note}, hide: []string{"launched something"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := 0
			f := &fakes{plan: func(PlanInput) (PlanResult, error) {
				made++
				result := test.plans[made-1]
				result.Again = made < len(test.plans)
				return result, nil
			}}
			carried := provision(t, f, ProvisioningInput{Cluster: "c"}, func(env *testsuite.TestWorkflowEnvironment) {
				env.OnWorkflow(LaunchType, anything, anything).Return(LaunchOutcome{}, nil)
				if len(test.plans) > 0 {
					env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalPodsPending, nil) }, time.Minute)
				}
			})
			details := (&provisioning{ProvisioningInput: carried}).details()
			for _, part := range test.show {
				if !strings.Contains(details, part) {
					t.Errorf("%s: %q is not shown in\n%s", test.reason, part, details)
				}
			}
			for _, part := range test.hide {
				if strings.Contains(details, part) {
					t.Errorf("%s: %q is shown in\n%s", test.reason, part, details)
				}
			}
		})
	}
}

func TestProvisioningRemembersRefusedOfferings(t *testing.T) {
	t.Parallel()
	key := cloud.OfferingKey{InstanceType: "m6i.large", Zone: "us-east-1a", CapacityType: "spot"}
	var seen [][]cloud.OfferingKey
	f := &fakes{plan: func(in PlanInput) (PlanResult, error) {
		var keys []cloud.OfferingKey
		for _, u := range in.Unavailable {
			keys = append(keys, u.OfferingKey)
		}
		seen = append(seen, keys)
		return PlanResult{}, nil
	}}
	provision(t, f, ProvisioningInput{Cluster: "c"}, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() {
			env.SignalWorkflow(SignalCapacityRefused, CapacityRefused{Refused: []cloud.OfferingKey{key}})
		}, time.Minute)
		env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalPodsPending, nil) }, time.Minute+UnavailableFor+time.Second)
	})
	if diff := cmp.Diff([][]cloud.OfferingKey{{key}, nil}, seen[:2]); diff != "" {
		t.Errorf("a refusal is planned around at once and forgotten after %s (-want +got):\n%s", UnavailableFor, diff)
	}
}

func TestProvisioningStartsALaunchPerGroup(t *testing.T) {
	t.Parallel()
	groups := []LaunchGroup{{Group: "x-1-0", Claims: []ClaimRef{{"a", "1"}}}, {Group: "x-1-1", Claims: []ClaimRef{{"b", "2"}}}}
	f := &fakes{plan: func(in PlanInput) (PlanResult, error) {
		return PlanResult{Groups: groups}, nil
	}}
	started := map[string]bool{}
	provision(t, f, ProvisioningInput{Cluster: "c"}, func(env *testsuite.TestWorkflowEnvironment) {
		env.OnWorkflow(LaunchType, anything, anything).Return(func(ctx workflow.Context, in LaunchInput) (LaunchOutcome, error) {
			started[workflow.GetInfo(ctx).WorkflowExecution.ID] = true
			return LaunchOutcome{}, nil
		})
		env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalPodsPending, nil) }, time.Minute)
	})
	if diff := cmp.Diff(map[string]bool{"c/launch/x-1-0": true, "c/launch/x-1-1": true}, started); diff != "" {
		t.Errorf("launches (-want +got):\n%s", diff)
	}
}

func TestDisruptionLooksAgainWhenDue(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var looks []time.Time
	var removed []Removal
	f := &fakes{}
	env := environment(t, f)
	env.SetStartTime(start)
	removal := Removal{Reason: ReasonEmpty, Nodes: []RemovedNode{{Node: "n", Claim: ClaimRef{"a", "1"}}}}
	f.look = func() Evaluation {
		looks = append(looks, env.Now())
		if len(looks) == 1 {
			return Evaluation{NextLook: start.Add(10 * time.Minute)}
		}
		return Evaluation{Commands: []Removal{removal}}
	}
	f.remove = func(r Removal) RemovalResult { removed = append(removed, r); return RemovalResult{Removed: 1} }
	env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalEvaluate, nil) }, time.Minute)
	env.RegisterDelayedCallback(func() {
		env.SetContinueAsNewSuggested(true)
		env.SignalWorkflow(SignalEvaluate, nil)
	}, time.Hour)
	env.ExecuteWorkflow(DisruptionType, DisruptionInput{Cluster: "c"})
	if len(looks) != 2 || !looks[1].Equal(start.Add(10*time.Minute)) {
		t.Errorf("looks at %v: want one after the change and one when the first said so", looks)
	}
	if diff := cmp.Diff([]Removal{removal}, removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	var next *workflow.ContinueAsNewError
	if err := env.GetWorkflowError(); !errors.As(err, &next) {
		t.Errorf("want continue-as-new, got %v", err)
	}
}

// TestProvisioningRemembersGrowth passes on what a plan knows of pods that get nodes in vain, to the next plan and to
// questions.
func TestProvisioningRemembersGrowth(t *testing.T) {
	t.Parallel()
	looked := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	stubborn := []Grown{{Pod: "uid-a", Nodes: 2, Until: looked.Add(5 * time.Minute), Seconds: 300, At: 2, Basis: "b"}}
	var plans []PlanInput
	f := &fakes{plan: func(in PlanInput) (PlanResult, error) {
		plans = append(plans, in)
		switch len(plans) {
		case 1:
			return PlanResult{Looked: looked, Grown: stubborn, Again: true}, nil
		case 2:
			return PlanResult{Again: true}, nil // it continued another one that had stopped, and has not looked
		}
		return PlanResult{Looked: looked, Grown: plans[2].Grown}, nil
	}}
	carried := provision(t, f, ProvisioningInput{Cluster: "c"}, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalPodsPending, nil) }, time.Minute)
	})
	if len(plans) != 3 || len(plans[0].Grown) > 0 {
		t.Fatalf("plans: %+v", plans)
	}
	for _, got := range [][]Grown{plans[1].Grown, plans[2].Grown, carried.Grown} {
		if diff := cmp.Diff(stubborn, got); diff != "" {
			t.Errorf("what is remembered (-want +got):\n%s", diff)
		}
	}
}

func TestNewerVersion(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]struct{ a, b, want string }{
		"versions count up":              {a: "99", b: "100", want: "100"},
		"whatever order they come in":    {a: "100", b: "99", want: "100"},
		"the first that is known":        {a: "", b: "7", want: "7"},
		"none is no news":                {a: "7", b: "", want: "7"},
		"what is no version is not news": {a: "7", b: "yesterday", want: "7"},
		"nor where nothing is known yet": {a: "", b: "yesterday", want: ""},
		"a version replaces what is not": {a: "yesterday", b: "7", want: "7"},
	} {
		if got := NewerVersion(test.a, test.b); got != test.want {
			t.Errorf("%s: the newer of %q and %q is %q, want %q", reason, test.a, test.b, got, test.want)
		}
	}
}

// TestProvisioningForgetsAnotherClustersVersions makes a plan find that the version seen belongs to a cluster that had this
// one's name before, or to this one before a backup was restored.
func TestProvisioningForgetsAnotherClustersVersions(t *testing.T) {
	t.Parallel()
	for reason, created := range map[string]string{"the plan creates nothing": "", "the plan creates claims": "7"} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			var plans []PlanInput
			f := &fakes{plan: func(in PlanInput) (PlanResult, error) {
				plans = append(plans, in)
				return PlanResult{SeenVersion: created, ClusterUID: "new", Anew: true}, nil
			}}
			carried := provision(t, f, ProvisioningInput{Cluster: "c", ClusterUID: "old", SeenVersion: "4200"}, func(env *testsuite.TestWorkflowEnvironment) {
				env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalPodsPending, nil) }, time.Minute)
			})
			if len(plans) != 1 || plans[0].SeenVersion != "4200" || plans[0].ClusterUID != "old" {
				t.Errorf("the plan was told %+v", plans)
			}
			if carried.SeenVersion != created || carried.ClusterUID != "new" {
				t.Errorf("the next plan would wait for version %q of cluster %q", carried.SeenVersion, carried.ClusterUID)
			}
		})
	}
}
