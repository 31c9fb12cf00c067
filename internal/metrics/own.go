package metrics

// ownRows are the metrics that Karpenter does not have.
var ownRows = []row{
	{name: "tenon_acting", by: Every, kind: Gauge, verdict: Own,
		help: "1 while this worker acts on the cluster; 0 while it only observes, because another controller holds the Lease or the API server is not heard."},
	{name: "tenon_temporal_up", by: Every, kind: Gauge, verdict: Own,
		help: "1 while the Temporal server answers for the worker's namespace; 0 when it has not for 15 seconds."},
	{name: "tenon_version_current", by: Every, kind: Gauge, labels: "build_id", verdict: Own,
		help: "1 while Temporal sends the cluster's tasks to the build of this worker."},
	{name: "tenon_mirror_staleness_seconds", by: Every, kind: Gauge, verdict: Own,
		help: "Age of this worker's view of the cluster; absent until the view is complete. Nothing is planned or disrupted on a view older than 15 seconds."},

	{name: "tenon_plan_duration_seconds", by: Every, kind: Histogram, buckets: durations, verdict: Own,
		help: "Time from the end of the batch window of pending pods until their NodeClaims are created."},
	{name: "tenon_evaluation_duration_seconds", by: Every, kind: Histogram, buckets: durations, verdict: Own,
		help: "Duration of an evaluation that Disruption asked for, reading of the cluster included."},
	{name: "tenon_growth_paused_pods", by: Every, kind: Gauge, verdict: Own,
		help: "Pending pods that get no further node for now, because the kube-scheduler placed them on none of those that were launched for them."},
	{name: "tenon_growth_pauses_total", by: Every, kind: Counter, verdict: Own,
		help: "How often launching further nodes for a pod was paused."},

	{name: "tenon_drains", by: Leader, kind: Gauge, verdict: Own,
		help: "Nodes that are being drained."},
	{name: "tenon_blocked_drains", by: Leader, kind: Gauge, verdict: Own,
		help: "Nodes whose drain waits because something holds their pods."},
	{name: "tenon_blocked_drain_oldest_seconds", by: Leader, kind: Gauge, verdict: Own,
		help: "For how long the drain that is blocked the longest has been blocked; 0 if none is."},

	{name: "tenon_nodes_price_per_hour", by: Leader, kind: Gauge, labels: "nodepool capacity_type", verdict: Own,
		help: "What the nodes of NodePools cost per hour, in the currency of the region's prices."},
	{name: "tenon_nodes_without_price", by: Leader, kind: Gauge, labels: "nodepool", verdict: Own,
		help: "Nodes of NodePools whose price is not known."},
	{name: "tenon_savings_per_hour_total", by: Every, kind: Counter, labels: "nodepool reason", verdict: Own,
		help: "What decided disruptions save per hour, added up, in the currency of the region's prices."},

	{name: "tenon_temporal_actions_total", by: Every, kind: Counter, labels: "action", verdict: Own,
		help: "What Temporal Cloud bills as actions: workflows, activities, timers, signals, queries, updates and heartbeats."},

	{name: "tenon_sweep_last_finished_timestamp_seconds", by: Every, kind: Gauge, verdict: Own,
		help: "When this worker last finished a sweep; zero if it never did."},
	{name: "tenon_sweep_stopped", by: Every, kind: Gauge, verdict: Own,
		help: "1 if the last sweep terminated no node because the claims of most workflows, or the owners of most instances, had vanished at once."},
	{name: "tenon_sweep_withheld_nodes", by: Every, kind: Gauge, verdict: Own,
		help: "Nodes that the last sweep left to the next one, since one sweep may end only so many."},
	{name: "tenon_sweep_stuck_workflows", by: Every, kind: Gauge, verdict: Own,
		help: "Workflows that are stuck, at most 20: their code may not fit their history."},
	{name: "tenon_sweep_failures_total", by: Every, kind: Counter, verdict: Own,
		help: "Objects that a sweep could not put right."},
}
