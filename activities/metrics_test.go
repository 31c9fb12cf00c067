package activities

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tenon-sh/tenon/internal/metrics"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

func TestReasonsAreKarpenters(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		"Empty": "empty", "Underutilized": "underutilized", workflows.ReasonExpired: "expired", workflows.ReasonUnhealthy: "unhealthy",
		workflows.ReasonSpotInterrupted: "spot_interrupted", workflows.ReasonInstanceGone: "garbage_collected",
		workflows.ReasonNodeClassNotReady: "nodeclass_not_ready", workflows.ReasonInsufficient: "insufficient_capacity",
		workflows.ReasonRegistrationTimeout: "registration_timeout", reasonProvisioned: "provisioned",
	} {
		if got := reasonLabel(reason); got != want {
			t.Errorf("%s is %q, want %q", reason, got, want)
		}
	}
}

func TestDecisionsAreCountedOncePerPool(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	set := metrics.NewSet(registry, nil)
	m := NewMetrics(set, nil)
	if err := set.Err(); err != nil {
		t.Fatal(err)
	}
	node := func(claim, pool string) workflows.RemovedNode {
		return workflows.RemovedNode{Claim: workflows.ClaimRef{Name: claim}, NodePool: pool}
	}
	m.decided(workflows.Evaluation{
		Commands:     []workflows.Removal{{Reason: "Empty", Nodes: []workflows.RemovedNode{node("a", "web"), node("b", "web")}}},
		Replacements: []workflows.ReplacementCommand{{Reason: "Underutilized", Nodes: []workflows.RemovedNode{node("c", "web"), node("d", "batch")}, Claims: make([]workflows.PlannedClaim, 1)}},
	}, plan.Disruption{Commands: []plan.Command{{Reason: "Empty", Nodes: []string{"a", "b"}, SavesPerHour: 0.5}, {Reason: "Underutilized", Nodes: []string{"c", "d"}, SavesPerHour: 0.25},
		{Reason: "Drifted", Nodes: []string{"left for later"}, SavesPerHour: 9}},
		Weighed: []plan.Weighed{{NodePool: "web", Policy: "Balanced", Score: new(0.7), Passes: true}, {NodePool: "batch", Policy: "WhenEmptyOrUnderutilized", Passes: true}}})
	want := `
# HELP karpenter_consolidation_moves_total Consolidations that were weighed, by what the policy of the NodePool found. Each evaluation counts again what is still rejected.
# TYPE karpenter_consolidation_moves_total counter
karpenter_consolidation_moves_total{decision="rejected",nodepool="batch",policy="WhenEmptyOrUnderutilized"} 1
karpenter_consolidation_moves_total{decision="rejected",nodepool="web",policy="Balanced"} 1
# HELP karpenter_consolidation_score Scores of consolidations that the policy Balanced has weighed.
# TYPE karpenter_consolidation_score histogram
karpenter_consolidation_score_bucket{decision="approved",nodepool="web",policy="Balanced",le="0.1"} 0
karpenter_consolidation_score_bucket{decision="approved",nodepool="web",policy="Balanced",le="0.25"} 0
karpenter_consolidation_score_bucket{decision="approved",nodepool="web",policy="Balanced",le="0.33"} 0
karpenter_consolidation_score_bucket{decision="approved",nodepool="web",policy="Balanced",le="0.5"} 0
karpenter_consolidation_score_bucket{decision="approved",nodepool="web",policy="Balanced",le="1"} 1
karpenter_consolidation_score_bucket{decision="approved",nodepool="web",policy="Balanced",le="2"} 1
karpenter_consolidation_score_bucket{decision="approved",nodepool="web",policy="Balanced",le="5"} 1
karpenter_consolidation_score_bucket{decision="approved",nodepool="web",policy="Balanced",le="10"} 1
karpenter_consolidation_score_bucket{decision="approved",nodepool="web",policy="Balanced",le="+Inf"} 1
karpenter_consolidation_score_sum{decision="approved",nodepool="web",policy="Balanced"} 0.7
karpenter_consolidation_score_count{decision="approved",nodepool="web",policy="Balanced"} 1
# HELP karpenter_voluntary_disruption_decisions_by_nodepool_total Decisions to remove or replace nodes, by NodePool.
# TYPE karpenter_voluntary_disruption_decisions_by_nodepool_total counter
karpenter_voluntary_disruption_decisions_by_nodepool_total{consolidation_type="empty",decision="delete",nodepool="web",reason="empty"} 1
karpenter_voluntary_disruption_decisions_by_nodepool_total{consolidation_type="multi",decision="replace",nodepool="batch",reason="underutilized"} 1
karpenter_voluntary_disruption_decisions_by_nodepool_total{consolidation_type="multi",decision="replace",nodepool="web",reason="underutilized"} 1
# HELP karpenter_voluntary_disruption_decisions_total Decisions to remove or replace nodes.
# TYPE karpenter_voluntary_disruption_decisions_total counter
karpenter_voluntary_disruption_decisions_total{consolidation_type="empty",decision="delete",reason="empty"} 1
karpenter_voluntary_disruption_decisions_total{consolidation_type="multi",decision="replace",reason="underutilized"} 1
# HELP tenon_savings_per_hour_total What decided disruptions save per hour, added up, in the currency of the region's prices.
# TYPE tenon_savings_per_hour_total counter
tenon_savings_per_hour_total{nodepool="web",reason="empty"} 0.5
tenon_savings_per_hour_total{nodepool="web",reason="underutilized"} 0.25
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "karpenter_voluntary_disruption_decisions_total",
		"karpenter_voluntary_disruption_decisions_by_nodepool_total", "karpenter_consolidation_moves_total", "karpenter_consolidation_score", "tenon_savings_per_hour_total"); err != nil {
		t.Error(err)
	}
}
