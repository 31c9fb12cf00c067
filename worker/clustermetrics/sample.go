package clustermetrics

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/tenon-sh/tenon/internal/metrics"
)

// descs are what State exports.
var descs []*prometheus.Desc

func describe(name string) *prometheus.Desc {
	desc := metrics.Desc(name)
	descs = append(descs, desc)
	return desc
}

// The metrics of State.
var (
	descSynced    = describe("karpenter_cluster_state_synced")
	descUnsynced  = describe("karpenter_cluster_state_unsynced_time_seconds")
	descNodeCount = describe("karpenter_cluster_state_node_count")
	descEligible  = describe("karpenter_voluntary_disruption_eligible_nodes")

	descAllocatable    = describe("karpenter_nodes_allocatable")
	descPodRequests    = describe("karpenter_nodes_total_pod_requests")
	descPodLimits      = describe("karpenter_nodes_total_pod_limits")
	descDaemonRequests = describe("karpenter_nodes_total_daemon_requests")
	descDaemonLimits   = describe("karpenter_nodes_total_daemon_limits")
	descOverhead       = describe("karpenter_nodes_system_overhead")
	descNodeAge        = describe("karpenter_nodes_current_lifetime_seconds")
	descUtilization    = describe("karpenter_cluster_utilization_percent")

	descPodState      = describe("karpenter_pods_state")
	descUnstarted     = describe("karpenter_pods_unstarted_time_seconds")
	descUnbound       = describe("karpenter_pods_unbound_time_seconds")
	descUndecided     = describe("karpenter_pods_provisioning_scheduling_undecided_time_seconds")
	descUnschedulable = describe("karpenter_scheduler_unschedulable_pods_count")
	descQueueDepth    = describe("karpenter_scheduler_queue_depth")
	descPendingZones  = describe("karpenter_scheduler_pending_pods_by_effective_zone_count")

	descUsage     = describe("karpenter_nodepools_usage")
	descLimit     = describe("karpenter_nodepools_limit")
	descConsuming = describe("karpenter_nodepools_nodes_consuming_budgets")
	descAllowed   = describe("karpenter_nodepools_allowed_disruptions")
	descCost      = describe("karpenter_nodepools_cost_total")
	descPrice     = describe("tenon_nodes_price_per_hour")
	descUnpriced  = describe("tenon_nodes_without_price")

	descTypeCPU        = describe("karpenter_cloudprovider_instance_type_cpu_cores")
	descTypeMemory     = describe("karpenter_cloudprovider_instance_type_memory_bytes")
	descAvailable      = describe("karpenter_cloudprovider_instance_type_offering_available")
	descPriceEstimates = describe("karpenter_cloudprovider_instance_type_offering_price_estimate")

	descDrains        = describe("tenon_drains")
	descBlockedDrains = describe("tenon_blocked_drains")
	descBlockedOldest = describe("tenon_blocked_drain_oldest_seconds")
)

// sample is one value of a gauge. Unlike the library's own constant metrics it takes labels that are made once for many values,
// and leaves out labels without a value.
type sample struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	value  float64
}

// Desc implements prometheus.Metric.
func (s *sample) Desc() *prometheus.Desc { return s.desc }

// Write implements prometheus.Metric.
func (s *sample) Write(to *dto.Metric) error {
	to.Label, to.Gauge = s.labels, &dto.Gauge{Value: &s.value}
	return nil
}

// gauge returns a value. The labels are ordered by name.
func gauge(desc *prometheus.Desc, value float64, labels ...*dto.LabelPair) prometheus.Metric {
	return &sample{desc, labels, value}
}

func pair(name, value string) *dto.LabelPair { return &dto.LabelPair{Name: &name, Value: &value} }

// sortedPairs orders labels by name and leaves out those without a value.
func sortedPairs(labels []*dto.LabelPair) []*dto.LabelPair {
	labels = slices.DeleteFunc(labels, func(l *dto.LabelPair) bool { return l.GetValue() == "" })
	slices.SortFunc(labels, func(a, b *dto.LabelPair) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return labels
}

// with returns sorted labels and one more.
func with(labels []*dto.LabelPair, more *dto.LabelPair) []*dto.LabelPair {
	at, _ := slices.BinarySearchFunc(labels, more.GetName(), func(l *dto.LabelPair, name string) int { return cmp.Compare(l.GetName(), name) })
	all := make([]*dto.LabelPair, 0, len(labels)+1)
	return append(append(append(all, labels[:at]...), more), labels[at:]...)
}
