package starter

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
)

// allowances are the PodDisruptionBudgets of a look by namespace, and how many evictions each still allows.
type allowances struct {
	budgets map[string][]*plan.DisruptionBudget
	allows  map[*plan.DisruptionBudget]int32
}

func newAllowances(budgets []*plan.DisruptionBudget) allowances {
	a := allowances{budgets: map[string][]*plan.DisruptionBudget{}, allows: map[*plan.DisruptionBudget]int32{}}
	for _, budget := range budgets {
		a.budgets[budget.Namespace] = append(a.budgets[budget.Namespace], budget)
		a.allows[budget] = budget.Allows
	}
	return a
}

// freePods returns those of a node's pods that could be evicted now as far as the cluster shows, by UID; what they
// would take of their budgets; and how many pods still have to leave. Pods of DaemonSets are left out: most stay, and
// the others leave last.
func (a allowances) freePods(pods []*cluster.Pod, now time.Time) (free []string, takes map[*plan.DisruptionBudget]int32, left int) {
	takes = map[*plan.DisruptionBudget]int32{}
	for _, pod := range pods {
		if pod.Daemon || pod.Static || pod.Terminal {
			continue
		}
		left++
		if pod.Terminating() || pod.Undisruptable(now) {
			continue
		}
		var covering []*plan.DisruptionBudget
		for _, budget := range a.budgets[pod.Namespace] {
			if budget.Selector.Matches(labels.Set(pod.Labels.Set)) {
				covering = append(covering, budget)
			}
		}
		switch {
		case len(covering) == 0, len(covering) == 1 && covering[0].UnhealthyGo && !pod.Ready:
			free = append(free, string(pod.UID))
		case len(covering) == 1 && a.allows[covering[0]] > takes[covering[0]]:
			takes[covering[0]]++
			free = append(free, string(pod.UID))
		}
	}
	slices.Sort(free)
	return free, takes, left
}

// take subtracts from the budgets what a drain that was just woken will use.
func (a allowances) take(taken map[*plan.DisruptionBudget]int32) {
	for budget, pods := range taken {
		a.allows[budget] -= pods
	}
}
