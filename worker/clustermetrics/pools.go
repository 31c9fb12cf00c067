package clustermetrics

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/metrics"
	"github.com/tenon-sh/tenon/plan"
)

// collectPools tells what NodePools use, may use and cost, and how many of their nodes may be disrupted.
func (s *State) collectPools(to chan<- prometheus.Metric, snapshot *plan.Snapshot, pools []plan.Pool) {
	for _, pool := range snapshot.NodePools {
		for _, amounts := range []struct {
			desc *prometheus.Desc
			list corev1.ResourceList
		}{{descUsage, pool.Status.Resources}, {descLimit, corev1.ResourceList(pool.Spec.Limits)}} {
			known := plan.ResourcesOf(amounts.list)
			for name := range amounts.list {
				to <- gauge(amounts.desc, inUnits(string(name), known.Get(string(name))), pair("nodepool", pool.Name), pair("resource_type", metrics.LabelName(string(name))))
			}
		}
	}
	in := plan.Input{Snapshot: snapshot, Pools: pools}
	for _, of := range plan.Allowances(in) {
		labels := pair("nodepool", of.NodePool)
		reason := pair("reason", string(of.Reason))
		to <- gauge(descAllowed, float64(of.Left), labels, reason)
		to <- gauge(descConsuming, float64(of.Disrupting), labels, reason)
	}
	collectPrices(to, in)
}

// collectPrices tells what the nodes of NodePools cost.
func collectPrices(to chan<- prometheus.Metric, in plan.Input) {
	total, unpriced := map[string]float64{}, map[string]int{}
	type part struct{ pool, capacityType string }
	parts := map[part]float64{}
	for _, pool := range in.Snapshot.NodePools {
		total[pool.Name], unpriced[pool.Name] = 0, 0
	}
	priceOf := plan.NodePrices(in)
	for _, node := range in.Snapshot.Nodes {
		if _, ours := total[node.Pool]; !ours || !node.Launched {
			continue
		}
		price, known := priceOf(node)
		if !known {
			unpriced[node.Pool]++
			continue
		}
		total[node.Pool] += price
		parts[part{node.Pool, node.CapacityType}] += price
	}
	for pool, price := range total {
		to <- gauge(descCost, price, pair("nodepool", pool))
		to <- gauge(descUnpriced, float64(unpriced[pool]), pair("nodepool", pool))
	}
	for of, price := range parts {
		to <- gauge(descPrice, price, pair("capacity_type", of.capacityType), pair("nodepool", of.pool))
	}
}
