// Package clustermetrics are the metrics of a cluster as a worker's mirror shows it: its Nodes, pods, NodePools, conditions,
// offerings and drains. Their names are Karpenter's.
//
// What is now is computed when Prometheus asks (State), from what the mirror holds, so that it costs nothing in between and never
// is out of date. What has happened is counted when the mirror hears of it (Changes). Only the worker that holds the Lease exports
// either, so that several workers with a mirror each count nothing twice.
//
// Reading order: sample, nodelabels, state, nodes, pods, pools, offerings, drains, conditions, clustermetrics, conditionchanges, plans, changes.
package clustermetrics

import (
	"context"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/metrics"
	"github.com/tenon-sh/tenon/plan"
)

// staleAfter is how old the mirror may be for the cluster's state to count as synchronized: as old as for readiness.
const staleAfter = 30 * time.Second

// scrapeFor bounds what one scrape waits for the cloud's catalogue, which is usually in memory.
const scrapeFor = 5 * time.Second

// Describe implements prometheus.Collector.
func (s *State) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range descs {
		to <- desc
	}
}

// Collect implements prometheus.Collector.
func (s *State) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeFor)
	defer cancel()
	now := s.now()
	snapshot, pods := s.mirror.Snapshot(), s.mirror.PodsSeen()
	nodes := s.mirror.Nodes()
	pools := s.pools(ctx)

	s.collectSync(to, snapshot)
	s.collectNodes(to, nodes, pods, now)
	s.collectPods(to, nodes, pods, now)
	s.collectPools(to, snapshot, pools)
	s.collectEligible(to)
	collectOfferings(to, pools)
	collectDrains(to, nodes, now)
	s.collectConditions(to, nodes, now)
}

// collectSync tells how current the view of the cluster is, and how much is in it.
func (s *State) collectSync(to chan<- prometheus.Metric, snapshot *plan.Snapshot) {
	stale, synced, unsynced := s.mirror.Staleness(), 1.0, 0.0
	if stale > staleAfter {
		synced = 0
		if stale < math.MaxInt64 {
			unsynced = stale.Seconds()
		}
	}
	to <- gauge(descSynced, synced)
	to <- gauge(descUnsynced, unsynced)
	to <- gauge(descNodeCount, float64(len(snapshot.Nodes)))
}

// Evaluated records what an evaluation of all nodes has found.
func (s *State) Evaluated(found plan.Disruption) {
	eligible := map[karpv1.DisruptionReason]map[string]bool{}
	for _, reason := range plan.DisruptionReasons() {
		eligible[reason] = map[string]bool{}
	}
	for _, command := range found.Commands {
		for _, node := range command.Nodes {
			eligible[command.Reason][node] = true
		}
	}
	for _, verdict := range found.Verdicts {
		switch verdict.Cause {
		case plan.CauseBudget, plan.CauseBuffer, plan.CausePrice, plan.CauseRoom:
			eligible[verdict.Reason][verdict.Node] = true
		}
	}
	counts := map[karpv1.DisruptionReason]int{}
	for reason, nodes := range eligible {
		counts[reason] = len(nodes)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.eligible = counts
}

func (s *State) collectEligible(to chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for reason, count := range s.eligible {
		to <- gauge(descEligible, float64(count), pair("reason", metrics.LabelName(string(reason))))
	}
}
