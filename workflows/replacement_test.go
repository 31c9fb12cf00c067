package workflows

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// decided returns a decision that replaces nodes by this number of claims.
func decided(id string, claims int, nodes ...string) ReplacementCommand {
	replace := ReplacementCommand{ID: id, Reason: "Drifted", Moves: 3, SavesPerHour: 0.25, Why: "it has drifted"}
	for _, node := range nodes {
		replace.Nodes = append(replace.Nodes, RemovedNode{Node: "node-" + node, NodeUID: "uid-" + node, NodePool: "p", Claim: ClaimRef{node, "claim-" + node}})
	}
	for range claims {
		replace.Claims = append(replace.Claims, PlannedClaim{NodePool: "p", CapacityType: "spot", InstanceTypes: []string{"m6i.large"}})
	}
	return replace
}

// acted records what a replacement does, step by step.
type acted struct{ steps []string }

func (a *acted) note(step string) { a.steps = append(a.steps, step) }

// carriedOut returns activities with which a replacement succeeds.
func carriedOut(a *acted) *fakes {
	return &fakes{
		begin: func(in ReplacementCommand) (BeginResult, error) {
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

// letGo sets Retire's answer, and records whether the replacements were kept closed.
func letGo(answer RetireResult) func(*fakes, *acted) {
	return func(f *fakes, a *acted) {
		f.let = func(in RetireInput) RetireResult {
			a.note(fmt.Sprintf("retire %d closed %t", len(in.Nodes), in.KeepTainted))
			if len(in.Nodes) == 0 {
				return RetireResult{}
			}
			return answer
		}
	}
}

// carry runs a Replacement and returns what it told Disruption at the end.
func carry(t *testing.T, f *fakes, a *acted, in ReplacementCommand, launch LaunchOutcome, during func(*testsuite.TestWorkflowEnvironment)) (ended Ended, result ReplacementResult, env *testsuite.TestWorkflowEnvironment) {
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
	env.ExecuteWorkflow(ReplacementType, ReplacementInput{Cluster: "c", ReplacementCommand: in})
	_ = env.GetWorkflowResult(&result)
	return ended, result, env
}

func TestReplacement(t *testing.T) {
	t.Parallel()
	spot := cloud.OfferingKey{InstanceType: "m6i.large", Zone: "us-east-1a", CapacityType: "spot"}
	waiting := decided("r1", 1, "a")
	waiting.WaitForReady = true
	late := decided("r1", 1, "a", "b")
	late.Independent, late.SmallPodsOnly = true, true
	apart := decided("r1", 0, "a", "b")
	apart.Independent = true
	tests := map[string]struct {
		reason string
		in     ReplacementCommand
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
				f.begin = func(ReplacementCommand) (BeginResult, error) {
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

// TestReplaceSurvivesHistory checks that a decision is carried out as it was made: the whole claim passes through a history
// as JSON.
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
	var decoded ReplacementCommand
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(replace, decoded); diff != "" {
		t.Errorf("(-made +carried out):\n%s", diff)
	}
}
