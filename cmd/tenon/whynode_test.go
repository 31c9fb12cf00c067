package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

func TestNodeStory(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "ip-10-0-0-1", Labels: map[string]string{
		karpv1.NodePoolLabelKey: "default", corev1.LabelInstanceTypeStable: "m5.large", corev1.LabelTopologyZone: "us-east-1a", karpv1.CapacityTypeLabelKey: "spot"}}}
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "default-abcde", Labels: node.Labels}}
	deleted := claim.DeepCopy()
	deleted.DeletionTimestamp = &metav1.Time{Time: at}
	const machine = "(NodeClaim default-abcde, NodePool default, spot m5.large in us-east-1a, $0.0384 per hour)"
	mine := func(answer workflows.NodeAnswer) nodeFacts {
		answer.Known, answer.Managed = true, true
		return nodeFacts{name: "ip-10-0-0-1", node: node, claim: claim, price: 0.0384, answer: &answer}
	}
	leaving := mine(workflows.NodeAnswer{Leaving: true, Replacement: "r1"})
	leaving.replacement = &replacementState{Workflow: "east/replacement/r1", Status: "Running", State: "Waiting until 1 claim serves."}
	draining := mine(workflows.NodeAnswer{Leaving: true})
	draining.claim = deleted
	draining.drain = &workflows.DrainStatus{Phase: workflows.PhaseBlocked, Reason: "Drifted", Evicted: 3, Left: 1,
		Blockers: []workflows.Blocker{{Pod: "shop/web-0", Message: "is protected"}}}
	for name, test := range map[string]struct {
		reason string
		facts  nodeFacts
		want   string
	}{
		"Stays": {reason: "the first reason that applies is in the first line", facts: mine(workflows.NodeAnswer{Verdicts: []workflows.NodeVerdict{
			{Reason: "Empty", Cause: "None", Message: "it runs pod shop/web-0"}, {Reason: "Drifted", Cause: "Budget", Message: "budgets allow 0", Until: at}}}),
			want: "ip-10-0-0-1 " + machine + " stays: it has drifted, but budgets allow 0\n\nREASON   CAUSE   IT STAYS BECAUSE\nEmpty    None    it runs pod shop/web-0\nDrifted  Budget  budgets allow 0 (until 2026-03-01T12:00:00Z)\n"},
		"NoReason": {reason: "nothing speaks for taking it away", facts: mine(workflows.NodeAnswer{Verdicts: []workflows.NodeVerdict{{Reason: "Empty", Cause: "None", Message: "it runs pod shop/web-0"}}}),
			want: "ip-10-0-0-1 " + machine + " stays: there is no reason for it to go\n\nREASON  CAUSE  IT STAYS BECAUSE\nEmpty   None   it runs pod shop/web-0\n"},
		"Goes": {reason: "the decision is told", facts: mine(workflows.NodeAnswer{Going: &workflows.NodeDecision{Reason: "Underutilized", Why: "its pods fit elsewhere", Others: []string{"default-fghij"}, Replacements: []string{"spot m5.large"}}}),
			want: "ip-10-0-0-1 " + machine + " goes for being underutilized: its pods fit elsewhere; together with default-fghij; launched first: spot m5.large\n"},
		"Replaced": {reason: "what it waits for is told", facts: leaving,
			want: "ip-10-0-0-1 " + machine + " is being removed, as soon as its replacement serves\n\nReplacement east/replacement/r1 (Running): Waiting until 1 claim serves.\n"},
		"Drained": {reason: "and which pods", facts: draining,
			want: "ip-10-0-0-1 " + machine + " is being removed: Drifted\n\nDrain (Drifted, Blocked): 3 pods evicted, 1 left\n  blocked: shop/web-0 is protected\n"},
		"Foreign": {reason: "a node of somebody else's", facts: nodeFacts{name: "other", node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}}},
			want: "other has no NodeClaim of a NodePool, so Tenon did not launch it and does not remove it\n"},
		"Unseen": {reason: "a claim that was just made", facts: nodeFacts{name: "default-abcde", claim: claim, answer: &workflows.NodeAnswer{}},
			want: "default-abcde (NodePool default, spot m5.large in us-east-1a) has not been seen by the worker yet; ask again in a moment\n"},
		"Gone": {reason: "the recorded reason outlives the node",
			facts: nodeFacts{name: "ip-10-0-0-9", past: &pastNode{NodeClaim: "default-abcde", NodePool: "default", Reason: "Empty", Drain: "Drained", Ended: at}},
			want:  "ip-10-0-0-9 has been gone since 2026-03-01T12:00:00Z (NodeClaim default-abcde of NodePool default): Empty, its drain ended as Drained\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, test.facts.story().text()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}
