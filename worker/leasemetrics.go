package worker

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/tenon-sh/tenon/internal/metrics"
)

// countLease tells whether this worker holds the Lease. client-go takes such a provider once.
func countLease(set *metrics.Set) {
	leaderelection.SetProvider(leaseMetrics{set.Gauge("leader_election_master_status"), set.Counter("leader_election_slowpath_total")})
}

// leaseMetrics implements the interfaces of client-go's leader election.
type leaseMetrics struct {
	holds *prometheus.GaugeVec
	slow  *prometheus.CounterVec
}

// NewLeaderMetric implements leaderelection.MetricsProvider.
func (l leaseMetrics) NewLeaderMetric() leaderelection.LeaderMetric { return l }

// On implements leaderelection.LeaderMetric.
func (l leaseMetrics) On(name string) { l.holds.WithLabelValues(name).Set(1) }

// Off implements leaderelection.LeaderMetric.
func (l leaseMetrics) Off(name string) { l.holds.WithLabelValues(name).Set(0) }

// SlowpathExercised implements leaderelection.LeaderMetric.
func (l leaseMetrics) SlowpathExercised(name string) { l.slow.WithLabelValues(name).Inc() }
