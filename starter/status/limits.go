package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// limitsAgain is when the NodePools are looked at again while a limit is used up: a rate allows more without any change in the
// cluster.
const limitsAgain = 30 * time.Second

// keepLimits sets the condition that says which budgets of the whole cluster, and which rates, are used up for the pool, and
// removes it if none is. It returns whether one is.
func keepLimits(pool *karpv1.NodePool, limits []plan.Limit) bool {
	var reasons, messages []string
	for _, limit := range limits {
		if limit.Left > 0 || limit.NodePool != "" && limit.NodePool != pool.Name {
			continue
		}
		reason, message := "ClusterBudget", fmt.Sprintf("the cluster's budgets allow %d nodes to be disrupted at once for being %s, and %d are", limit.Allowed, strings.ToLower(string(limit.Reason)), limit.Used)
		switch {
		case limit.Rate && limit.NodePool == "":
			reason, message = "ClusterRate", fmt.Sprintf("the cluster's disruption rate allows %d nodes, and %d have begun to be disrupted", limit.Allowed, limit.Used)
		case limit.Rate:
			reason, message = "Rate", fmt.Sprintf("the NodePool's disruption rate allows %d nodes, and %d have begun to be disrupted", limit.Allowed, limit.Used)
		}
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
		messages = append(messages, message)
	}
	if len(reasons) == 0 {
		pool.ClearCondition(karpv1.ConditionTypeDisruptionLimited)
		return false
	}
	pool.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeDisruptionLimited, Status: metav1.ConditionTrue, Reason: strings.Join(reasons, "And"), Message: fitting(strings.Join(messages, "; "))})
	return true
}
