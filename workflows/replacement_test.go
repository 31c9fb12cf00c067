package workflows

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// decided is a decision over nodes that replaces them by so many claims.
func decided(id string, claims int, nodes ...string) Replace {
	replace := Replace{ID: id, Reason: "Drifted", Moves: 3, SavesPerHour: 0.25, Why: "it has drifted"}
	for _, node := range nodes {
		replace.Nodes = append(replace.Nodes, RemovedNode{Node: "node-" + node, NodeUID: "uid-" + node, NodePool: "p", Claim: ClaimRef{node, "claim-" + node}})
	}
	for range claims {
		replace.Claims = append(replace.Claims, PlannedClaim{NodePool: "p", CapacityType: "spot", InstanceTypes: []string{"m6i.large"}})
	}
	return replace
}

// acted notes what a replacement does, step by step.
type acted struct{ steps []string }

func (a *acted) note(step string) { a.steps = append(a.steps, step) }

// carriedOut are activities with which a replacement goes well.
func carriedOut(a *acted) *fakes {
	return &fakes{
		begin: func(in Replace) (BeginResult, error) {
			a.note("begin")
			result := BeginResult{SeenVersion: "7"}
			if len(in.Claims) > 0 {
				result.Groups = []LaunchGroup{{Group: in.ID + "-0", NodePool: "p", Claims: []ClaimRef{{"new", "uid-new"}}}}
			}
			return result, nil
		},
		await: func(context.Context, AwaitReplacementsInput) (Awaited, error) { a.note("await"); return Awaited{}, nil },
		let: func(in RetireInput) RetireResult {
			a.note("retire")
			var result RetireResult
			for _, node := range in.Nodes {
				result.Retired = append(result.Retired, node.Claim.Name)
			}
			if in.Owners {
				result.Owners = []PodOwner{{"default", "ReplicaSet", "web", 3}}
			}
			return result
		},
		moved: func(AwaitMovedInput) MovedPods { a.note("moved"); return MovedPods{} },
		undo: func(in UndoInput) Undone {
			a.note("undo: " + in.Why)
			return Undone{Nodes: []string{"node-a"}, Claims: []string{"new"}}
		},
	}
}

// letGo answers the look at the nodes, and notes whether what was launched was closed at it.
func letGo(answer RetireResult) func(*fakes, *acted) {
	return func(f *fakes, a *acted) {
		f.let = func(in RetireInput) RetireResult {
			a.note(fmt.Sprintf("retire %d closed %t", len(in.Nodes), in.Closed))
			if len(in.Nodes) == 0 {
				return RetireResult{}
			}
			return answer
		}
	}
}

// carry runs a Replacement and returns what it told Disruption in the end.
func carry(t *testing.T, f *fakes, a *acted, in Replace, launch LaunchOutcome, during func(*testsuite.TestWorkflowEnvironment)) (ended Ended, result ReplacementResult, env *testsuite.TestWorkflowEnvironment) {
	t.Helper()
	env = environment(t, f)
	env.OnWorkflow(LaunchType, anything, anything).Return(func(_ workflow.Context, in LaunchInput) (LaunchOutcome, error) {
		a.note("launch " + in.Group)
		return launch, nil
	})
	env.OnSignalExternalWorkflow(anything, "c/disruption", anything, anything, anything).Return(func(_, _, _, signal string, fact any) error {
		a.note(signal)
		if told, ok := fact.(Ended); ok {
			ended = told
		}
		return nil
	})
	if during != nil {
		during(env)
	}
	env.ExecuteWorkflow(ReplacementType, ReplacementInput{Cluster: "c", Replace: in})
	_ = env.GetWorkflowResult(&result)
	return ended, result, env
}

func TestReplacement(t *testing.T) {
	t.Parallel()
	spot := cloud.OfferingKey{InstanceType: "m6i.large", Zone: "us-east-1a", CapacityType: "spot"}
	waiting := decided("r1", 1, "a")
	waiting.WaitForReady = true
	late := decided("r1", 1, "a", "b")
	late.Apart, late.Late = true, true
	apart := decided("r1", 0, "a", "b")
	apart.Apart = true
	tests := map[string]struct {
		reason string
		in     Replace
		launch LaunchOutcome
		change func(*fakes, *acted)
		steps  []string
		ended  Ended
		result ReplacementResult
	}{
		"replaced": {
			reason: "the nodes go once what replaces them serves and has served for a while",
			in:     decided("r1", 1, "a", "b"), launch: LaunchOutcome{Launched: 1},
			steps:  []string{"begin", SignalReplacementBegun, "launch r1-0", "await", "retire", SignalReplacementEnded},
			ended:  Ended{ID: "r1"},
			result: ReplacementResult{Retired: []string{"a", "b"}, Launched: []string{"new"}},
		},
		"nothing to launch": {
			reason: "pods that fit elsewhere need no launch, and the nodes are looked at once more all the same",
			in:     decided("r1", 0, "a"),
			steps:  []string{"begin", SignalReplacementBegun, "retire", SignalReplacementEnded},
			ended:  Ended{ID: "r1"}, result: ReplacementResult{Retired: []string{"a"}},
		},
		"apart": {
			reason: "what keeps one node keeps no other, and those that went are not asked about again",
			in:     apart,
			change: func(f *fakes, a *acted) {
				f.let = func(in RetireInput) RetireResult {
					a.note(fmt.Sprintf("retire %d", len(in.Nodes)))
					if len(in.Nodes) == 1 {
						return RetireResult{Retired: []string{in.Nodes[0].Claim.Name}}
					}
					return RetireResult{Retired: []string{"a"}, Left: in.Nodes[1:], Blocked: []string{"b: a budget"}}
				}
			},
			steps: []string{"begin", SignalReplacementBegun, "retire 2", "retire 1", SignalReplacementEnded},
			ended: Ended{ID: "r1"}, result: ReplacementResult{Retired: []string{"a", "b"}},
		},
		"late": {
			reason: "what was launched for small pods is opened when the large ones have found room, and not before",
			in:     late, launch: LaunchOutcome{Launched: 1},
			change: letGo(RetireResult{Retired: []string{"a", "b"}}),
			steps:  []string{"begin", SignalReplacementBegun, "launch r1-0", "await", "retire 2 closed true", "retire 0 closed false", SignalReplacementEnded},
			ended:  Ended{ID: "r1"},
			result: ReplacementResult{Retired: []string{"a", "b"}, Launched: []string{"new"}},
		},
		"late for nobody": {
			reason: "what was launched for nodes that others have ended is opened all the same",
			in:     late, launch: LaunchOutcome{Launched: 1},
			change: letGo(RetireResult{Gone: []string{"a", "b"}}),
			steps:  []string{"begin", SignalReplacementBegun, "launch r1-0", "await", "retire 2 closed true", "retire 0 closed false", SignalReplacementEnded},
			ended:  Ended{ID: "r1"},
			result: ReplacementResult{Gone: []string{"a", "b"}, Launched: []string{"new"}},
		},
		"waits for pods": {
			reason: "the pool wants moved pods to be Ready before the next node goes",
			in:     waiting, launch: LaunchOutcome{Launched: 1},
			steps: []string{"begin", SignalReplacementBegun, "launch r1-0", "await", "retire", "moved", SignalReplacementEnded},
			ended: Ended{ID: "r1"}, result: ReplacementResult{Retired: []string{"a"}, Launched: []string{"new"}},
		},
		"cannot begin": {
			reason: "what was decided no longer fits, so whatever was begun is taken back",
			in:     decided("r1", 1, "a"),
			change: func(f *fakes, a *acted) {
				f.begin = func(Replace) (BeginResult, error) {
					a.note("begin")
					return BeginResult{}, temporal.NewNonRetryableApplicationError("node-a is gone", FailureChanged, nil)
				}
			},
			steps:  []string{"begin", "undo: it could not begin: node-a is gone", SignalReplacementEnded},
			ended:  Ended{ID: "r1", Undone: "it could not begin: node-a is gone", Changed: true},
			result: ReplacementResult{Undone: "it could not begin: node-a is gone", TakenBack: Undone{Nodes: []string{"node-a"}, Claims: []string{"new"}}},
		},
		"no capacity": {
			reason: "Disruption hears which offerings were refused, so that it decides otherwise",
			in:     decided("r1", 1, "a"), launch: LaunchOutcome{Released: 1, Reason: ReasonInsufficient, Refused: []cloud.OfferingKey{spot}},
			steps:  []string{"begin", SignalReplacementBegun, "launch r1-0", "undo: 1 replacements could not be launched: InsufficientCapacity", SignalReplacementEnded},
			ended:  Ended{ID: "r1", Undone: "1 replacements could not be launched: InsufficientCapacity", Refused: []cloud.OfferingKey{spot}},
			result: ReplacementResult{Launched: []string{"new"}, Undone: "1 replacements could not be launched: InsufficientCapacity", TakenBack: Undone{Nodes: []string{"node-a"}, Claims: []string{"new"}}},
		},
		"lost": {
			reason: "a replacement that is gone will never serve",
			in:     decided("r1", 1, "a"), launch: LaunchOutcome{Launched: 1},
			change: func(f *fakes, a *acted) {
				f.await = func(context.Context, AwaitReplacementsInput) (Awaited, error) {
					return Awaited{Lost: []string{"new"}}, nil
				}
			},
			steps:  []string{"begin", SignalReplacementBegun, "launch r1-0", "undo: replacements are gone: new", SignalReplacementEnded},
			ended:  Ended{ID: "r1", Undone: "replacements are gone: new"},
			result: ReplacementResult{Launched: []string{"new"}, Undone: "replacements are gone: new", TakenBack: Undone{Nodes: []string{"node-a"}, Claims: []string{"new"}}},
		},
		"blocked for a while": {
			reason: "another replacement moves pods of the same budget; this one waits for its turn",
			in:     decided("r1", 1, "a"), launch: LaunchOutcome{Launched: 1},
			change: func(f *fakes, a *acted) {
				free, tries := f.let, 0
				f.let = func(in RetireInput) RetireResult {
					if tries++; tries < 3 {
						return RetireResult{Blocked: []string{"a: budget default/web allows none"}}
					}
					return free(in)
				}
			},
			steps: []string{"begin", SignalReplacementBegun, "launch r1-0", "await", "retire", SignalReplacementEnded},
			ended: Ended{ID: "r1"}, result: ReplacementResult{Retired: []string{"a"}, Launched: []string{"new"}},
		},
		"protected": {
			reason: "a person has asked for the node to stay: nobody waits for that to end",
			in:     decided("r1", 1, "a"), launch: LaunchOutcome{Launched: 1},
			change: func(f *fakes, a *acted) {
				f.let = func(RetireInput) RetireResult {
					return RetireResult{Blocked: []string{"a: it is annotated"}, ForGood: true}
				}
			},
			steps:  []string{"begin", SignalReplacementBegun, "launch r1-0", "await", "undo: a: it is annotated", SignalReplacementEnded},
			ended:  Ended{ID: "r1", Undone: "a: it is annotated"},
			result: ReplacementResult{Launched: []string{"new"}, Undone: "a: it is annotated", TakenBack: Undone{Nodes: []string{"node-a"}, Claims: []string{"new"}}},
		},
		"ended by others": {
			reason: "the nodes were interrupted meanwhile: what was launched for their pods stays",
			in:     decided("r1", 1, "a", "b"), launch: LaunchOutcome{Launched: 1},
			change: func(f *fakes, a *acted) {
				f.let = func(RetireInput) RetireResult { a.note("retire"); return RetireResult{Gone: []string{"a", "b"}} }
			},
			steps: []string{"begin", SignalReplacementBegun, "launch r1-0", "await", "retire", SignalReplacementEnded},
			ended: Ended{ID: "r1"}, result: ReplacementResult{Gone: []string{"a", "b"}, Launched: []string{"new"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var a acted
			f := carriedOut(&a)
			if test.change != nil {
				test.change(f, &a)
			}
			ended, result, env := carry(t, f, &a, test.in, test.launch, nil)
			if err := env.GetWorkflowError(); err != nil {
				t.Fatal(err)
			}
			for what, diff := range map[string]string{"steps": cmp.Diff(test.steps, a.steps), "told": cmp.Diff(test.ended, ended), "result": cmp.Diff(test.result, result)} {
				if diff != "" {
					t.Errorf("%s: %s (-want +got):\n%s", test.reason, what, diff)
				}
			}
		})
	}
}

func TestReplacementIsTakenBackWhenCancelled(t *testing.T) {
	t.Parallel()
	var a acted
	f := carriedOut(&a)
	f.await = func(context.Context, AwaitReplacementsInput) (Awaited, error) {
		return Awaited{}, activity.ErrResultPending
	}
	ended, _, env := carry(t, f, &a, decided("r1", 1, "a"), LaunchOutcome{Launched: 1}, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(env.CancelWorkflow, time.Minute)
	})
	if err := env.GetWorkflowError(); err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("a cancelled workflow ends as such: %v", err)
	}
	if want := []string{"begin", SignalReplacementBegun, "launch r1-0", "undo: it was cancelled", SignalReplacementEnded}; !slices.Equal(a.steps, want) {
		t.Errorf("steps %q, want %q", a.steps, want)
	}
	if ended.Undone != "it was cancelled" {
		t.Errorf("Disruption was told %+v", ended)
	}
}

// TestReplaceSurvivesHistory holds that a decision is carried out as it was made: the whole claim goes through a
// history as JSON.
func TestReplaceSurvivesHistory(t *testing.T) {
	t.Parallel()
	two := 2
	replace := decided("r1", 0, "a")
	replace.Claims = []PlannedClaim{{
		NodePool: "p", NodeClass: "default", CapacityType: "reserved", Reservation: "cr-1", InstanceTypes: []string{"m6i.large", "m5.large"},
		Zones: []string{"us-east-1a"}, Labels: map[string]string{"team": "a"}, Pods: []types.UID{"pod-1"}, PricePerHour: 0.096, Group: "g", MinValuesRelaxed: true,
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")},
		Requirements: []karpv1.NodeSelectorRequirementWithMinValues{{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"m6i.large", "m5.large"}, MinValues: &two},
			{Key: "team", Operator: corev1.NodeSelectorOpExists}},
	}}
	encoded, err := json.Marshal(replace)
	if err != nil {
		t.Fatal(err)
	}
	var decoded Replace
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(replace, decoded); diff != "" {
		t.Errorf("(-made +carried out):\n%s", diff)
	}
}

// TestDisruptionReplaces has Disruption decide for three replacements, of which one is refused capacity and one is
// blocked for good, and follows what the next evaluations are told.
func TestDisruptionReplaces(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var a acted
	var asked []EvaluateInput
	f := carriedOut(&a)
	f.look = func() Evaluation {
		switch len(asked) {
		case 1:
			return Evaluation{Replacements: []Replace{decided("", 1, "a"), decided("", 0, "b"), decided("", 2, "c")}, Again: true, Over: []string{"unheard"}}
		default:
			return Evaluation{}
		}
	}
	f.asked = func(in EvaluateInput) { asked = append(asked, in) }
	versions := map[string]string{"r12345678-1-0": "99", "r12345678-1-1": "101", "r12345678-1-2": "100"}
	f.begin = func(in Replace) (BeginResult, error) {
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
	var next *workflow.ContinueAsNewError
	if err := env.GetWorkflowError(); !errors.As(err, &next) {
		t.Fatalf("Disruption ended: %v", err)
	}
	var carried DisruptionInput
	if err := json.Unmarshal(next.Input.GetPayloads()[0].GetData(), &carried); err != nil {
		t.Fatal(err)
	}
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

// TestDisruptionRemembersWhatBegan has Disruption decide for nodes of two NodePools, of which only one has a rate.
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
				Replacements: []Replace{decided("", 0, "d")}, Again: true}
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
	var next *workflow.ContinueAsNewError
	if err := env.GetWorkflowError(); !errors.As(err, &next) {
		t.Fatalf("Disruption ended: %v", err)
	}
	var carried DisruptionInput
	if err := json.Unmarshal(next.Input.GetPayloads()[0].GetData(), &carried); err != nil {
		t.Fatal(err)
	}
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

// TestDisruptionDecidesAnewWhatWasOvertaken has Disruption decide again and again for a node whose pods are leaving.
func TestDisruptionDecidesAnewWhatWasOvertaken(t *testing.T) {
	t.Parallel()
	f := carriedOut(&acted{})
	var asked []EvaluateInput
	f.asked = func(in EvaluateInput) { asked = append(asked, in) }
	f.look = func() Evaluation {
		if len(asked) > 2 {
			return Evaluation{}
		}
		return Evaluation{Replacements: []Replace{decided("", 0, "a")}}
	}
	f.begin = func(Replace) (BeginResult, error) {
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
	for i := range 2 * mostHeld {
		d.hold(strings.Repeat("x", i), "", now)
	}
	if len(d.Held) != mostHeld {
		t.Errorf("%d nodes are held", len(d.Held))
	}
}
