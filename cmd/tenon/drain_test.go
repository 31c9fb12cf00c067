package main

import (
	"bytes"
	"context"
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

func TestParseDeadline(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		reason, value string
		want          time.Time
		fails         string
	}{
		"Duration":     {reason: "a duration counts from now", value: "90m", want: now.Add(90 * time.Minute)},
		"Time":         {reason: "a point in time is taken as it is", value: "2026-03-01T14:00:00+01:00", want: now.Add(time.Hour)},
		"Past":         {reason: "a deadline that is past is a mistake", value: "2026-03-01T11:59:00Z", fails: "must be in the future"},
		"NoTimeLeft":   {reason: "no duration is a mistake too", value: "0s", fails: "must be in the future"},
		"Incomplete":   {reason: "the error shows how it is written", value: "14:00", fails: "2026-03-01T12:00:00Z"},
		"NoUnit":       {reason: "a number alone is ambiguous", value: "30", fails: "a duration such as 30m"},
		"NegativeTime": {reason: "nobody means this", value: "-5m", fails: "must be in the future"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseDeadline(test.value, now)
			if (err != nil) != (test.fails != "") || (err != nil && !strings.Contains(err.Error(), test.fails)) {
				t.Fatalf("%s: error %v, want %q", test.reason, err, test.fails)
			}
			if !got.Equal(test.want) {
				t.Errorf("%s: got %s, want %s", test.reason, got, test.want)
			}
		})
	}
}

func TestDescribeDrain(t *testing.T) {
	t.Parallel()
	node := func(name, providerID string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-" + "1", Labels: map[string]string{karpv1.NodePoolLabelKey: "pool"}}, Spec: corev1.NodeSpec{ProviderID: providerID}}
	}
	claim := func(name, node, providerID string) *karpv1.NodeClaim {
		return &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "claim-uid"}, Status: karpv1.NodeClaimStatus{NodeName: node, ProviderID: providerID}}
	}
	ending := claim("ending", "n", "")
	ending.Finalizers = []string{"karpenter.sh/termination"}
	ending.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	for name, test := range map[string]struct {
		reason  string
		objects []kube.Object
		flags   drainFlags
		want    workflows.DrainInput
		fails   string
	}{
		"Missing":  {reason: "a wrong name is said to be one", fails: "there is no node n"},
		"Foreign":  {reason: "a node without a claim is only drained", objects: []kube.Object{node("n", "aws:///x/i-1"), claim("other", "m", "aws:///x/i-2")}, want: workflows.DrainInput{}},
		"ByName":   {reason: "a claim is found by its node's name", objects: []kube.Object{node("n", ""), claim("c", "n", "")}, want: workflows.DrainInput{Claim: "c", ClaimUID: "claim-uid", Delete: true}},
		"ByID":     {reason: "a claim whose status has no node yet is found by its instance", objects: []kube.Object{node("n", "aws:///x/i-1"), claim("c", "", "aws:///x/i-1")}, want: workflows.DrainInput{Claim: "c", ClaimUID: "claim-uid", Delete: true}},
		"Keep":     {reason: "--keep leaves the claim alone", objects: []kube.Object{node("n", ""), claim("c", "n", "")}, flags: drainFlags{keep: true, note: "why"}, want: workflows.DrainInput{Claim: "c", ClaimUID: "claim-uid", Note: "why"}},
		"Ending":   {reason: "a claim that ends has its own drain, to which the command attaches", objects: []kube.Object{node("n", ""), ending}, fails: errLeaving.Error()},
		"Kept":     {reason: "nobody can keep a node that goes", objects: []kube.Object{node("n", ""), ending}, flags: drainFlags{keep: true}, fails: "--keep: NodeClaim ending is being deleted"},
		"Deadline": {reason: "a wrong deadline is refused before anything is done", objects: []kube.Object{node("n", "")}, flags: drainFlags{deadline: "soon"}, fails: `deadline "soon"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &drains{cluster: "east", kube: fake.NewClientBuilder().WithScheme(worker.Scheme()).WithObjects(test.objects...).Build()}
			got, err := d.describe(context.Background(), "n", test.flags)
			if (err != nil) != (test.fails != "") || (err != nil && !strings.Contains(err.Error(), test.fails)) {
				t.Fatalf("%s: error %v, want %q", test.reason, err, test.fails)
			}
			if err != nil {
				return
			}
			test.want.Cluster, test.want.Node, test.want.NodeUID, test.want.NodePool, test.want.Reason = "east", "n", "uid-1", "pool", workflows.ReasonManualDrain
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

func TestPrintDrain(t *testing.T) {
	t.Parallel()
	status := workflows.DrainStatus{Node: "n", Claim: "c", Phase: workflows.PhaseBlocked, Reason: workflows.ReasonManualDrain, Evicted: 3, Left: 2,
		Blockers: []workflows.Blocker{{Pod: "team/web-0", Cause: "PodDisruptionBudget", By: "web", Message: "PodDisruptionBudget web needs 2 healthy pods and has 2"}}}
	var text, encoded bytes.Buffer
	if err := (&drains{out: &text}).print(status); err != nil {
		t.Fatal(err)
	}
	want := `Node:       n
NodeClaim:  c
Phase:      Blocked
Reason:     ManualDrain
Deadline:   none
Evicted:    3
Left:       2
Blocked:    team/web-0 PodDisruptionBudget web needs 2 healthy pods and has 2
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if err := (&drains{out: &encoded, json: true}).print(status); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(encoded.String(), `"by": "web"`) {
		t.Errorf("JSON: %s", encoded.String())
	}
}

func TestConcludeDrain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason string
		result workflows.DrainResult
		fails  string
	}{
		"Drained":  {reason: "only this is success", result: workflows.DrainResult{Outcome: workflows.Drained}},
		"Deadline": {reason: "what was left is named", result: workflows.DrainResult{Outcome: workflows.DeadlineReached, Blockers: []workflows.Blocker{{Pod: "a/b", Message: "is terminating"}}}, fails: "a/b is terminating"},
		"Gone":     {reason: "a node that vanished was not drained", result: workflows.DrainResult{Outcome: workflows.NodeGone}, fails: "no longer exists"},
		"Canceled": {reason: "somebody took it back", result: workflows.DrainResult{Outcome: workflows.DrainCanceled}, fails: "canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := (&drains{progress: &bytes.Buffer{}}).conclude(test.result, "n")
			if (err != nil) != (test.fails != "") || (err != nil && !strings.Contains(err.Error(), test.fails)) {
				t.Errorf("%s: error %v, want %q", test.reason, err, test.fails)
			}
		})
	}
}
