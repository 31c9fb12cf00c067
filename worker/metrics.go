package worker

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/activities"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/internal/metrics"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/starter"
	"github.com/tenon-sh/tenon/starter/status"
	"github.com/tenon-sh/tenon/worker/clustermetrics"
)

// exported are the metrics of a worker that do not belong to one of its other parts. docs/reference/metrics.md lists them all.
type exported struct {
	// limits says how far the budgets and rates of the whole cluster, and the rates of NodePools, are used up.
	limits   func() []plan.Limit
	registry prometheus.Registerer
	set      *metrics.Set
	plans    *clustermetrics.Plans
	changes  *clustermetrics.Changes
	state    *clustermetrics.State
	// unhealthy counts a node that is terminated because of a condition.
	unhealthy func(claim *karpv1.NodeClaim, condition corev1.NodeConditionType)
	// leads says that this worker holds the Lease, so that it exports what is told of the cluster as a whole.
	leads atomic.Bool
}

// newExported registers the metrics. Those of the cluster's present state follow with describe.
func newExported(registry prometheus.Registerer, kind cloud.Kind, version, commit string) *exported {
	e := &exported{registry: registry}
	e.set = metrics.NewSet(registry, func(by metrics.By) bool { return by != metrics.Leader || e.leads.Load() })
	e.plans = clustermetrics.NewPlans(e.set)
	e.changes = clustermetrics.NewChanges(e.set, kind, e.plans)
	e.set.Gauge("karpenter_build_info").WithLabelValues(version, runtime.Version(), runtime.GOARCH, commit).Set(1)
	countAPI(e.set)
	countLease(e.set)
	unhealthy := e.set.Counter("karpenter_nodeclaims_unhealthy_disrupted_total")
	e.unhealthy = func(claim *karpv1.NodeClaim, condition corev1.NodeConditionType) {
		unhealthy.WithLabelValues(metrics.SnakeCase(string(condition)), claim.Labels[karpv1.NodePoolLabelKey], claim.Labels[karpv1.CapacityTypeLabelKey], claim.Status.ImageID).Inc()
	}
	timeouts := e.set.Counter("karpenter_voluntary_disruption_consolidation_timeouts_total")
	for _, kind := range []string{"multi", "single"} {
		timeouts.WithLabelValues(kind)
	}
	return e
}

// activities makes the metrics of activities.
func (e *exported) activities() *activities.Metrics {
	return activities.NewMetrics(e.set, e.plans.Planned)
}

// describe registers the metrics of the cluster's present state. It returns what went wrong with any of the metrics.
func (e *exported) describe(mirror *cluster.Mirror, kind cloud.Kind, pools func(context.Context) []plan.Pool, used func(*plan.Snapshot) []plan.Limit) error {
	e.state = clustermetrics.NewState(mirror, kind, pools)
	e.set.Collect(metrics.Leader, e.state)
	e.limits = func() []plan.Limit { return used(mirror.Snapshot()) }
	e.set.Collect(metrics.Leader, limits{e.limits})
	e.set.Collect(metrics.Every, staleness{metrics.Desc("tenon_mirror_staleness_seconds"), mirror})
	return e.set.Err()
}

// partMetrics are the metrics that activities and edges register themselves.
type partMetrics struct {
	sweeps        *activities.SweepMetrics
	growth        *activities.GrowthMetrics
	interruptions *starter.InterruptionMetrics
	pauses        *starter.PauseMetrics
	observations  *starter.ObservationMetrics
	rollouts      *status.RolloutMetrics
	approvals     *starter.ApprovalMetrics
}

// newPartMetrics registers them.
func newPartMetrics(registry prometheus.Registerer) (m partMetrics, err error) {
	var errs [7]error
	m.sweeps, errs[0] = activities.NewSweepMetrics(registry)
	m.growth, errs[1] = activities.NewGrowthMetrics(registry)
	m.interruptions, errs[2] = starter.NewInterruptionMetrics(registry)
	m.pauses, errs[3] = starter.NewPauseMetrics(registry)
	m.observations, errs[4] = starter.NewObservationMetrics(registry)
	m.rollouts, errs[5] = status.NewRolloutMetrics(registry)
	m.approvals, errs[6] = starter.NewApprovalMetrics(registry)
	return m, errors.Join(errs[:]...)
}

// observed returns a function that asks which nodes may be disrupted, and tells the metrics what was found.
func (e *exported) observed(disrupt func(context.Context, *plan.Snapshot) plan.Disruption) func(context.Context, *plan.Snapshot) plan.Disruption {
	return func(ctx context.Context, snapshot *plan.Snapshot) plan.Disruption {
		found := disrupt(ctx, snapshot)
		e.state.Evaluated(found)
		return found
	}
}

// staleness tells the age of the mirror. A mirror that is not complete yet has none.
type staleness struct {
	desc   *prometheus.Desc
	mirror *cluster.Mirror
}

// Describe implements prometheus.Collector.
func (s staleness) Describe(to chan<- *prometheus.Desc) { to <- s.desc }

// Collect implements prometheus.Collector.
func (s staleness) Collect(to chan<- prometheus.Metric) {
	if age := s.mirror.Staleness(); age < math.MaxInt64 {
		to <- prometheus.MustNewConstMetric(s.desc, prometheus.GaugeValue, age.Seconds())
	}
}
