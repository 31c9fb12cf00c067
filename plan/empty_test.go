package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

func consolidates(policy karpv1.ConsolidationPolicy, after time.Duration) func(*karpv1.NodePool) {
	return func(pool *karpv1.NodePool) {
		pool.Spec.Disruption.ConsolidationPolicy = policy
		pool.Spec.Disruption.ConsolidateAfter = karpv1.NewNillableDuration(after)
	}
}

func budgets(budgets ...karpv1.Budget) func(*karpv1.NodePool) {
	return func(pool *karpv1.NodePool) { pool.Spec.Disruption.Budgets = budgets }
}

// emptiness returns what Disrupt decides about nodes because they are empty.
func emptiness(in plan.Input) plan.Disruption {
	d := plan.Disrupt(in)
	d.Verdicts = slices.DeleteFunc(d.Verdicts, func(v plan.Verdict) bool { return v.Reason != karpv1.DisruptionReasonEmpty })
	return d
}

// For one node: is it removed, if not why, and when is it considered again?
func TestEmptiness(t *testing.T) {
	t.Parallel()
	in := new(plan.Interner)
	runs := func(pods ...*corev1.Pod) func(*plan.Node) {
		return func(n *plan.Node) {
			for _, pod := range pods {
				pod.Spec.NodeName = n.Name
				n.Pods = append(n.Pods, in.Pod(pod))
			}
		}
	}
	yes := true
	daemon := func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d", Controller: &yes}}
	}
	stays := func(value string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{karpv1.DoNotDisruptAnnotationKey: value}
			pod.Status.StartTime = &metav1.Time{Time: now.Add(-time.Minute)}
		}
	}
	hourly := karpv1.ConsolidationPolicyWhenEmpty
	tests := []struct {
		name, why string
		node      func(*plan.Node)
		pool      *karpv1.NodePool
		pending   []*corev1.Pod
		next      time.Duration
	}{
		{name: "empty", pool: nodePool("p")},
		{name: "empty under WhenEmpty", pool: nodePool("p", consolidates(hourly, time.Minute))},
		{name: "empty under Balanced", pool: nodePool("p", consolidates(karpv1.ConsolidationPolicyBalanced, 0))},
		{name: "daemons only", node: runs(newPod("a", "1", "1Gi", daemon)), pool: nodePool("p")},
		{name: "runs a pod", node: runs(newPod("a", "1", "1Gi")), pool: nodePool("p"), why: "it runs pod default/a"},
		{name: "finished pods", pool: nodePool("p"), node: runs(newPod("a", "1", "1Gi", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }))},
		{name: "daemon not to be disrupted", node: runs(newPod("a", "1", "1Gi", daemon, stays("true"))), pool: nodePool("p"), why: "pod default/a is annotated"},
		{name: "daemon not to be disrupted for a while", node: runs(newPod("a", "1", "1Gi", daemon, stays("5m"))), pool: nodePool("p"), why: "pod default/a is annotated", next: 4 * time.Minute},
		{name: "never", pool: nodePool("p", func(pool *karpv1.NodePool) { pool.Spec.Disruption.ConsolidateAfter = karpv1.NillableDuration{} }), why: "its NodePool's consolidateAfter is Never"},
		{name: "too young", pool: nodePool("p", consolidates(hourly, 2*time.Hour)), why: "it has not been quiet for consolidateAfter (2h0m0s) yet", next: time.Hour},
		{name: "used a moment ago", node: func(n *plan.Node) { n.LastPodEvent = now.Add(-time.Minute) }, pool: nodePool("p", consolidates(hourly, 3*time.Minute)), why: "it has not been quiet", next: 2 * time.Minute},
		{name: "not initialized", node: func(n *plan.Node) { n.Initialized = false }, pool: nodePool("p"), why: "it is not initialized"},
		{name: "going", node: func(n *plan.Node) { n.Deleting = true }, pool: nodePool("p"), why: "it is already being removed"},
		{name: "nominated", node: func(n *plan.Node) { n.NominatedUntil = now.Add(9 * time.Second) }, pool: nodePool("p"), why: "pods were planned for it a moment ago", next: 9 * time.Second},
		{name: "promised", node: func(n *plan.Node) { n.Promised = []types.UID{"uid-a"} }, pool: nodePool("p"), pending: []*corev1.Pod{newPod("a", "1", "1Gi")}, why: "pods that wait for a node are planned for it"},
		{name: "expected", pool: nodePool("p"), pending: []*corev1.Pod{newPod("a", "1", "1Gi", func(pod *corev1.Pod) { pod.Status.NominatedNodeName = "n" })}, why: "pods that wait for a node are nominated to it"},
		{name: "promised to a pod that is gone", node: func(n *plan.Node) { n.Promised = []types.UID{"uid-a"} }, pool: nodePool("p")},
		{name: "annotated", node: func(n *plan.Node) { n.DoNotDisrupt = true }, pool: nodePool("p"), why: "it is annotated karpenter.sh/do-not-disrupt=true"},
		{name: "annotated as before v1beta1", node: func(n *plan.Node) { n.DoNotDisrupt, n.Protection = true, karpv1.DoNotConsolidateAnnotationKey }, pool: nodePool("p"),
			why: "it is annotated karpenter.sh/do-not-consolidate=true"},
		{name: "static", pool: nodePool("p", func(pool *karpv1.NodePool) { n := int64(1); pool.Spec.Replicas = &n }), why: "its NodePool is static"},
		{name: "no pool", pool: nodePool("other"), why: `its NodePool "p" does not exist`},
		{name: "budget", pool: nodePool("p", budgets(karpv1.Budget{Nodes: "0"})), why: "its NodePool's budgets allow 0 of 1 nodes"},
		{name: "budget of another reason", pool: nodePool("p", budgets(karpv1.Budget{Nodes: "0", Reasons: []karpv1.DisruptionReason{karpv1.DisruptionReasonDrifted}}))},
		{name: "budget by the clock", pool: nodePool("p", func(pool *karpv1.NodePool) {
			noon := "0 12 * * *"
			pool.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "0", Schedule: &noon, Duration: &metav1.Duration{Duration: time.Hour}}}
		}), why: "its NodePool's budgets allow 0", next: time.Hour},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			n := existing("n", "m6i.large")
			if test.node != nil {
				test.node(n)
			}
			w := world{nodes: []*plan.Node{n}, pods: test.pending, pools: []plan.Pool{{NodePool: test.pool}}}
			d := emptiness(w.input())
			if test.why == "" {
				want := []plan.Command{{Reason: karpv1.DisruptionReasonEmpty, Nodes: []string{"claim-n"}}}
				if diff := cmp.Diff(want, d.Commands, cmpopts.IgnoreFields(plan.Command{}, "Why")); diff != "" {
					t.Fatalf("commands (-want +got):\n%s%v", diff, d.Verdicts)
				}
				return
			}
			if len(d.Commands) > 0 || len(d.Verdicts) != 1 || !strings.HasPrefix(d.Verdicts[0].Message, test.why) {
				t.Errorf("commands %v and verdicts %v, want %q", d.Commands, d.Verdicts, test.why)
			}
			if test.next == 0 && !d.NextLook.IsZero() || test.next > 0 && !d.NextLook.Equal(now.Add(test.next)) {
				t.Errorf("next look %v, want after %v", d.NextLook, test.next)
			}
		})
	}
}

// Budgets limit how many nodes are removed at once; nodes that are already leaving count.
func TestEmptinessWithinBudget(t *testing.T) {
	t.Parallel()
	w := world{pools: []plan.Pool{{NodePool: nodePool("p", budgets(karpv1.Budget{Nodes: "30%"}))}}}
	for i := range 10 {
		name := string(rune('a' + i))
		w.nodes = append(w.nodes, existing(name, "m6i.large", func(n *plan.Node) {
			n.Deleting = i == 0
			n.Created = now.Add(-time.Duration(i) * time.Hour)
		}))
	}
	d := plan.Disrupt(w.input())
	want := []plan.Command{{Reason: karpv1.DisruptionReasonEmpty, Nodes: []string{"claim-j", "claim-i"}}}
	if diff := cmp.Diff(want, d.Commands, cmpopts.IgnoreFields(plan.Command{}, "Why")); diff != "" {
		t.Errorf("three of ten may go, one is going, the oldest follow (-want +got):\n%s", diff)
	}
}
