package activities

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/metrics"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// reasonProvisioned is Karpenter's reason of NodeClaims that are created for pods, or that static pools lack.
const reasonProvisioned = "provisioned"

// Metrics counts what activities do, under Karpenter's names where it has one. Each worker counts its own. A nil Metrics counts
// nothing.
type Metrics struct {
	created, disrupted                           *prometheus.CounterVec
	decisions, byPool, savings, moves            *prometheus.CounterVec
	undone, invalid                              *prometheus.CounterVec
	evictions, drained                           *prometheus.CounterVec
	scheduling, planning, evaluation, disruption *prometheus.HistogramVec
	scores                                       *prometheus.HistogramVec
	// began is when the plan under way began, in nanoseconds of Unix time; zero while there is none.
	began atomic.Int64
	// placed is told of the pods that plans place; nil if nobody is.
	placed func(pending []*plan.Pod, unplaced []plan.Unplaced, now time.Time)
}

// NewMetrics makes the metrics in a set. placed is told which of the pending pods a plan has a place for.
func NewMetrics(set *metrics.Set, placed func(pending []*plan.Pod, unplaced []plan.Unplaced, now time.Time)) *Metrics {
	m := &Metrics{
		created:    set.Counter("karpenter_nodeclaims_created_total"),
		disrupted:  set.Counter("karpenter_nodeclaims_disrupted_total"),
		decisions:  set.Counter("karpenter_voluntary_disruption_decisions_total"),
		byPool:     set.Counter("karpenter_voluntary_disruption_decisions_by_nodepool_total"),
		savings:    set.Counter("tenon_savings_per_hour_total"),
		moves:      set.Counter("karpenter_consolidation_moves_total"),
		scores:     set.Histogram("karpenter_consolidation_score"),
		undone:     set.Counter("karpenter_voluntary_disruption_queue_failures_total"),
		invalid:    set.Counter("karpenter_voluntary_disruption_failed_validations_total"),
		evictions:  set.Counter("karpenter_pods_eviction_requests_total"),
		drained:    set.Counter("karpenter_pods_drained_total"),
		scheduling: set.Histogram("karpenter_scheduler_scheduling_duration_seconds"),
		planning:   set.Histogram("tenon_plan_duration_seconds"),
		evaluation: set.Histogram("tenon_evaluation_duration_seconds"),
		disruption: set.Histogram("karpenter_voluntary_disruption_decision_evaluation_duration_seconds"),
		placed:     placed,
	}
	set.Collect(metrics.Every, unfinished{metrics.Desc("karpenter_scheduler_unfinished_work_seconds"), &m.began})
	return m
}

// unfinished tells how long the plan under way has taken so far.
type unfinished struct {
	desc  *prometheus.Desc
	began *atomic.Int64
}

// Describe implements prometheus.Collector.
func (u unfinished) Describe(to chan<- *prometheus.Desc) { to <- u.desc }

// Collect implements prometheus.Collector.
func (u unfinished) Collect(to chan<- prometheus.Metric) {
	took := time.Duration(0)
	if began := u.began.Load(); began != 0 {
		took = time.Since(time.Unix(0, began))
	}
	to <- prometheus.MustNewConstMetric(u.desc, prometheus.GaugeValue, took.Seconds(), "provisioner", "")
}

// planBegins records that a plan begins.
func (m *Metrics) planBegins(at time.Time) {
	if m != nil {
		m.began.Store(at.UnixNano())
	}
}

// karpentersReasons are Karpenter's words for reasons that are not merely spelt differently.
var karpentersReasons = map[string]string{
	workflows.ReasonInstanceGone: "garbage_collected", workflows.ReasonNodeClassNotReady: "nodeclass_not_ready",
	workflows.ReasonInstanceStopping: "instance_stopped", workflows.ReasonRebalanceRecommended: "rebalance_recommendation",
}

// reasonLabel writes a reason as Karpenter's metrics do: SpotInterrupted as spot_interrupted.
func reasonLabel(reason string) string {
	if known := karpentersReasons[reason]; known != "" {
		return known
	}
	return metrics.SnakeCase(reason)
}

// claimCreated counts a NodeClaim that was created, for a reason of disruption or for pods.
func (m *Metrics) claimCreated(claim *karpv1.NodeClaim, reason string) {
	if m == nil {
		return
	}
	relaxed := claim.Annotations[karpv1.NodeClaimMinValuesRelaxedAnnotationKey] == "true"
	m.created.WithLabelValues(reasonLabel(reason), claim.Labels[karpv1.NodePoolLabelKey], strconv.FormatBool(relaxed)).Inc()
}

// claimDeleted counts a NodeClaim that Tenon has deleted. What people ask for is no disruption.
func (m *Metrics) claimDeleted(claim *karpv1.NodeClaim, reason string) {
	if m == nil || reason == workflows.ReasonClaimDeleted || reason == workflows.ReasonNodeDeleted || reason == workflows.ReasonManualDrain || reason == workflows.ReasonManualReplacement {
		return
	}
	m.disrupted.WithLabelValues(reasonLabel(reason), claim.Labels[karpv1.NodePoolLabelKey], claim.Labels[karpv1.CapacityTypeLabelKey]).Inc()
}

// decided counts what an evaluation has weighed, its decisions, and what they save.
func (m *Metrics) decided(result workflows.Evaluation, found plan.Disruption) {
	if m == nil {
		return
	}
	count := func(reason string, nodes []workflows.RemovedNode, replacements int) {
		decision, kind := "delete", consolidationType(reason, len(nodes))
		if replacements > 0 {
			decision = "replace"
		}
		m.decisions.WithLabelValues(decision, reasonLabel(reason), kind).Inc()
		counted := map[string]bool{}
		for _, node := range nodes {
			if !counted[node.NodePool] {
				counted[node.NodePool] = true
				m.byPool.WithLabelValues(node.NodePool, decision, reasonLabel(reason), kind).Inc()
			}
		}
	}
	for _, removal := range result.Commands {
		count(removal.Reason, removal.Nodes, 0)
	}
	pools := map[string]string{}
	for _, replacement := range result.Replacements {
		count(replacement.Reason, replacement.Nodes, len(replacement.Claims))
		for _, node := range replacement.Nodes {
			pools[node.Claim.Name] = node.NodePool
		}
	}
	for _, removal := range result.Commands {
		for _, node := range removal.Nodes {
			pools[node.Claim.Name] = node.NodePool
		}
	}
	for _, w := range found.Weighed {
		m.moves.WithLabelValues(judgement(w.Approved), w.NodePool, string(w.Policy)).Inc()
		if w.Score != nil {
			m.scores.WithLabelValues(judgement(w.Passes), w.NodePool, string(w.Policy)).Observe(*w.Score)
		}
	}
	for _, command := range found.Commands {
		if pool, taken := pools[first(command.Nodes)]; taken && command.SavesPerHour > 0 {
			m.savings.WithLabelValues(pool, reasonLabel(string(command.Reason))).Add(command.SavesPerHour)
		}
	}
}

// judgement is Karpenter's word for what a policy found of a consolidation.
func judgement(approved bool) string {
	if approved {
		return "approved"
	}
	return "rejected"
}

// first returns the first of some names; empty for none.
func first(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// consolidationType is Karpenter's word for the way in which nodes were found not to be needed.
func consolidationType(reason string, nodes int) string {
	switch karpv1.DisruptionReason(reason) {
	case karpv1.DisruptionReasonEmpty:
		return "empty"
	case karpv1.DisruptionReasonUnderutilized:
		if nodes > 1 {
			return "multi"
		}
		return "single"
	}
	return ""
}

// replacementUndone counts a replacement that was taken back.
func (m *Metrics) replacementUndone(claims int) {
	if m != nil {
		decision := "delete"
		if claims > 0 {
			decision = "replace"
		}
		m.undone.WithLabelValues(decision, "", "").Inc()
	}
}

// keptAtLast counts nodes that were to be removed and that the last check keeps.
func (m *Metrics) keptAtLast(reason string, nodes int) {
	if m != nil && nodes > 0 {
		m.invalid.WithLabelValues(consolidationType(reason, nodes)).Add(float64(nodes))
	}
}

// evictionAsked counts a request to evict a pod by the code of its answer.
func (m *Metrics) evictionAsked(code int32) {
	if m != nil {
		m.evictions.WithLabelValues(strconv.Itoa(int(code))).Inc()
	}
}

// podDrained counts a pod that a drain has evicted.
func (m *Metrics) podDrained(reason string) {
	if m != nil {
		m.drained.WithLabelValues(reasonLabel(reason)).Inc()
	}
}

// planned measures a plan, and records which pods it has a place for.
func (m *Metrics) planned(pending []*plan.Pod, packed plan.Plan, took time.Duration, now time.Time) {
	if m == nil {
		return
	}
	m.began.Store(0)
	m.scheduling.WithLabelValues("provisioner").Observe(took.Seconds())
	if m.placed != nil {
		m.placed(pending, packed.Unplaced, now)
	}
}

// planCarriedOut measures a plan with the creation of its claims.
func (m *Metrics) planCarriedOut(took time.Duration) {
	if m != nil {
		m.planning.WithLabelValues().Observe(took.Seconds())
	}
}

// judged measures how long the planner took for all nodes.
func (m *Metrics) judged(took time.Duration) {
	if m != nil {
		m.scheduling.WithLabelValues("disruption").Observe(took.Seconds())
		m.disruption.WithLabelValues("", "").Observe(took.Seconds())
	}
}

// evaluated measures an evaluation that Disruption asked for.
func (m *Metrics) evaluated(took time.Duration) {
	if m != nil {
		m.evaluation.WithLabelValues().Observe(took.Seconds())
	}
}
