package model

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// A pod that can run on any node with room finds a place as long as there is room anywhere. Other pods depend on the place
// that was planned for them: once another pod has filled it, a node has to be bought while room elsewhere is left over. So
// they are handled first when promises are kept, when existing room is filled, and when pods are nominated.

// DependsOnPlace says that a pod depends on its place, given the average request of the pods that wait.
func (p *Pod) DependsOnPlace(average Resources) bool {
	asks := &p.Class.Requests
	return p.Class.Tied() || len(p.Mounts.Names()) > 0 || AsksDevice(p.Class) || asks.CPU > average.CPU || asks.Memory > average.Memory
}

// AverageRequest returns the average CPU and memory request of the pods that wait for a node.
func AverageRequest(pods []*Pod) Resources {
	var sum Resources
	count := int64(0)
	for _, pod := range pods {
		if pod.Node == "" && !pod.Virtual {
			sum.CPU, sum.Memory = sum.CPU+pod.Class.Requests.CPU, sum.Memory+pod.Class.Requests.Memory
			count++
		}
	}
	return Resources{CPU: sum.CPU / max(1, count), Memory: sum.Memory / max(1, count)}
}

// Tied says that pods of the class cannot use every node with room.
func (c *Class) Tied() bool {
	if len(c.NodeSelector) > 0 || c.NodeAffinity != nil || len(c.HostPorts) > 0 {
		return true
	}
	return len(AntiTerms(c)) > 0 || c.Affinity != nil && len(c.Affinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 ||
		slices.ContainsFunc(c.Spread, func(s corev1.TopologySpreadConstraint) bool { return s.WhenUnsatisfiable == corev1.DoNotSchedule })
}
