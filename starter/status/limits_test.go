package status

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

func TestKeepLimits(t *testing.T) {
	t.Parallel()
	budget := plan.Limit{Reason: karpv1.DisruptionReasonDrifted, Allowed: 2, Used: 2}
	for _, test := range []struct {
		reason string
		limits []plan.Limit
		// named is the condition's reason; empty if there is to be none.
		named, says string
	}{
		{reason: "without limits there is no condition"},
		{reason: "nor while something is left", limits: []plan.Limit{{Reason: karpv1.DisruptionReasonDrifted, Allowed: 2, Used: 1, Left: 1}}},
		{reason: "a budget of the cluster that is used up", limits: []plan.Limit{budget}, named: "ClusterBudget", says: "allow 2 nodes to be disrupted at once for being drifted, and 2 are"},
		{reason: "the cluster's rate", limits: []plan.Limit{{Rate: true, Allowed: 5, Used: 5}}, named: "ClusterRate", says: "allows 5 nodes, and 5 have begun"},
		{reason: "its own rate", limits: []plan.Limit{{NodePool: "web", Rate: true, Allowed: 1, Used: 1}}, named: "Rate", says: "the NodePool's disruption rate"},
		{reason: "another NodePool's rate does not matter", limits: []plan.Limit{{NodePool: "gpu", Rate: true, Allowed: 1, Used: 1}}},
		{reason: "several", limits: []plan.Limit{budget, {Rate: true, Allowed: 5, Used: 5}}, named: "ClusterBudgetAndClusterRate", says: "; "},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
			pool.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeDisruptionLimited, Status: metav1.ConditionTrue, Reason: "Before"})
			if limited := keepLimits(pool, test.limits); limited != (test.named != "") {
				t.Errorf("it is limited: %t", limited)
			}
			condition := pool.Condition(karpv1.ConditionTypeDisruptionLimited)
			switch {
			case test.named == "":
				if condition != nil {
					t.Errorf("the condition is %+v", condition)
				}
			case condition == nil || condition.Reason != test.named || !strings.Contains(condition.Message, test.says):
				t.Errorf("the condition is %+v, want %s: %s", condition, test.named, test.says)
			}
		})
	}
}
