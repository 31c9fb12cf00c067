package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/worker"
	"github.com/tenon-sh/tenon/workflows"
)

// fakeRuns answers an order, and lets its replacements end as a test says.
type fakeRuns struct {
	begun  workflows.ReplacementOrderResult
	fails  error
	await  func(ctx context.Context, id string) (workflows.ReplacementResult, error)
	orders []workflows.ReplacementOrderInput
}

func (f *fakeRuns) Order(_ context.Context, in workflows.ReplacementOrderInput) (workflows.ReplacementOrderResult, error) {
	f.orders = append(f.orders, in)
	return f.begun, f.fails
}

func (f *fakeRuns) Await(ctx context.Context, id string) (workflows.ReplacementResult, error) {
	return f.await(ctx, id)
}

// replacedNode is an old node, its claim, and what was launched for it.
func replacedNode() []kube.Object {
	young := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "young", Annotations: map[string]string{karpv1.ReplacementAnnotationKey: "o1-0"}}}
	young.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeLaunched, Status: metav1.ConditionTrue})
	return []kube.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "old"}}, young}
}

func TestReplaceCommand(t *testing.T) {
	t.Parallel()
	begun := func(launches ...string) workflows.ReplacementOrderResult {
		return workflows.ReplacementOrderResult{Replacements: []workflows.OrderedReplacement{{ID: "o1-0", Moves: 2, Launches: launches,
			Nodes: []workflows.RemovedNode{{Node: "n", NodePool: "web", Claim: workflows.ClaimRef{Name: "old"}}}}}}
	}
	objects := func(cause, message string) []workflows.OrderObjection {
		return []workflows.OrderObjection{{Node: "n", Cause: cause, Message: message}}
	}
	for name, test := range map[string]struct {
		reason string
		begun  workflows.ReplacementOrderResult
		order  error
		wait   bool
		ended  workflows.ReplacementResult
		// goes says that the old node is gone by the time the replacement ends.
		goes  bool
		says  []string
		fails string
	}{
		"Begun": {reason: "what is launched first, and the workflow, are named", begun: begun("spot m6i.large"), says: []string{"spot m6i.large", "c/replacement/o1-0", "web"}},
		"Fits":  {reason: "without a launch the command says why", begun: begun(), says: []string{"nothing: its pods fit on other nodes"}},
		"Kept": {reason: "a node that cannot be replaced is an error", begun: workflows.ReplacementOrderResult{Kept: objects("Leaving", "it is already being removed")},
			fails: "node n stays: it is already being removed"},
		"Despite": {reason: "what a person overrides is said", begun: workflows.ReplacementOrderResult{Replacements: begun("spot m6i.large").Replacements, Despite: objects("Budget", "budgets allow none")},
			says: []string{"note: node n: budgets allow none; the order goes on all the same"}},
		"Waits": {reason: "what the drain respects is said", begun: workflows.ReplacementOrderResult{Replacements: begun("spot m6i.large").Replacements, Despite: objects("PDB", "budget web allows none")},
			says: []string{"budget web allows none; its drain waits for that"}},
		"Refused": {reason: "an order that nobody carries out fails", order: errors.New("no worker of cluster c"), fails: "no worker of cluster c"},
		"Waited": {reason: "whoever waits sees how far it is until all is gone", begun: begun("spot m6i.large"), wait: true, goes: true, ended: workflows.ReplacementResult{Retired: []string{"old"}},
			says: []string{"n: young is launched, and has not joined yet", "node n and NodeClaim old are gone"}},
		"TakenBack": {reason: "a replacement that is taken back fails, and says why", begun: begun("spot m6i.large"), wait: true, ended: workflows.ReplacementResult{Undone: "replacements did not serve in time: young"},
			fails: "replacement o1-0 was taken back, and n stays: replacements did not serve in time: young"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			direct := fake.NewClientBuilder().WithScheme(worker.Scheme()).WithObjects(replacedNode()...).Build()
			var out, progress bytes.Buffer
			said := make(chan struct{})
			c := &replaceCommand{kube: direct, out: &out, progress: &told{&progress, said}, every: time.Millisecond,
				drain: func(context.Context, string) (workflows.DrainStatus, error) {
					return workflows.DrainStatus{}, errors.New("no drain yet")
				}}
			c.runs = &fakeRuns{begun: test.begun, fails: test.order, await: func(ctx context.Context, _ string) (workflows.ReplacementResult, error) {
				<-said // the progress was shown at least once
				if test.goes {
					for _, object := range replacedNode()[:2] {
						if err := direct.Delete(ctx, object); err != nil {
							return workflows.ReplacementResult{}, err
						}
					}
				}
				return test.ended, nil
			}}
			err := c.replace(t.Context(), workflows.ReplacementOrderInput{Cluster: "c", Nodes: []string{"n"}}, test.wait)
			if (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Fatalf("%s: error %v, want %q", test.reason, err, test.fails)
			}
			for _, text := range test.says {
				if !strings.Contains(out.String()+progress.String(), text) {
					t.Errorf("%s: it does not say %q:\n%s%s", test.reason, text, out.String(), progress.String())
				}
			}
		})
	}
}

// told closes a channel when something is written for the first time.
type told struct {
	*bytes.Buffer
	first chan struct{}
}

func (w *told) Write(p []byte) (int, error) {
	if w.Len() == 0 {
		close(w.first)
	}
	return w.Buffer.Write(p)
}

func TestReplaceCommandForPrograms(t *testing.T) {
	t.Parallel()
	begun := workflows.ReplacementOrderResult{Replacements: []workflows.OrderedReplacement{{Nodes: []workflows.RemovedNode{{Node: "n"}}, Launches: []string{"spot m6i.large"}}}}
	var out bytes.Buffer
	c := &replaceCommand{runs: &fakeRuns{begun: begun}, out: &out, progress: &bytes.Buffer{}, json: true}
	if err := c.replace(t.Context(), workflows.ReplacementOrderInput{Cluster: "c", Nodes: []string{"n"}, DryRun: true}, false); err != nil {
		t.Fatal(err)
	}
	var got replacedNodes
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(begun, got.ReplacementOrderResult); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
