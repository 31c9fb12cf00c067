// Package disruption_test tests how nodes are removed, end to end: on one laboratory with the real kube-scheduler, many
// scenarios run at the same time, each in a namespace with its own NodePools, and each about one rule.
//
// # Scenarios
//
// A scenario is a row of a table. It has steps, one after the other, and states how many nodes were removed for which
// reason. A NodePool begins closed, with consolidateAfter Never, so that a scenario can be set up undisturbed; then it is
// opened. That something does not happen is never tested by waiting for some time: a step awaits the verdict that keeps a
// node, and the next step removes the cause and awaits that the node goes, so nothing else can have kept it. Actions are in
// acts_test.go, waits in waits_test.go, and checks in holds_test.go.
//
// # Watchers
//
// Two watchers observe everything from the first to the last second, with their own connections and arithmetic: one counts
// the pods that were removed against a PodDisruptionBudget (guard_test.go), one the nodes that were disrupted beyond a
// NodePool's budgets (world.BudgetLedger). A scenario about a forceful disruption states that it breaks
// PodDisruptionBudgets, and fails if it does not. The watchers' arithmetic has tests without a laboratory.
package disruption_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/failpoint"
	"github.com/tenon-sh/tenon/test/world"
)

// atOnce is how many scenarios run at the same time. With more, their first nodes would take so long that other nodes are
// launched for their pods.
const atOnce = 40

func TestMain(m *testing.M) { os.Exit(world.Main(m, atOnce)) }

// settleWithin is how long a step of a scenario may take on a busy machine.
const settleWithin = 4 * time.Minute

// scenarios returns the rows of all tables.
func scenarios(l *laboratory) []scenario {
	return slices.Concat(emptyScenarios(), budgetScenarios(l), protectionScenarios(), consolidationScenarios(), balancedScenarios(), placementScenarios(),
		driftScenarios(l), expiryScenarios(), staticScenarios(), manualScenarios(), orderedScenarios(), bufferScenarios(),
		repairScenarios(), interruptionScenarios(), pausedScenarios(), windowScenarios(), hookScenarios(l), rolloutScenarios(l), approvalScenarios(), commandScenarios(), replacementScenarios(), spotScenarios(true))
}

// TestDisruption is the one test of this package that needs a laboratory: its scenarios share it.
func TestDisruption(t *testing.T) {
	const queue, repair = "--interruption-queue=" + queueName, "--feature-gates=NodeRepair=true"
	hooks := newHookServer(t)
	w := world.Start(t, world.Options{Simulator: []string{"--queue=" + queueName}, Worker: []string{queue, repair + ",SpotToSpotConsolidation=true", "--hook-url=" + hooks.URL, "--hook-job-namespace=" + hookScene},
		WorkerEnv: []string{failpoint.StableVariable + "=5s", failpoint.ServeVariable + "=90s"}})
	w.DeletePool("default")
	w.Faults(faults())
	l := &laboratory{World: w, view: watch(w), guard: guardBudgets(w), hooks: hooks, ledger: w.WatchBudgets(sceneLabel)}
	playAll := func(name string, scenarios []scenario) {
		t.Run(name, func(t *testing.T) {
			for _, s := range scenarios {
				t.Run(s.name, func(t *testing.T) {
					t.Parallel()
					s.play(t, l)
				})
			}
		})
	}
	playAll("all", scenarios(l))
	l.settled(t)
	w.RestartWorker(queue, repair)
	playAll("last", append(spotScenarios(false), manyNodes(t)))
	l.settled(t)
	t.Logf("PodDisruptionBudgets: %s", l.guard.summary())
	t.Logf("NodePool budgets: %s", l.ledger.Summary())
}

// settled checks that nothing is left of the scenarios: no machine, no claim, and no workflow that still works on one.
func (l *laboratory) settled(t *testing.T) {
	t.Helper()
	if t.Failed() {
		return
	}
	w := l.For(t)
	w.AwaitNothing(settleWithin)
	w.Await("no workflow of a node left", settleWithin, func() (bool, string) {
		var running []string
		for _, execution := range w.Executions(`ExecutionStatus = "Running" AND WorkflowType IN ("Replacement", "NodeClaim", "Drain", "Launch")`) {
			running = append(running, execution.GetExecution().GetWorkflowId())
		}
		return len(running) == 0, fmt.Sprint(running)
	})
}
