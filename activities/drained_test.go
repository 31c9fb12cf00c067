package activities

import (
	"context"
	"testing"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/workflows"
)

// TestNoPodIsLostThatCameSinceTheDrain has pods arrive at a node after its drain and before the end of its instance.
func TestNoPodIsLostThatCameSinceTheDrain(t *testing.T) {
	t.Parallel()
	drained := workflows.TerminateInput{Claim: workflows.ClaimRef{Name: "a", UID: "uid-a"}, Instance: "i-1", Node: "n", NodeUID: "uid-n",
		Reason: workflows.ReasonClaimDeleted, Outcome: workflows.Drained, DrainsAgain: true}
	with := func(change func(*workflows.TerminateInput)) workflows.TerminateInput {
		in := drained
		change(&in)
		return in
	}
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "late", UID: "uid-late"}, Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		change(p)
		return p
	}
	came := pod(func(*corev1.Pod) {})
	tolerates := pod(func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} })
	over := pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	elsewhere := pod(func(p *corev1.Pod) { p.Spec.NodeName = "other" })
	runs := []cloud.Instance{{ID: "i-1", State: "running"}}
	for reason, test := range map[string]struct {
		in        workflows.TerminateInput
		opened    bool
		uid       string
		pods      []client.Object
		instances []cloud.Instance
		again     bool
	}{
		"it is as its drain left it":                     {in: drained, instances: runs},
		"somebody opened it, and a pod came":             {in: drained, opened: true, pods: []client.Object{came}, instances: runs, again: true},
		"somebody opened it and it was closed once more": {in: drained, pods: []client.Object{came}, instances: runs, again: true},
		"somebody opened it, and nothing came":           {in: drained, opened: true, pods: []client.Object{elsewhere}, instances: runs},
		"a pod that every drain leaves alone":            {in: drained, pods: []client.Object{tolerates}, instances: runs},
		"a pod that is over":                             {in: drained, opened: true, pods: []client.Object{over}, instances: runs},
		"an earlier try has told EC2":                    {in: drained, opened: true, pods: []client.Object{came}},
		"the name is another node's by now":              {in: drained, uid: "uid-later", opened: true, pods: []client.Object{came}, instances: runs},
		"the drain ended at its deadline": {in: with(func(in *workflows.TerminateInput) { in.Outcome = workflows.DeadlineReached }),
			opened: true, pods: []client.Object{came}, instances: runs},
		"the workflow cannot drain it again": {in: with(func(in *workflows.TerminateInput) { in.DrainsAgain = false }),
			opened: true, pods: []client.Object{came}, instances: runs},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid-n"}}
			if test.uid != "" {
				node.UID = "uid-later"
			}
			if !test.opened {
				cordonClaimed(node)
			}
			kube := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(append(test.pods, node)...).
				WithIndex(&corev1.Pod{}, podNode, func(object client.Object) []string { return []string{object.(*corev1.Pod).Spec.NodeName} }).Build()
			a := New(Config{Kube: kube, Mirror: &inhabited{}, Cloud: &sweptCloud{instances: test.instances}, Log: zap.NewNop()})
			check := func(ctx context.Context, in workflows.TerminateInput) (struct{}, error) {
				return struct{}{}, a.checkDrained(ctx, &karpv1.NodeClaim{}, in)
			}
			_, err := run(t, check, test.in)
			if again := workflows.FailureType(err) == workflows.FailureNotDrained; again != test.again || err != nil && !again {
				t.Errorf("got %v, want it drained again: %t", err, test.again)
			}
			var now corev1.Node
			if err := kube.Get(t.Context(), client.ObjectKey{Name: "n"}, &now); err != nil {
				t.Fatal(err)
			}
			if ours := test.in == drained && test.uid == ""; ours && !disrupted(&now) {
				t.Errorf("taints %v: it is to be closed", now.Spec.Taints)
			}
		})
	}
}
