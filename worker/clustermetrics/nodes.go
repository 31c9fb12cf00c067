package clustermetrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/internal/metrics"
	"github.com/tenon-sh/tenon/plan"
)

// load is what the pods on a node request, and their limits.
type load struct{ requests, limits, daemonRequests, daemonLimits plan.Resources }

// loadsOf returns the loads of nodes by name.
func loadsOf(pods []cluster.PodSeen) map[string]*load {
	loads := map[string]*load{}
	for _, pod := range pods {
		if pod.Node == "" {
			continue
		}
		on := loads[pod.Node]
		if on == nil {
			on = &load{}
			loads[pod.Node] = on
		}
		limits := pod.Limits()
		on.requests, on.limits = on.requests.Add(pod.Class.Requests), on.limits.Add(limits)
		if pod.Daemon {
			on.daemonRequests, on.daemonLimits = on.daemonRequests.Add(pod.Class.Requests), on.daemonLimits.Add(limits)
		}
	}
	return loads
}

// collectNodes tells what each Node has, and what of it is used.
func (s *State) collectNodes(to chan<- prometheus.Metric, nodes []*corev1.Node, pods []cluster.PodSeen, now time.Time) {
	loads := loadsOf(pods)
	var allocatable, requested plan.Resources
	for _, node := range nodes {
		labels := s.labels.of(node, s.mirror.ClaimOfNode(node.Name) != nil)
		on := loads[node.Name]
		if on == nil {
			on = &load{}
		}
		has, whole := plan.ResourcesOf(node.Status.Allocatable), plan.ResourcesOf(node.Status.Capacity)
		allocatable, requested = allocatable.Add(has), requested.Add(on.requests)
		collectResources(to, descAllocatable, labels, node.Status.Allocatable, has)
		collectResources(to, descOverhead, labels, node.Status.Allocatable, whole.Minus(has))
		collectResources(to, descPodRequests, labels, nil, on.requests)
		collectResources(to, descPodLimits, labels, nil, on.limits)
		collectResources(to, descDaemonRequests, labels, nil, on.daemonRequests)
		collectResources(to, descDaemonLimits, labels, nil, on.daemonLimits)
		to <- gauge(descNodeAge, now.Sub(node.CreationTimestamp.Time).Seconds(), labels...)
	}
	for _, amount := range allocatable.Amounts() {
		to <- gauge(descUtilization, 100*float64(requested.Get(amount.Name))/float64(amount.Value), resourceType(amount.Name))
	}
}

// collectResources tells amounts of resources: those that are not zero, those that a list names, and always how many pods.
func collectResources(to chan<- prometheus.Metric, desc *prometheus.Desc, labels []*dto.LabelPair, named corev1.ResourceList, amounts plan.Resources) {
	for _, amount := range amounts.Amounts() {
		to <- gauge(desc, inUnits(amount.Name, amount.Value), with(labels, resourceType(amount.Name))...)
	}
	for name := range named {
		if amounts.Get(string(name)) == 0 {
			to <- gauge(desc, 0, with(labels, resourceType(string(name)))...)
		}
	}
	if named == nil && amounts.Pods == 0 {
		to <- gauge(desc, 0, with(labels, resourceType(string(corev1.ResourcePods)))...)
	}
}

// inUnits is an amount of a resource as metrics have it: cpu in cores.
func inUnits(name string, value int64) float64 {
	if name == string(corev1.ResourceCPU) {
		return float64(value) / 1000
	}
	return float64(value)
}

func resourceType(name string) *dto.LabelPair { return pair("resource_type", metrics.LabelName(name)) }
