package workflows

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
)

// TestPausedEndings takes nodes through the end of their lives while a person has paused what ends them.
func TestPausedEndings(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	paused := func(until time.Duration) Ending {
		return Ending{Postponed: true, Again: start.Add(until), Why: "interruption is paused"}
	}
	gone := Ending{Deleting: true}
	type told struct {
		after  time.Duration
		ending Ending
	}
	for _, row := range []struct {
		why  string
		told []told
		// answers are DeleteClaim's, in order; asked is when it is called, and pausable what its life lets it postpone.
		answers  []Ending
		asked    []time.Duration
		pausable []bool
		reason   string
	}{
		{why: "an interrupted node goes when the pause is over", told: []told{{time.Minute, Ending{Reason: ReasonSpotInterrupted}}}, answers: []Ending{paused(time.Hour), gone},
			asked: []time.Duration{time.Minute, time.Hour}, pausable: []bool{true, true}, reason: ReasonSpotInterrupted},
		{why: "a pause that is prolonged is asked about again", told: []told{{time.Minute, Ending{Reason: ReasonSpotInterrupted}}}, answers: []Ending{paused(time.Hour), paused(2 * time.Hour), gone},
			asked: []time.Duration{time.Minute, time.Hour, 2 * time.Hour}, pausable: []bool{true, true, true}, reason: ReasonSpotInterrupted},
		{why: "a person who deletes the claim does not wait", told: []told{{time.Minute, Ending{Reason: ReasonSpotInterrupted}}, {2 * time.Minute, Ending{Reason: ReasonClaimDeleted, Deleting: true}}},
			answers: []Ending{paused(time.Hour)}, asked: []time.Duration{time.Minute}, pausable: []bool{true}, reason: ReasonSpotInterrupted},
		{why: "what is gone is cleared away", told: []told{{time.Minute, Ending{Reason: ReasonSpotInterrupted}}, {2 * time.Minute, Ending{Reason: ReasonInstanceGone, Lost: true}}},
			answers: []Ending{paused(time.Hour), gone}, asked: []time.Duration{time.Minute, 2 * time.Minute}, pausable: []bool{true, false}, reason: ReasonSpotInterrupted},
		{why: "an unhealthy node serves on, and goes when it is told again", told: []told{{time.Minute, Ending{Reason: ReasonUnhealthy}}, {3 * time.Hour, Ending{Reason: ReasonUnhealthy}}},
			answers: []Ending{paused(time.Hour), gone}, asked: []time.Duration{time.Minute, 3 * time.Hour}, pausable: []bool{true, true}, reason: ReasonUnhealthy},
		{why: "one that has recovered since ends for whatever comes next", told: []told{{time.Minute, Ending{Reason: ReasonUnhealthy}}, {3 * time.Hour, Ending{Reason: "Drifted", Deleting: true}}},
			answers: []Ending{paused(time.Hour)}, asked: []time.Duration{time.Minute}, pausable: []bool{true}, reason: "Drifted"},
	} {
		t.Run(row.why, func(t *testing.T) {
			t.Parallel()
			var asked []time.Duration
			var pausable []bool
			var env *testsuite.TestWorkflowEnvironment
			answers := row.answers
			env = environment(t, &fakes{
				join: func(context.Context, JoinInput) (JoinResult, error) {
					return JoinResult{Node: "n", NodeUID: "u", Initialized: true}, nil
				},
				end: func(TerminateInput) {},
				delete: func(in DeleteClaimInput) Ending {
					asked, pausable = append(asked, env.Now().Sub(start)), append(pausable, in.Pausable)
					answer := answers[0]
					answers = answers[1:]
					return answer
				},
			})
			env.SetStartTime(start)
			env.OnWorkflow(DrainType, anything, anything).Return(func(workflow.Context, DrainInput) (DrainResult, error) {
				return DrainResult{Outcome: Drained}, nil
			})
			for _, told := range row.told {
				env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalEnding, told.ending) }, told.after)
			}
			env.ExecuteWorkflow(NodeClaimType, NodeClaimInput{Cluster: "c", Claim: ClaimRef{"a", "1"}, Instance: instance("i-1"), DrainTells: true})
			if err := env.GetWorkflowError(); err != nil {
				t.Fatal(err)
			}
			var result NodeClaimResult
			if err := env.GetWorkflowResult(&result); err != nil {
				t.Fatal(err)
			}
			if result.Reason != row.reason {
				t.Errorf("it ends for %s, want %s", result.Reason, row.reason)
			}
			if diff := cmp.Diff(row.asked, asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(row.pausable, pausable); diff != "" {
				t.Errorf("may be postponed (-want +got):\n%s", diff)
			}
		})
	}
}
