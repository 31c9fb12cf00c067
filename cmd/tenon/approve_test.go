package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/worker"
	"github.com/tenon-sh/tenon/workflows"
)

// deciding is a Temporal server on which Approvals wait, each with the answer that it will give.
type deciding struct {
	answers map[string]any
	told    []string
}

func (d *deciding) UpdateWorkflow(_ context.Context, options client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	decided := options.Args[0].(workflows.ApprovalDecision)
	d.told = append(d.told, fmt.Sprintf("%s %s %t by %s for %d: %s", options.WorkflowID, options.UpdateName, decided.Approve, decided.By, decided.For, decided.Note))
	switch answer := d.answers[options.WorkflowID].(type) {
	case nil:
		return nil, serviceerror.NewNotFound("no workflow")
	case error:
		return nil, answer
	case workflows.ApprovalResult:
		return answered{result: answer}, nil
	}
	return nil, fmt.Errorf("no answer")
}

// answered is the answer to an update.
type answered struct {
	client.WorkflowUpdateHandle
	result workflows.ApprovalResult
}

func (a answered) Get(_ context.Context, into any) error {
	*into.(*workflows.ApprovalResult) = a.result
	return nil
}

var approvalNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// approvalClaim is a claim of a pool about which people are asked, or have decided.
func approvalClaim(name, pool string, approvals ...karpv1.Approval) *karpv1.NodeClaim {
	for i := range approvals {
		a := &approvals[i]
		a.Reason, a.Does, a.SavesPerHour, a.Since, a.Until = "Drifted", "remove "+name, 0.25, approvalNow.Add(-time.Hour), approvalNow.Add(time.Hour)
		if a.Claims == nil {
			a.Claims = []string{name}
		}
	}
	return &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{karpv1.NodePoolLabelKey: pool}, Annotations: map[string]string{karpv1.ApprovalsAnnotationKey: karpv1.FormatApprovals(approvals)}},
		Status: karpv1.NodeClaimStatus{NodeName: "node-" + name}}
}

// approvalCluster has three approvals that wait, one of them about two nodes, and one that is decided.
func approvalCluster(answers map[string]any) (*approveCommand, *deciding) {
	waits := func(id string, claims ...string) karpv1.Approval {
		return karpv1.Approval{ID: id, State: karpv1.ApprovalWaiting, Claims: claims}
	}
	direct := fake.NewClientBuilder().WithScheme(worker.Scheme()).WithObjects(approvalClaim("a", "gpu", waits("a1")), approvalClaim("b", "web", waits("a2", "b", "c")), approvalClaim("c", "web", waits("a2", "b", "c")),
		approvalClaim("d", "web", karpv1.Approval{ID: "a3", State: karpv1.ApprovalRejected, By: "bob", Note: "no"}), approvalClaim("e", "web", waits("a4"))).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ kube.WithWatch, object kube.Object, _ ...kube.CreateOption) error {
			object.(*authenticationv1.SelfSubjectReview).Status.UserInfo.Username = "alice"
			return nil
		}}).Build()
	temporal := &deciding{answers: answers}
	return &approveCommand{cluster: "east", kube: direct, temporal: temporal, now: func() time.Time { return approvalNow }, out: &bytes.Buffer{}}, temporal
}

func TestApproveAndReject(t *testing.T) {
	t.Parallel()
	approved := workflows.ApprovalResult{Outcome: workflows.ApprovalApproved, By: "alice", Why: "fine"}
	for name, test := range map[string]struct {
		reason   string
		name     string
		flags    approveFlags
		decision workflows.ApprovalDecision
		answers  map[string]any
		told     []string
		says     string
		fails    string
	}{
		"ByID": {reason: "an approval is meant by its id", name: "a1", decision: workflows.ApprovalDecision{Approve: true, Note: "fine"}, answers: map[string]any{"east/approval/a1": approved},
			told: []string{"east/approval/a1 decide true by alice for 0: fine"}, says: "a1 (node-a): approved by alice: fine\n"},
		"ByNode":  {reason: "or by a node", name: "node-c", decision: workflows.ApprovalDecision{Approve: true}, answers: map[string]any{"east/approval/a2": approved}, told: []string{"east/approval/a2 decide true by alice for 0: "}, says: "a2 (node-b, node-c): approved"},
		"ByClaim": {reason: "or by a NodeClaim", name: "c", decision: workflows.ApprovalDecision{Approve: true}, answers: map[string]any{"east/approval/a2": approved}, told: []string{"east/approval/a2 decide true by alice for 0: "}, says: "a2 (node-b, node-c): approved"},
		"All": {reason: "everything of a NodePool", flags: approveFlags{all: true, pool: "web"}, decision: workflows.ApprovalDecision{Note: "no", For: 60},
			answers: map[string]any{"east/approval/a2": workflows.ApprovalResult{Outcome: workflows.ApprovalRejected, By: "alice", Why: "no"}, "east/approval/a4": workflows.ApprovalResult{Outcome: workflows.ApprovalRejected}},
			told:    []string{"east/approval/a2 decide false by alice for 60: no", "east/approval/a4 decide false by alice for 60: no"}, says: "a4 (node-e): rejected\n"},
		"Outdated": {reason: "what no longer holds is a failure", name: "a1", decision: workflows.ApprovalDecision{Approve: true}, answers: map[string]any{"east/approval/a1": workflows.ApprovalResult{Outcome: workflows.ApprovalOutdated, Why: "it runs pod web"}},
			told: []string{"east/approval/a1 decide true by alice for 0: "}, says: "a1 (node-a): it no longer holds: it runs pod web\n", fails: "1 of 1 are not approved"},
		"Refused": {reason: "the workflow says why it refuses", name: "a1", decision: workflows.ApprovalDecision{Approve: true}, answers: map[string]any{"east/approval/a1": sdk.NewApplicationError("it is rejected already", "")},
			told: []string{"east/approval/a1 decide true by alice for 0: "}, says: "a1 (node-a): it is rejected already\n", fails: "1 of 1 are not approved"},
		"Lost":    {reason: "Temporal has lost the workflow", name: "a1", decision: workflows.ApprovalDecision{Approve: true}, told: []string{"east/approval/a1 decide true by alice for 0: "}, says: "people are asked anew", fails: "1 of 1 are not approved"},
		"Decided": {reason: "what is decided waits no more", name: "a3", fails: "a3: nothing waits for approval"},
		"Unknown": {reason: "a wrong name", name: "z", fails: "z: nothing waits for approval under this id, Node or NodeClaim"},
		"NoPool":  {reason: "a NodePool without any", flags: approveFlags{all: true, pool: "cpu"}, fails: "--pool cpu: nothing of this NodePool waits"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, temporal := approvalCluster(test.answers)
			err := a.decide(t.Context(), test.name, test.flags, test.decision)
			if (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("%s: %v, want %q", test.reason, err, test.fails)
			}
			if out := a.out.(*bytes.Buffer).String(); !strings.Contains(out, test.says) || !slices.Equal(temporal.told, test.told) {
				t.Errorf("%s: Temporal is told %q, people %q", test.reason, temporal.told, out)
			}
		})
	}
}

func TestApprovalsAreListed(t *testing.T) {
	t.Parallel()
	a, _ := approvalCluster(nil)
	for _, test := range []struct {
		reason, pool string
		decided      bool
		want         string
	}{
		{reason: "everything that waits", want: "a1 a2 a4"},
		{reason: "of one NodePool", pool: "web", want: "a2 a4"},
		{reason: "with what is decided", decided: true, want: "a1 a2 a3 a4"},
		{reason: "of a NodePool without any", pool: "cpu"},
	} {
		listed, err := listApprovals(t.Context(), a.kube, approvalNow, test.pool, test.decided)
		var ids []string
		for _, l := range listed {
			ids = append(ids, l.ID)
		}
		if got := strings.Join(ids, " "); err != nil || got != test.want {
			t.Errorf("%s: %q, %v, want %q", test.reason, got, err, test.want)
		}
	}
	listed, err := listApprovals(t.Context(), a.kube, approvalNow, "web", true)
	if err != nil {
		t.Fatal(err)
	}
	var table, encoded bytes.Buffer
	if err := showApprovals(&table, listed, false); err != nil {
		t.Fatal(err)
	}
	const row = "a3  Rejected  web       Drifted  node-d         $0.2500  2026-01-02T02:04:05Z  2026-01-02T04:04:05Z  bob  no"
	if !strings.Contains(table.String(), row) || !strings.HasPrefix(table.String(), "ID ") {
		t.Errorf("the table lacks %q:\n%s", row, table.String())
	}
	if err := showApprovals(&encoded, listed, true); err != nil {
		t.Fatal(err)
	}
	var read []listedApproval
	if err := json.Unmarshal(encoded.Bytes(), &read); err != nil || len(read) != 3 || !slices.Equal(read[0].Nodes, []string{"node-b", "node-c"}) || !slices.Equal(read[0].NodePools, []string{"web"}) {
		t.Errorf("programs read %+v, %v", read, err)
	}
}

// TestApproveFlags checks what is refused before anything is connected to.
func TestApproveFlags(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		args   []string
		want   string
	}{
		{"nothing is meant", []string{"approve"}, "name one id or node, or give --all"},
		{"two ways to mean something", []string{"approve", "a1", "--all"}, "give --all or an id or node, not both"},
		{"a NodePool alone means nothing", []string{"approve", "a1", "--pool", "p"}, "--pool: only with --all"},
	} {
		root := newRootCommand()
		root.SetArgs(test.args)
		root.SetOut(&bytes.Buffer{})
		root.SetErr(&bytes.Buffer{})
		if err := root.Execute(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.reason, err, test.want)
		}
	}
}
