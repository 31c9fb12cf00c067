package worker

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tenon-sh/tenon/internal/metrics"
	"github.com/tenon-sh/tenon/plan"
)

// limits tells how far the budgets and rates of the whole cluster, and the rates of NodePools, are used up.
type limits struct{ now func() []plan.Limit }

// The metrics of limits.
var (
	descBudgetAllowed   = metrics.Desc("tenon_budget_allowed")
	descBudgetUsed      = metrics.Desc("tenon_budget_used")
	descBudgetRemaining = metrics.Desc("tenon_budget_remaining")
)

// Describe implements prometheus.Collector.
func (l limits) Describe(to chan<- *prometheus.Desc) {
	to <- descBudgetAllowed
	to <- descBudgetUsed
	to <- descBudgetRemaining
}

// Collect implements prometheus.Collector.
func (l limits) Collect(to chan<- prometheus.Metric) {
	for _, limit := range l.now() {
		kind := "budget"
		if limit.Rate {
			kind = "rate"
		}
		for desc, value := range map[*prometheus.Desc]int{descBudgetAllowed: limit.Allowed, descBudgetUsed: limit.Used, descBudgetRemaining: limit.Left} {
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), kind, limit.NodePool, string(limit.Reason))
		}
	}
}
