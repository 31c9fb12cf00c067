package lifecycle

import (
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan/model"
)

// Consolidatable says whether the condition Consolidatable holds for a node: it is initialized, and no pod has come or
// gone for the pool's consolidateAfter. Where it is only a matter of time, when says from when on it will hold. Nodes of
// static pools never are, nor those of pools that never consolidate.
func Consolidatable(n *model.Node, pool *karpv1.NodePool, now time.Time) (holds bool, when time.Time) {
	after := pool.Spec.Disruption.ConsolidateAfter
	if after.IsNever() || pool.Spec.Replicas != nil || !n.Initialized {
		return false, time.Time{}
	}
	if quiet := model.Later(n.InitializedAt, n.LastPodEvent).Add(*after.Duration); now.Before(quiet) {
		return false, quiet
	}
	return true, time.Time{}
}
