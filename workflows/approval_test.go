package workflows

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/testsuite"
)

// toApprove is an approval about one node that waits for three days.
var toApprove = ApprovalInput{Cluster: "c", Expires: int64(72 * time.Hour / time.Second), Proposal: Proposal{ID: "a1", Reason: "Drifted", For: "x", Does: "remove a, after launching spot m6i.large",
	Moves: 3, SavesPerHour: 0.25, Nodes: []RemovedNode{{Node: "node-a", NodeUID: "uid-a", NodePool: "p", Claim: ClaimRef{"a", "claim-a"}}}}}

// decision sends people's decisions at a time after the start, and notes the answers.
func decision(env *testsuite.TestWorkflowEnvironment, after time.Duration, note func(string), decisions ...ApprovalDecision) {
	send := func(decision ApprovalDecision) {
		env.UpdateWorkflow(UpdateDecide, fmt.Sprint(after, decision.By), &testsuite.TestUpdateCallback{
			OnReject: func(err error) { note("refused: " + err.Error()) },
			OnAccept: func() {},
			OnComplete: func(answer any, err error) {
				if err != nil {
					note("failed: " + err.Error())
					return
				}
				note(answer.(ApprovalResult).Outcome)
			},
		}, decision)
	}
	env.RegisterDelayedCallback(func() {
		for _, decision := range decisions {
			send(decision)
		}
	}, after)
}

func TestApproval(t *testing.T) {
	t.Parallel()
	yes, no := ApprovalDecision{Approve: true, By: "alice", Note: "fine"}, ApprovalDecision{By: "bob", Note: "not now", For: 3600}
	for name, test := range map[string]struct {
		reason string
		during func(env *testsuite.TestWorkflowEnvironment, note func(string))
		// gone and moved are what AskApproval and SettleApproval find outdated.
		gone, moved string
		want        ApprovalResult
		// told is when people are told, and settled what is written down, and until when.
		told    []string
		settled string
		said    []string
		cancels bool
	}{
		"Approved": {reason: "a person approves", during: func(env *testsuite.TestWorkflowEnvironment, note func(string)) {
			decision(env, 30*time.Minute, note, yes)
		},
			want: ApprovalResult{ApprovalApproved, "alice", "fine"}, told: []string{"0s"}, settled: "Approved until 72h30m0s", said: []string{"Approved"}},
		"Rejected": {reason: "a person rejects for an hour", during: func(env *testsuite.TestWorkflowEnvironment, note func(string)) {
			decision(env, 30*time.Minute, note, no)
		},
			want: ApprovalResult{ApprovalRejected, "bob", "not now"}, told: []string{"0s"}, settled: "Rejected until 1h30m0s", said: []string{"Rejected"}},
		"Expired": {reason: "nobody decides: people are reminded, at last every day", want: ApprovalResult{Outcome: ApprovalExpired}, told: []string{"0s", "1h0m0s", "6h0m0s", "24h0m0s", "48h0m0s"}, settled: "Expired until never"},
		"Outdated": {reason: "what was approved no longer holds", moved: "it runs pod web", during: func(env *testsuite.TestWorkflowEnvironment, note func(string)) { decision(env, 2*time.Hour, note, yes) },
			want: ApprovalResult{ApprovalOutdated, "alice", "it runs pod web"}, told: []string{"0s", "1h0m0s"}, settled: "Approved until 74h0m0s", said: []string{"Outdated"}},
		"Gone": {reason: "the node is gone before people are asked", gone: "NodeClaim a is gone", want: ApprovalResult{Outcome: ApprovalOutdated, Why: "NodeClaim a is gone"}, told: []string{"0s"}, settled: "Outdated until never"},
		"Withdrawn": {reason: "the decision no longer holds while people are asked", during: func(env *testsuite.TestWorkflowEnvironment, _ func(string)) {
			env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalWithdraw, "it has not drifted") }, time.Minute)
		}, want: ApprovalResult{Outcome: ApprovalOutdated, Why: "it has not drifted"}, told: []string{"0s"}, settled: "Outdated until never"},
		"SignalApproves": {reason: "a signal sent by hand has no author", during: func(env *testsuite.TestWorkflowEnvironment, _ func(string)) {
			env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalApprove, map[string]string{"note": "ok"}) }, time.Minute)
		}, want: ApprovalResult{ApprovalApproved, nobodyKnown, "ok"}, told: []string{"0s"}, settled: "Approved until 72h1m0s"},
		"SignalRejects": {reason: "it may carry a text only", during: func(env *testsuite.TestWorkflowEnvironment, _ func(string)) {
			env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalReject, "no") }, time.Minute)
		}, want: ApprovalResult{ApprovalRejected, nobodyKnown, "no"}, told: []string{"0s"}, settled: "Rejected until 24h1m0s"},
		"SignalEmpty": {reason: "or nothing", during: func(env *testsuite.TestWorkflowEnvironment, _ func(string)) {
			env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalApprove, nil) }, time.Minute)
		}, want: ApprovalResult{Outcome: ApprovalApproved, By: nobodyKnown}, told: []string{"0s"}, settled: "Approved until 72h1m0s"},
		"Both": {reason: "a rejection counts before an approval that arrives with it", during: func(env *testsuite.TestWorkflowEnvironment, _ func(string)) {
			env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalApprove, nil); env.SignalWorkflow(SignalReject, nil) }, 0)
		}, want: ApprovalResult{Outcome: ApprovalRejected, By: nobodyKnown}, told: []string{"0s"}, settled: "Rejected until 24h0m0s"},
		"Twice": {reason: "the first of two people decides", during: func(env *testsuite.TestWorkflowEnvironment, note func(string)) {
			decision(env, time.Minute, note, yes, no)
		}, want: ApprovalResult{ApprovalApproved, "alice", "fine"}, told: []string{"0s"}, settled: "Approved until 72h1m0s", said: []string{"refused: it is approved already", "Approved"}},
		"Negative": {reason: "a mistake is refused", during: func(env *testsuite.TestWorkflowEnvironment, note func(string)) {
			decision(env, time.Minute, note, ApprovalDecision{For: -1})
			decision(env, 2*time.Minute, note, yes)
		}, want: ApprovalResult{ApprovalApproved, "alice", "fine"}, told: []string{"0s"}, settled: "Approved until 72h2m0s", said: []string{"refused: for: must not be negative", "Approved"}},
		"Cancelled": {reason: "whoever cancels the workflow does not want it", cancels: true, during: func(env *testsuite.TestWorkflowEnvironment, _ func(string)) {
			env.RegisterDelayedCallback(env.CancelWorkflow, time.Minute)
		}, told: []string{"0s"}, settled: "Rejected until 24h1m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var env *testsuite.TestWorkflowEnvironment
			var began time.Time
			var told, said []string
			settled := ""
			f := &fakes{
				ask: func(in AskApprovalInput) ApprovalChecked {
					told = append(told, env.Now().Sub(began).String())
					if in.Reminder != len(told)-1 || !in.Since.Equal(began) || in.Until.Sub(in.Since) != 72*time.Hour {
						t.Errorf("%s: people are told %+v", test.reason, in)
					}
					return ApprovalChecked{test.gone}
				},
				settle: func(in SettleApprovalInput) ApprovalChecked {
					until := "never"
					if !in.Until.IsZero() {
						until = in.Until.Sub(began).String()
					}
					settled += in.Outcome + " until " + until
					if test.moved == "" && in.Outcome == ApprovalOutdated {
						return ApprovalChecked{in.Why}
					}
					return ApprovalChecked{test.moved}
				},
			}
			env = environment(t, f)
			began = env.Now()
			if test.during != nil {
				test.during(env, func(word string) { said = append(said, word) })
			}
			env.ExecuteWorkflow(ApprovalType, toApprove)
			if err := env.GetWorkflowError(); (err != nil) != test.cancels || !env.IsWorkflowCompleted() {
				t.Fatalf("%s: it ended %t, with %v", test.reason, env.IsWorkflowCompleted(), err)
			}
			var got ApprovalResult
			if !test.cancels {
				if err := env.GetWorkflowResult(&got); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
			if !slices.Equal(told, test.told) || settled != test.settled || !slices.Equal(said, test.said) {
				t.Errorf("%s: people are told after %v, written is %q, answered %v", test.reason, told, settled, said)
			}
		})
	}
}
