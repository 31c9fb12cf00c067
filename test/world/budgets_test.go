package world

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestBudgetLedger checks that the watcher of budgets finds nodes that were disrupted beyond them, and only those.
func TestBudgetLedger(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC()
	since := fmt.Sprintf("%d %d * * *", now.Add(-time.Hour).Minute(), now.Add(-time.Hour).Hour())
	for _, row := range []struct {
		name     string
		budgets  []karpv1.Budget
		takes    int // of ten nodes
		reason   string
		violated int
		people   int // take so many of these nodes before
	}{
		{name: "within a number", budgets: []karpv1.Budget{{Nodes: "2"}}, takes: 2, reason: "Empty", violated: 0, people: 0},
		{name: "beyond a number", budgets: []karpv1.Budget{{Nodes: "2"}}, takes: 4, reason: "Empty", violated: 2, people: 0},
		{name: "people took the first two at the same time", budgets: []karpv1.Budget{{Nodes: "2"}}, takes: 4, reason: "Empty", violated: 0, people: 2},
		{name: "people took the first at the same time", budgets: []karpv1.Budget{{Nodes: "2"}}, takes: 4, reason: "Empty", violated: 1, people: 1},
		{name: "a share is rounded up", budgets: []karpv1.Budget{{Nodes: "15%"}}, takes: 2, reason: "Drifted", violated: 0, people: 0},
		{name: "beyond a share", budgets: []karpv1.Budget{{Nodes: "15%"}}, takes: 3, reason: "Drifted", violated: 1, people: 0},
		{name: "the smallest counts", budgets: []karpv1.Budget{{Nodes: "100%"}, {Nodes: "1"}}, takes: 2, reason: "Underutilized", violated: 1, people: 0},
		{name: "one for another reason does not",
			budgets: []karpv1.Budget{{Nodes: "0", Reasons: []karpv1.DisruptionReason{karpv1.DisruptionReasonEmpty}}}, takes: 3,
			reason: "Drifted", violated: 0, people: 0},
		{name: "nobody's budget is asked for other reasons", budgets: []karpv1.Budget{{Nodes: "0"}}, takes: 3, reason: "ClaimDeleted", violated: 0, people: 0},
		{name: "a window that is open",
			budgets: []karpv1.Budget{{Nodes: "0", Schedule: &since, Duration: &metav1.Duration{Duration: 2 * time.Hour}}}, takes: 1,
			reason: "Empty", violated: 1, people: 0},
		{name: "a window that is closed",
			budgets: []karpv1.Budget{{Nodes: "0", Schedule: &since, Duration: &metav1.Duration{Duration: 30 * time.Minute}}}, takes: 1,
			reason: "Empty", violated: 0, people: 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			l := newBudgetLedger("scene")
			l.poolChanged(&karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: karpv1.NodePoolSpec{Disruption: karpv1.Disruption{Budgets: row.budgets}}}, false)
			labels := map[string]string{karpv1.NodePoolLabelKey: "p", "scene": "s"}
			nodes := make([]*corev1.Node, 10)
			for i := range nodes {
				name := fmt.Sprint("node-", i)
				l.claimChanged(&karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Status: karpv1.NodeClaimStatus{Conditions: []metav1.Condition{
					{Type: karpv1.ConditionTypeInitialized, Status: metav1.ConditionTrue}}}}, false)
				nodes[i] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, OwnerReferences: []metav1.OwnerReference{{Kind: "NodeClaim", Name: name}}},
					Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
				l.nodeChanged(nodes[i], false)
			}
			for i := range row.takes {
				tainted := nodes[i].DeepCopy()
				tainted.Spec.Taints = []corev1.Taint{karpv1.DisruptedNoScheduleTaint()}
				l.nodeChanged(tainted, false)
			}
			if got := l.Violations("s", func(claim string) string {
				if n, _ := strconv.Atoi(strings.TrimPrefix(claim, "node-")); n < row.people {
					return "ManualDrain"
				}
				return row.reason
			}); len(got) != row.violated {
				t.Errorf("found %q, want %d violations", got, row.violated)
			}
		})
	}
}
