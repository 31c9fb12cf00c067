package workflows

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/activity"
)

var hookBlocks = Blocker{Cause: "Hook", By: "dump", Message: "answers 503"}

// TestHooksBeforeADrain drains nodes whose NodePool has hooks: which activities run, in their order, and how the drain ends.
func TestHooksBeforeADrain(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	over := HookResult{Finished: true, Done: []string{"dump"}}
	blocked := HookResult{Blockers: []Blocker{hookBlocks}, Digest: "d", Again: start.Add(time.Minute)}
	for name, test := range map[string]struct {
		reason string
		// hooks are the results of the activity Hooks, in their order; the last one is repeated.
		hooks   []HookResult
		arrange func(*drainLab)
		in      func(*DrainInput)
		want    []string
		outcome DrainOutcome
		phases  []string
	}{
		"None":     {reason: "a drain without hooks is one activity", want: []string{"evict"}, outcome: Drained},
		"Succeeds": {reason: "hooks run after the cordon and before the first eviction", hooks: []HookResult{over}, want: []string{"cordon", "hooks", "evict"}, outcome: Drained},
		"Blocked": {reason: "a hook that fails is tried again, and the drain says so", hooks: []HookResult{blocked, over}, want: []string{"cordon", "hooks", "hooks", "evict"}, outcome: Drained,
			phases: []string{PhaseBlocked, PhaseDraining}},
		"Forced": {reason: "a forced drain waits for no hook", hooks: []HookResult{blocked}, arrange: func(lab *drainLab) { lab.order(30*time.Second, UpdateForce, DrainOrder{}) },
			want: []string{"cordon", "hooks", "evict"}, outcome: Drained, phases: []string{PhaseBlocked}},
		"Deadline": {reason: "the deadline ends the wait for a hook", hooks: []HookResult{blocked, over}, in: func(in *DrainInput) { in.Deadline = start.Add(40 * time.Second) },
			want: []string{"cordon", "hooks", "hooks", "evict"}, outcome: Drained, phases: []string{PhaseBlocked, PhaseDraining}},
		"Canceled": {reason: "a drain may be taken back meanwhile", hooks: []HookResult{blocked}, arrange: func(lab *drainLab) { lab.order(30*time.Second, UpdateCancel, DrainOrder{}) },
			want: []string{"cordon", "hooks"}, outcome: DrainCanceled, phases: []string{PhaseBlocked}},
		"Foreign": {reason: "a node without a NodeClaim has no NodePool's hooks", hooks: []HookResult{over}, in: func(in *DrainInput) { in.Claim, in.Delete = "", false }, want: []string{"evict"}, outcome: Drained},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lab := newDrainLab(t)
			lab.SetStartTime(start)
			var ran []string
			lab.evict = func(_ context.Context, _ int, in EvictInput) (EvictResult, error) {
				if in.HooksOf != "" && !in.Force && len(test.hooks) > 0 {
					ran = append(ran, "cordon")
					return EvictResult{HooksDue: true}, nil
				}
				ran = append(ran, "evict")
				return EvictResult{Done: true}, nil
			}
			runs := 0
			lab.RegisterActivityWithOptions(func(_ context.Context, in HookInput) (HookResult, error) {
				if in.When != BeforeDrain || in.Node != "n" || in.NodePool != "pool" || in.Claim != "claim" {
					t.Errorf("the hooks are told %+v", in)
				}
				ran = append(ran, "hooks")
				runs++
				return test.hooks[min(runs, len(test.hooks))-1], nil
			}, activity.RegisterOptions{Name: HooksActivity.Name})
			if test.arrange != nil {
				test.arrange(lab)
			}
			in := manualDrain()
			if test.in != nil {
				test.in(&in)
			}
			got := lab.run(in)
			if got.Outcome != test.outcome {
				t.Errorf("%s: the outcome is %s, want %s", test.reason, got.Outcome, test.outcome)
			}
			if diff := cmp.Diff(test.want, ran); diff != "" {
				t.Errorf("%s: activities (-want +got):\n%s", test.reason, diff)
			}
			if diff := cmp.Diff(test.phases, lab.phases); diff != "" {
				t.Errorf("%s: phases (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

// TestHooksAfterANodeHasComeUp takes nodes through the beginning of their lives, in a NodePool with hooks.
func TestHooksAfterANodeHasComeUp(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason string
		due    bool
		result HookResult
		// hangs has the hooks run until they are cancelled.
		hangs  bool
		runs   int
		ending string
	}{
		"None":      {reason: "nothing runs without hooks", ending: ReasonEmpty},
		"Succeeds":  {reason: "a node whose hooks have run serves on", due: true, result: HookResult{Finished: true}, runs: 1, ending: ReasonEmpty},
		"Fails":     {reason: "a node is removed whose hook had to succeed", due: true, result: HookResult{Failed: "register"}, runs: 1, ending: ReasonHookFailed},
		"GoesAside": {reason: "a node that has to go does not wait for its hooks", due: true, hangs: true, runs: 1, ending: ReasonEmpty},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			env := environment(t, &fakes{
				join: func(context.Context, JoinInput) (JoinResult, error) {
					return JoinResult{Node: "n", NodeUID: "u", Initialized: true, HooksDue: test.due}, nil
				},
				end:    func(TerminateInput) {},
				delete: func(in DeleteClaimInput) Ending { return Ending{Reason: in.Reason, Deleting: true} },
				hooks: func(in HookInput) (HookResult, error) {
					runs++
					if in.When != AfterReady || in.Node != "n" || in.NodePool != "pool" || in.Claim != "claim" {
						t.Errorf("the hooks are told %+v", in)
					}
					if test.hangs {
						return HookResult{}, activity.ErrResultPending
					}
					return test.result, nil
				},
			})
			env.OnWorkflow(DrainType, anything, anything).Return(DrainResult{Outcome: Drained}, nil)
			env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalEnding, Ending{Reason: ReasonEmpty}) }, time.Hour)
			env.ExecuteWorkflow(NodeClaimType, NodeClaimInput{Cluster: "c", Claim: ClaimRef{Name: "claim"}, NodePool: "pool", Instance: instance("i-1"), DrainTells: true})
			var result NodeClaimResult
			if err := env.GetWorkflowResult(&result); err != nil || result.Reason != test.ending || runs != test.runs {
				t.Errorf("%s: %+v after %d runs of the hooks, %v; want %s after %d", test.reason, result, runs, err, test.ending, test.runs)
			}
		})
	}
}
