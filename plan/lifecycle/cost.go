package lifecycle

import "github.com/tenon-sh/tenon/plan/model"

// DisruptionCost returns the cost of moving the pods of a node, 1 for an empty node. Each pod adds 1, adjusted by its
// deletion cost and its priority as in Karpenter, but no more than 10.
func DisruptionCost(n *model.Node) float64 {
	cost := 1.0
	for _, pod := range n.Pods {
		if pod.Reschedulable() {
			eviction := 1 + float64(pod.DeletionCost)/(1<<27) + float64(pod.Priority)/(1<<25)
			cost += max(0, min(eviction, 10))
		}
	}
	return cost
}
