package workflows

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
)

// TestGracefulExpiry takes nodes past their expiry while their NodePool wants them replaced first.
func TestGracefulExpiry(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	expiry, last := start.Add(time.Hour), start.Add(3*time.Hour)
	postponed, forEver := Ending{Postponed: true, Again: last}, Ending{Postponed: true}
	gone := Ending{Deleting: true, Deadline: last.Add(time.Minute)}
	signal := func(after time.Duration, ending Ending) func(*testsuite.TestWorkflowEnvironment) {
		return func(env *testsuite.TestWorkflowEnvironment) {
			env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalEnding, ending) }, after)
		}
	}
	for _, row := range []struct {
		why     string
		arrange func(*testsuite.TestWorkflowEnvironment)
		// answers are DeleteClaim's answers, in order.
		answers []Ending
		reason  string
		// asked is when DeleteClaim was called, and expires whether for expiry alone.
		asked    []time.Duration
		expires  []bool
		deadline time.Time
	}{
		{why: "the pool says nothing, and the node goes at once", answers: []Ending{gone}, reason: ReasonExpired,
			asked: []time.Duration{time.Hour}, expires: []bool{true}, deadline: gone.Deadline},
		{why: "nobody replaces it, and it goes when its time is up for good", answers: []Ending{postponed, gone}, reason: ReasonExpired,
			asked: []time.Duration{time.Hour, 3 * time.Hour}, expires: []bool{true, true}, deadline: gone.Deadline},
		{why: "it is replaced while it waits", arrange: signal(2*time.Hour, Ending{Reason: "Drifted", Deleting: true}), answers: []Ending{postponed}, reason: "Drifted",
			asked: []time.Duration{time.Hour}, expires: []bool{true}, deadline: time.Time{}},
		{why: "it is replaced after a long time without a limit", arrange: signal(1000*time.Hour, Ending{Reason: ReasonExpired, Deleting: true}), answers: []Ending{forEver}, reason: ReasonExpired,
			asked: []time.Duration{time.Hour}, expires: []bool{true}, deadline: time.Time{}},
		{why: "the annotation goes while it waits, which the starter tells", arrange: signal(90*time.Minute, Ending{Reason: ReasonExpired}), answers: []Ending{postponed, gone}, reason: ReasonExpired,
			asked: []time.Duration{time.Hour, 90 * time.Minute}, expires: []bool{true, false}, deadline: gone.Deadline},
		{why: "the grace period proves longer when it is asked for again", answers: []Ending{postponed, {Postponed: true, Again: last.Add(time.Hour)}, gone}, reason: ReasonExpired,
			asked: []time.Duration{time.Hour, 3 * time.Hour, 4 * time.Hour}, expires: []bool{true, true, true}, deadline: gone.Deadline},
		{why: "a clock that is behind is asked again a little later", answers: []Ending{{Postponed: true, Again: expiry.Add(-time.Second)}, gone}, reason: ReasonExpired,
			asked: []time.Duration{time.Hour, time.Hour + askAgain}, expires: []bool{true, true}, deadline: gone.Deadline},
		{why: "something else ends it before it expires", arrange: signal(time.Minute, Ending{Reason: ReasonNodeDeleted}), answers: []Ending{gone}, reason: ReasonNodeDeleted,
			asked: []time.Duration{time.Minute}, expires: []bool{false}, deadline: gone.Deadline},
	} {
		t.Run(row.why, func(t *testing.T) {
			t.Parallel()
			var asked []time.Duration
			var expires []bool
			var drains []DrainInput
			var env *testsuite.TestWorkflowEnvironment
			answers := row.answers
			env = environment(t, &fakes{
				join: func(context.Context, JoinInput) (JoinResult, error) {
					return JoinResult{Node: "n", NodeUID: "u", Initialized: true, ExpireAt: expiry}, nil
				},
				end: func(TerminateInput) {},
				delete: func(in DeleteClaimInput) Ending {
					asked, expires = append(asked, env.Now().Sub(start)), append(expires, in.Expires)
					answer := answers[0]
					answers = answers[1:]
					return answer
				},
			})
			env.SetStartTime(start)
			env.OnWorkflow(DrainType, anything, anything).Return(func(_ workflow.Context, in DrainInput) (DrainResult, error) {
				drains = append(drains, in)
				return DrainResult{Outcome: Drained}, nil
			})
			if row.arrange != nil {
				row.arrange(env)
			}
			env.ExecuteWorkflow(NodeClaimType, NodeClaimInput{Cluster: "c", Claim: ClaimRef{"a", "1"}, Instance: instance("i-1"), DrainTells: true})
			if err := env.GetWorkflowError(); err != nil {
				t.Fatal(err)
			}
			var result NodeClaimResult
			if err := env.GetWorkflowResult(&result); err != nil {
				t.Fatal(err)
			}
			if result.Reason != row.reason || len(drains) != 1 || !drains[0].Deadline.Equal(row.deadline) {
				t.Errorf("it ends for %s with drains %+v, want for %s and by %v", result.Reason, drains, row.reason, row.deadline)
			}
			if diff := cmp.Diff(row.asked, asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(row.expires, expires); diff != "" {
				t.Errorf("asked for expiry alone (-want +got):\n%s", diff)
			}
		})
	}
}
