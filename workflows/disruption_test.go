package workflows

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/tenon-sh/tenon/cloud"
)

// carriedOn returns the state with which Disruption continues as new.
func carriedOn(t *testing.T, env *testsuite.TestWorkflowEnvironment) (state DisruptionInput) {
	t.Helper()
	var next *workflow.ContinueAsNewError
	if err := env.GetWorkflowError(); !errors.As(err, &next) {
		t.Fatalf("Disruption ended: %v", err)
	}
	if err := json.Unmarshal(next.Input.GetPayloads()[0].GetData(), &state); err != nil {
		t.Fatal(err)
	}
	return state
}

// TestDisruptionReplaces makes Disruption decide on three replacements, of which one is refused capacity and one is blocked
// for good, and checks what the next evaluations are told.
func TestDisruptionReplaces(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var a acted
	var asked []EvaluateInput
	f := carriedOut(&a)
	f.look = func() Evaluation {
		switch len(asked) {
		case 1:
			return Evaluation{Replacements: []ReplacementCommand{decided("", 1, "a"), decided("", 0, "b"), decided("", 2, "c")}, Again: true, Over: []string{"unheard"}}
		default:
			return Evaluation{}
		}
	}
	f.asked = func(in EvaluateInput) { asked = append(asked, in) }
	versions := map[string]string{"r12345678-1-0": "99", "r12345678-1-1": "101", "r12345678-1-2": "100"}
	f.begin = func(in ReplacementCommand) (BeginResult, error) {
		result := BeginResult{SeenVersion: versions[in.ID]}
		if len(in.Claims) > 0 {
			result.Groups = []LaunchGroup{{Group: in.ID + "-0", Claims: []ClaimRef{{"new", "uid"}}}}
		}
		return result, nil
	}
	f.let = func(in RetireInput) RetireResult {
		if in.ID == "r12345678-1-1" {
			return RetireResult{Blocked: []string{"a pod came"}, ForGood: true}
		}
		return RetireResult{Retired: []string{"a"}}
	}
	f.undo = func(UndoInput) Undone { return Undone{} }
	env := environment(t, f)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "c/disruption", TaskQueue: "c"})
	spot := cloud.OfferingKey{InstanceType: "m6i.large", Zone: "us-east-1a", CapacityType: "spot"}
	env.OnWorkflow(LaunchType, anything, anything).Return(func(_ workflow.Context, in LaunchInput) (LaunchOutcome, error) {
		mu.Lock()
		defer mu.Unlock()
		if in.Group == "r12345678-1-2-0" {
			return LaunchOutcome{Released: 2, Reason: ReasonInsufficient, Refused: []cloud.OfferingKey{spot}}, nil
		}
		return LaunchOutcome{Launched: 1}, nil
	})
	env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalEvaluate, nil) }, time.Minute)
	env.RegisterDelayedCallback(func() {
		env.SetContinueAsNewSuggested(true)
		env.SignalWorkflow(SignalEvaluate, nil)
	}, 2*time.Minute)
	env.ExecuteWorkflow(DisruptionType, DisruptionInput{Cluster: "c", Pending: true, Series: "12345678-9", Running: []Running{{ID: "unheard", Claims: []string{"z"}}}})
	carried := carriedOn(t, env)
	if len(asked) < 3 {
		t.Fatalf("%d evaluations", len(asked))
	}
	if len(asked[0].Running) != 1 || asked[1].SeenVersion != "101" {
		t.Errorf("the second evaluation follows when all replacements have begun, and has to see what they made: %+v", asked[:2])
	}
	last := asked[len(asked)-1]
	held := map[string]time.Duration{}
	for _, h := range last.Held {
		held[h.Claim] = h.Until.Sub(last.Unavailable[0].Until).Round(10 * time.Second)
	}
	if diff := cmp.Diff(map[string]time.Duration{"b": 10*time.Second + heldFirst - UnavailableFor, "c": -UnavailableFor}, held); diff != "" {
		t.Errorf("the node whose replacement was taken back is left alone for a minute, and the one that got no capacity is not (-want +got):\n%s", diff)
	}
	if len(last.Running) != 0 || len(last.Unavailable) != 1 {
		t.Errorf("an evaluation has to know what was refused, and leave the node alone whose replacement was taken back: %+v", last)
	}
	if len(carried.Running) != 0 || carried.Round != 1 || carried.SeenVersion != "101" || len(carried.Held) != 2 {
		t.Errorf("carried on: %+v", carried)
	}
}

// TestDisruptionRemembersWhatBegan makes Disruption decide on nodes of two NodePools, of which only one has a rate.
func TestDisruptionRemembersWhatBegan(t *testing.T) {
	t.Parallel()
	f := carriedOut(&acted{})
	f.remove = func(removal Removal) RemovalResult { return RemovalResult{Removed: len(removal.Nodes)} }
	var asked []EvaluateInput
	f.asked = func(in EvaluateInput) { asked = append(asked, in) }
	f.look = func() Evaluation {
		switch len(asked) {
		case 1:
			removed := func(pool, name string) RemovedNode {
				return RemovedNode{Node: "node-" + name, NodePool: pool, Claim: ClaimRef{name, "claim-" + name}}
			}
			return Evaluation{Commands: []Removal{{Reason: "Empty", Nodes: []RemovedNode{removed("p", "a"), removed("q", "b"), removed("p", "c")}}},
				Replacements: []ReplacementCommand{decided("", 0, "d")}, Again: true}
		case 2:
			return Evaluation{Disrupted: asked[1].Disrupted[:1]}
		default:
			return Evaluation{Disrupted: asked[len(asked)-1].Disrupted}
		}
	}
	env := environment(t, f)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "c/disruption", TaskQueue: "c"})
	env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalEvaluate, nil) }, time.Minute)
	env.RegisterDelayedCallback(func() {
		env.SetContinueAsNewSuggested(true)
		env.SignalWorkflow(SignalEvaluate, nil)
	}, 2*time.Minute)
	env.ExecuteWorkflow(DisruptionType, DisruptionInput{Cluster: "c", Pending: true, Series: "12345678-9"})
	carried := carriedOn(t, env)
	told := map[string]map[string]int{}
	for name, disrupted := range map[string][]Disrupted{"at first": asked[0].Disrupted, "next": asked[1].Disrupted, "then": asked[2].Disrupted, "carried on": carried.Disrupted} {
		told[name] = map[string]int{}
		for _, d := range disrupted {
			told[name][d.NodePool] += d.Nodes
		}
	}
	p := map[string]int{"p": 3}
	if diff := cmp.Diff(map[string]map[string]int{"at first": {}, "next": {"p": 3, "q": 1}, "then": p, "carried on": p}, told); diff != "" {
		t.Errorf("what an evaluation begins is told to the next one, for as long as that wants (-want +got):\n%s", diff)
	}
}

// TestDisruptionDecidesAnewWhatWasOvertaken makes Disruption decide again and again on a node whose pods are leaving.
func TestDisruptionDecidesAnewWhatWasOvertaken(t *testing.T) {
	t.Parallel()
	f := carriedOut(&acted{})
	var asked []EvaluateInput
	f.asked = func(in EvaluateInput) { asked = append(asked, in) }
	f.look = func() Evaluation {
		if len(asked) > 2 {
			return Evaluation{}
		}
		return Evaluation{Replacements: []ReplacementCommand{decided("", 0, "a")}}
	}
	f.begin = func(ReplacementCommand) (BeginResult, error) {
		return BeginResult{}, temporal.NewNonRetryableApplicationError("its pods are leaving", FailureChanged, nil)
	}
	f.undo = func(UndoInput) Undone { return Undone{} }
	env := environment(t, f)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "c/disruption", TaskQueue: "c"})
	env.RegisterDelayedCallback(func() {
		env.SetContinueAsNewSuggested(true)
		env.SignalWorkflow(SignalEvaluate, nil)
	}, time.Minute)
	env.ExecuteWorkflow(DisruptionType, DisruptionInput{Cluster: "c", Pending: true, Series: "12345678-9"})
	if len(asked) != 3 {
		t.Fatalf("%d evaluations: each that was overtaken is followed by another at once", len(asked))
	}
	var held []time.Duration
	for _, in := range asked[1:] {
		held = append(held, in.Held[0].Until.Sub(env.Now()).Round(10*time.Second)+time.Minute)
	}
	if want := []time.Duration{0, 2 * heldFirst}; !slices.Equal(held, want) {
		t.Errorf("the node is left alone for %v, want %v: the first time it may just be done again", held, want)
	}
}

func TestDisruptionHoldsLongerEachTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	var d disruption
	for i, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute} {
		d.hold("a", strings.Repeat("why ", 200), now)
		if len(d.Held) != 1 || d.Held[0].Until.Sub(now) != want || len(d.Held[0].Why) > 300 {
			t.Errorf("time %d: %+v, want %s", i+1, d.Held, want)
		}
	}
	d.forget(now.Add(15 * time.Minute))
	if len(d.Held) != 1 {
		t.Error("a node that was held a moment ago has to be remembered, or it would start again at a minute")
	}
	d.forget(now.Add(21 * time.Minute))
	for i := range 2 * maxHeld {
		d.hold(strings.Repeat("x", i), "", now)
	}
	if len(d.Held) != maxHeld {
		t.Errorf("%d nodes are held", len(d.Held))
	}
}
