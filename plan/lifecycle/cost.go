package lifecycle

import "github.com/tenon-sh/tenon/plan/model"

// DisruptionCost is how much it costs to take a node's pods off it, 1 for a node that is empty. A pod without any wishes
// adds 1, and none more than 10: the deletion cost its owner gave it and its priority weigh, as in Karpenter.
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
