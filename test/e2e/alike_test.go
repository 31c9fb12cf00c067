package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/tenon-sh/tenon/test/ui"
	"github.com/tenon-sh/tenon/test/world"
	"github.com/tenon-sh/tenon/workflows"
)

// The limits of DESIGN.md for the cost of an uneventful node life, without and with its heartbeats. idlePerHour limits the
// actions of an hour in which nothing happens.
const (
	actionsPerLife = 12
	beatenPerLife  = 20
	eventsPerLife  = 50
	idlePerHour    = 30
)

// alikeNodes lets twenty identical nodes live an uneventful life: they are launched together, serve, and leave when they are
// empty. The histories show what that has cost Temporal. While the nodes serve, the cluster is idle, and the histories may
// grow by nothing but the sweep.
func alikeNodes(t *testing.T, w *world.World) {
	const nodes, pool = 20, "alike"
	before := eventsOf(w)
	w.Apply(nodePool(pool, "10s", append(types("m5.large"), onDemand)))
	w.Apply(deployment(pool, "app", nodes, "cpu: 1500m", of(pool)))
	w.AwaitRunning(pool, nodes, 3*time.Minute)
	w.Await("all nodes initialized", time.Minute, func() (bool, string) {
		serving := len(w.Executions(fmt.Sprintf("WorkflowType = %q AND NodePool = %q AND Phase = %q AND ExecutionStatus = 'Running'", workflows.NodeClaimType, pool, workflows.PhaseServing)))
		return serving == nodes, fmt.Sprintf("%d of %d serve", serving, nodes)
	})
	idle(t, w)
	seen(t, w, pool)

	w.Apply(deployment(pool, "app", 0, "cpu: 1500m", of(pool)))
	w.AwaitNothing(3 * time.Minute)
	w.Await("all workflows of the nodes closed", time.Minute, func() (bool, string) {
		open := len(w.Executions(fmt.Sprintf("NodePool = %q AND ExecutionStatus = 'Running'", pool)))
		return open == 0, fmt.Sprintf("%d are open", open)
	})
	count(t, w, before, nodes)
	record(w, pool)
	w.DeletePool(pool)
}

// count compares what the node lives have cost since then with the limits.
func count(t *testing.T, w *world.World, before map[string]int, nodes int) {
	byType, total := map[string]world.Cost{}, world.Cost{}
	for _, run := range w.Runs("") {
		since := run.Events[before[run.RunID]:]
		if run.Type == workflows.SweepType || !strings.HasPrefix(run.ID, w.Lab.Cluster()+"/") || len(since) == 0 {
			continue
		}
		cost := world.CostOf(since)
		byType[run.Type] = byType[run.Type].Add(cost)
		total = total.Add(cost)
	}
	share := func(n int) float64 { return float64(n) / float64(nodes) }
	for name, cost := range byType {
		t.Logf("%-12s %3d runs: %5.2f actions, %5.2f events and at most %.2f heartbeats per node life", name, cost.Runs, share(cost.Actions), share(cost.Events), share(cost.Heartbeats))
	}
	t.Logf("together: %.2f actions and %.2f events per node life, and at most %.2f heartbeats", share(total.Actions), share(total.Events), share(total.Heartbeats))
	if lives := byType[workflows.NodeClaimType].Runs; lives != nodes {
		t.Errorf("%d NodeClaim workflows for %d nodes", lives, nodes)
	}
	if share(total.Actions) > actionsPerLife || share(total.Events) > eventsPerLife {
		t.Errorf("a node life costs %.2f actions and %.2f events, want at most %d and %d", share(total.Actions), share(total.Events), actionsPerLife, eventsPerLife)
	}
	if beaten := share(total.Actions + total.Heartbeats); beaten > beatenPerLife {
		t.Errorf("a node life costs up to %.2f actions with its heartbeats, want at most %d", beaten, beatenPerLife)
	}
}

// record keeps a history of every workflow that took part.
func record(w *world.World, pool string) {
	if os.Getenv(world.RecordEnv) == "" {
		return
	}
	cluster := workflows.Cluster(w.Lab.Cluster())
	w.RecordLatest(cluster.ProvisioningID(), "of-a-day")
	w.RecordLatest(cluster.DisruptionID(), "of-a-day")
	for workflowType, what := range map[string]string{workflows.LaunchType: "together", workflows.NodeClaimType: "uneventful", workflows.DrainType: "uneventful"} {
		w.Record(w.Runs(fmt.Sprintf("WorkflowType = %q AND NodePool = %q", workflowType, pool))[0], what)
	}
	w.Record(w.Runs(fmt.Sprintf("WorkflowType = %q AND ExecutionStatus = 'Completed'", workflows.SweepType))[0], "uneventful")
}

// idle observes an idle cluster for the time of two sweeps.
func idle(t *testing.T, w *world.World) {
	const sweeps = 2
	// A timer that a signal has overtaken still fires once; nothing is decided for it.
	disruption := workflows.Cluster(w.Lab.Cluster()).DisruptionID()
	w.Await("no timer of Disruption left", 3*time.Minute, func() (bool, string) {
		n := openTimers(w, disruption)
		return n == 0, fmt.Sprintf("%d timers run", n)
	})
	before, began := eventsOf(w), time.Now()
	w.Await("two sweeps while nothing happens", 3*time.Minute, func() (bool, string) {
		closed := 0
		for _, run := range w.Executions(fmt.Sprintf("WorkflowType = %q AND ExecutionStatus = 'Completed'", workflows.SweepType)) {
			if before[run.GetExecution().GetRunId()] == 0 {
				closed++
			}
		}
		return closed >= sweeps, fmt.Sprintf("%d sweeps", closed)
	})
	watched, cost := time.Since(began), world.Cost{}
	for _, run := range w.Runs("") {
		since := run.Events[before[run.RunID]:]
		switch {
		case run.Type == workflows.SweepType && before[run.RunID] == 0 && run.Status == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
			cost = cost.Add(world.CostOf(since))
		case run.Type != workflows.SweepType && strings.HasPrefix(run.ID, w.Lab.Cluster()+"/") && len(since) > 0:
			t.Errorf("%s has %d new events in an idle cluster, the first is %s", run.ID, len(since), since[0].GetEventType())
		}
	}
	perSweep := float64(cost.Actions) / float64(cost.Runs)
	perHour := perSweep * float64(time.Hour/workflows.SweepNet)
	t.Logf("idle for %.0fs: no action but the sweep's, which are %.1f actions and %.1f events each, that is %.0f actions per hour at its interval of %s",
		watched.Seconds(), perSweep, float64(cost.Events)/float64(cost.Runs), perHour, workflows.SweepNet)
	if perHour > idlePerHour {
		t.Errorf("an idle hour costs %.0f actions, want at most %d", perHour, idlePerHour)
	}
}

// openTimers counts the timers of a workflow that have neither fired nor been canceled.
func openTimers(w *world.World, id string) int {
	open := map[int64]bool{}
	for _, event := range w.History(id, "") {
		switch {
		case event.GetEventType() == enumspb.EVENT_TYPE_TIMER_STARTED:
			open[event.GetEventId()] = true
		case event.GetTimerFiredEventAttributes() != nil:
			delete(open, event.GetTimerFiredEventAttributes().GetStartedEventId())
		case event.GetTimerCanceledEventAttributes() != nil:
			delete(open, event.GetTimerCanceledEventAttributes().GetStartedEventId())
		}
	}
	return len(open)
}

// eventsOf counts the events of every run.
func eventsOf(w *world.World) map[string]int {
	w.T.Helper()
	count := map[string]int{}
	for _, execution := range w.Executions("") {
		id, run := execution.GetExecution().GetWorkflowId(), execution.GetExecution().GetRunId()
		count[run] = len(w.History(id, run))
	}
	return count
}

// seen opens Temporal's web UI and checks what it shows a person about the pool's nodes.
func seen(t *testing.T, w *world.World, pool string) {
	claim := w.Claims()[0]
	cluster := workflows.Cluster(w.Lab.Cluster())
	launch := cluster.LaunchID(claim.Annotations["tenon.sh/launch-group"])
	instance := claim.Status.ProviderID[strings.LastIndexByte(claim.Status.ProviderID, '/')+1:]
	zone := claim.Labels["topology.kubernetes.io/zone"]
	picture := func(name string) string {
		dir := os.Getenv("TENON_SCREENSHOTS")
		if dir == "" {
			return ""
		}
		if !filepath.IsAbs(dir) {
			dir = filepath.Join("..", "..", dir)
		}
		return filepath.Join(dir, name)
	}
	err := ui.Check(w.Context(), ui.Expectation{
		URL: w.Lab.UIURL(), Namespace: w.Lab.Env()["TEMPORAL_NAMESPACE"],
		Query:      fmt.Sprintf("TenonCluster=%q AND ExecutionStatus=\"Running\"", cluster),
		Screenshot: picture("temporal-workflows.png"),
		Workflows: []ui.Workflow{
			{
				ID:       cluster.NodeClaimID(claim.Name),
				Timeline: []string{workflows.NodeClaimType, "wait for the node of " + instance, "expires"},
				Details:  []string{"on-demand m5.large in " + zone + " for NodePool " + pool, workflows.PhaseServing, claim.Status.NodeName, claim.Name},
				Attributes: map[string]string{"TenonCluster": string(cluster), "NodePool": pool, "NodeClaim": claim.Name, "Instance": instance,
					"Zone": zone, "Node": claim.Status.NodeName, "Phase": workflows.PhaseServing},
				Screenshot: picture("temporal-nodeclaim.png"),
			},
			{
				ID: cluster.ProvisioningID(), Timeline: []string{workflows.ProvisioningType}, Details: []string{"nodes for pending pods", "20 pods pending", "m5.large"},
				Attributes: map[string]string{"TenonCluster": string(cluster)},
			},
		},
	})
	if err != nil {
		t.Errorf("Temporal's web UI: %v", err)
	}
	if err := ui.Check(w.Context(), ui.Expectation{
		URL: w.Lab.UIURL(), Namespace: w.Lab.Env()["TEMPORAL_NAMESPACE"], Query: fmt.Sprintf("WorkflowId=%q", launch),
		Workflows: []ui.Workflow{{ID: launch, Timeline: []string{workflows.LaunchType, "prepare 20 claims", "CreateFleet 20 on-demand"},
			Details: []string{"launch 20 for NodePool " + pool, "20 launched, 0 given back", claim.Name}, Attributes: map[string]string{"NodePool": pool}}},
	}); err != nil {
		t.Errorf("Temporal's web UI: %v", err)
	}
}
