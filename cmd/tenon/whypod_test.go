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
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/worker"
	"github.com/tenon-sh/tenon/workflows"
)

func TestPodStory(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", CreationTimestamp: at}}
		if change != nil {
			change(p)
		}
		return p
	}
	unschedulable := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available"}}
	}
	bound := pod(func(p *corev1.Pod) {
		p.Spec.NodeName = "n1"
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at}}
	})
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "default-abcde", CreationTimestamp: at, Annotations: map[string]string{karpv1.LaunchGroupAnnotationKey: "g-1-0"}, Labels: map[string]string{
		karpv1.NodePoolLabelKey: "default", corev1.LabelInstanceTypeStable: "m5.large", corev1.LabelTopologyZone: "us-east-1a", karpv1.CapacityTypeLabelKey: "spot"}}}
	joined := claim.DeepCopy()
	joined.Status.Conditions = []metav1.Condition{{Type: karpv1.ConditionTypeLaunched, Status: metav1.ConditionTrue}}
	const since = "shop/web-0 has been pending since 2026-03-01T12:00:00Z: "
	for name, test := range map[string]struct {
		reason string
		facts  facts
		want   string
	}{
		"Bound": {reason: "how the node came is told", facts: facts{pod: bound, node: &corev1.Node{}, claim: claim, price: 0.0384},
			want: "shop/web-0 was bound to node n1 at 2026-03-01T12:00:00Z; the node came from NodeClaim default-abcde of NodePool default, created 2026-03-01T12:00:00Z in launch group g-1-0: m5.large, spot, us-east-1a, $0.0384 per hour\n"},
		"Foreign": {reason: "a node of somebody else's", facts: facts{pod: bound, node: &corev1.Node{}},
			want: "shop/web-0 was bound to node n1 at 2026-03-01T12:00:00Z; the node has no NodeClaim, so Tenon did not launch it\n"},
		"Lost": {reason: "a node that is gone", facts: facts{pod: bound},
			want: "shop/web-0 was bound to node n1 at 2026-03-01T12:00:00Z, which does not exist (any more)\n"},
		"Ended": {reason: "a pod that has ended needs nothing",
			facts: facts{pod: pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })}, want: "shop/web-0 has ended (Succeeded)\n"},
		"Deleted": {reason: "nor does one that is going", facts: facts{pod: pod(func(p *corev1.Pod) { p.DeletionTimestamp = &at })},
			want: "shop/web-0 is being deleted and gets no node\n"},
		"Gated": {reason: "the gates are named", facts: facts{pod: pod(func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a/b"}, {Name: "c/d"}}
		})}, want: "shop/web-0 is not scheduled before its scheduling gates are removed: a/b, c/d\n"},
		"Daemon": {reason: "a DaemonSet's pod gets no node of its own", facts: facts{pod: pod(func(p *corev1.Pod) {
			yes := true
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: &yes}}
		})}, want: "shop/web-0 belongs to a DaemonSet: no node is launched for it, it runs on existing nodes\n"},
		"Unplaced": {reason: "every NodePool has its reason, and the kube-scheduler its own", facts: facts{pod: pod(unschedulable), answer: &workflows.PodAnswer{Verdict: workflows.PodUnplaced, Judged: true,
			Reasons: []workflows.PodReason{{NodePool: "a", Message: "taint x is not tolerated"}, {NodePool: "b", Message: "limit cpu 10 leaves 1"}}}},
			want: since + "no node can be provisioned for it\n  NodePool a: taint x is not tolerated\n  NodePool b: limit cpu 10 leaves 1\nkube-scheduler: 0/1 nodes are available\n"},
		"Shared": {reason: "pools with the same reason are one line", facts: facts{pod: pod(nil), answer: &workflows.PodAnswer{Verdict: workflows.PodUnplaced, Judged: true,
			Reasons: []workflows.PodReason{{NodePool: "a", Message: "x"}, {NodePool: "b", Message: "y"}, {NodePool: "c", Message: "x"}}}},
			want: since + "no node can be provisioned for it\n  NodePools a, c: x\n  NodePool b: y\n"},
		"NoPool": {reason: "a reason may be about the pod alone",
			facts: facts{pod: pod(nil), answer: &workflows.PodAnswer{Verdict: workflows.PodUnplaced, Judged: true, Reasons: []workflows.PodReason{{Message: "there is no NodePool"}}}},
			want:  since + "no node can be provisioned for it\n  there is no NodePool\n"},
		"Launch": {reason: "what the next plan does",
			facts: facts{pod: pod(nil), answer: &workflows.PodAnswer{Verdict: workflows.PodLaunch, Judged: true, NodePool: "default", CapacityType: "spot", InstanceTypes: []string{"m5.large", "c5.large"}, Zones: []string{"us-east-1a"}, PricePerHour: 0.03}},
			want:  since + "the next plan launches a node for it: NodePool default, spot m5.large or c5.large in us-east-1a, $0.0300 per hour\n"},
		"NotJudged": {reason: "what comes first is said first", facts: facts{pod: pod(nil), answer: &workflows.PodAnswer{Verdict: workflows.PodFits, Node: "n2"}},
			want: since + "the kube-scheduler has not judged it yet, and Tenon waits for that; as things stand, it fits on node n2\n"},
		"Promised": {reason: "a claim says how far it is",
			facts: facts{pod: pod(nil), claim: joined, answer: &workflows.PodAnswer{Verdict: workflows.PodPromised, Judged: true, Node: "default-abcde"}},
			want:  since + "a plan was made for it: it is meant for NodeClaim default-abcde of NodePool default, which is launched and has not joined the cluster yet\n"},
		"Launching": {reason: "or that it has only begun",
			facts: facts{pod: pod(nil), claim: claim, answer: &workflows.PodAnswer{Verdict: workflows.PodFits, Judged: true, Node: "default-abcde"}},
			want:  since + "it fits on NodeClaim default-abcde of NodePool default, which is being launched\n"},
		"Nominated": {reason: "a nomination is told whatever the planner says",
			facts: facts{pod: pod(func(p *corev1.Pod) { p.Status.NominatedNodeName = "n3" }), answer: &workflows.PodAnswer{Verdict: workflows.PodUnknown}},
			want:  since + "it is nominated to node n3 and bound as soon as there is room; the worker does not plan for it at present\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, test.facts.story().text()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

// TestWhyPodNeedsNoWorker checks that pods which are not planned for are explained without asking a worker.
func TestWhyPodNeedsNoWorker(t *testing.T) {
	t.Parallel()
	gated := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "gated"}, Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: "a/b"}}}}
	var out bytes.Buffer
	i := inquiry{cluster: "east", kube: fake.NewClientBuilder().WithScheme(worker.Scheme()).WithObjects(gated).Build(), out: &out, json: true}
	if err := i.pod(context.Background(), "shop", "gated"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `"state": "Gated"`) {
		t.Errorf("JSON: %s", out.String())
	}
	if err := i.pod(context.Background(), "shop", "none"); err == nil || !strings.Contains(err.Error(), "there is no pod shop/none") {
		t.Errorf("a wrong name is said to be one: %v", err)
	}
}
