package model

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Pods that any node with room will do for find a place as long as there is room anywhere. Others depend on the place that
// was planned for them: once somebody has filled it, a node has to be bought for them while room is left over elsewhere. So
// they come first where promises are kept, where what is there is filled, and where the kube-scheduler is told.

// DependsOnPlace says that a pod depends on its place, where pods that wait ask for so much on average.
func (p *Pod) DependsOnPlace(average Resources) bool {
	asks := &p.Class.Requests
	return p.Class.Tied() || len(p.Mounts.Names()) > 0 || AsksDevice(p.Class) || asks.CPU > average.CPU || asks.Memory > average.Memory
}

// AverageRequest is what pods that wait for a node ask for on average, of CPU and memory.
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

// Tied says that not every node with room will do for pods of the class.
func (c *Class) Tied() bool {
	if len(c.NodeSelector) > 0 || c.NodeAffinity != nil || len(c.HostPorts) > 0 {
		return true
	}
	return len(AntiTerms(c)) > 0 || c.Affinity != nil && len(c.Affinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 ||
		slices.ContainsFunc(c.Spread, func(s corev1.TopologySpreadConstraint) bool { return s.WhenUnsatisfiable == corev1.DoNotSchedule })
}
