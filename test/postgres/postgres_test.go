// Package postgres_test runs Tenon with Temporal's released server on a real PostgreSQL, set up by the values that
// deploy/temporal has for production: PostgreSQL is killed while nodes are launched and drained, an older backup is restored, and
// the server gets Temporal's own authorizer, as deploy/temporal/README.md describes both.
package postgres_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/test/flow"
	"github.com/tenon-sh/tenon/test/world"
	"github.com/tenon-sh/tenon/workflows"
)

func TestMain(m *testing.M) { os.Exit(world.Main(m, 4)) }

// outageOf is for how long PostgreSQL stays dead unless TENON_POSTGRES_OUTAGE says otherwise.
const outageOf = 5 * time.Second

// TestTemporalOnPostgres lets the parts share a laboratory, which each of them leaves empty.
func TestTemporalOnPostgres(t *testing.T) {
	t.Parallel()
	token := tokenFile(filepath.Join(t.TempDir(), "token"))
	if err := os.WriteFile(string(token), []byte("nobody reads this yet"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := world.Start(t, world.Options{Postgres: true, Worker: []string{"--sweep-interval=10s"}, WorkerEnv: token.workerVariables()})
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	for _, patch := range []client.Patch{
		client.RawPatch(types.MergePatchType, []byte(`{"spec": {"disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "2s", "budgets": [{"nodes": "100%"}]}}}`)),
		// A machine has room for one pod of these tests.
		client.RawPatch(types.JSONPatchType, []byte(`[{"op": "add", "path": "/spec/template/spec/requirements/-", "value": {"key": "karpenter.k8s.aws/instance-cpu", "operator": "In", "values": ["2"]}}]`)),
	} {
		if err := w.Patch(t.Context(), pool, patch); err != nil {
			t.Fatal(err)
		}
	}
	guard := w.Guard()
	defer guard.End(t)
	for _, part := range []struct {
		name string
		run  func(*world.World, *world.Guard)
	}{
		{"Killed", killed},
		{"BackupRestored", backupRestored},
		{"Authorized", func(w *world.World, guard *world.Guard) { authorized(w, guard, token) }},
	} {
		if !t.Run(part.name, func(t *testing.T) { part.run(w.For(t), guard) }) {
			return // its leftovers would only confuse the parts that follow
		}
	}
}

// killed kills PostgreSQL while machines are requested and a drain waits for a budget. The budget goes, pods go and come while
// the database is dead. When it is back, all is finished, nothing has been launched twice and nothing is leaked.
func killed(w *world.World, guard *world.Guard) {
	outage := outageOf
	if text := os.Getenv("TENON_POSTGRES_OUTAGE"); text != "" {
		var err error
		if outage, err = time.ParseDuration(text); err != nil {
			w.T.Fatalf("TENON_POSTGRES_OUTAGE: %v, want a duration such as 60s", err)
		}
	}
	w.Apply(pods("stay", 1))
	w.Apply(pods("move", 1))
	w.AwaitRunning("stay", 1, 2*time.Minute)
	w.AwaitRunning("move", 1, 2*time.Minute)
	stays := hosts(w, "stay")
	launched := len(w.Instances())
	blocked := drainBlocked(w, "move")
	requested(w, "come", 2)

	if err := w.Lab.Fail(lab.Postgres); err != nil {
		w.T.Fatal(err)
	}
	died := time.Now()
	w.Apply(budget("move", 1))
	w.Apply(pods("come", 3))
	time.Sleep(outage - time.Since(died))
	if err := w.Lab.Resume(w.Context(), lab.Postgres); err != nil {
		w.T.Fatal(err)
	}
	back := time.Now()
	w.AwaitRunning("come", 3, 2*time.Minute)
	w.Await("the drained node to be gone", 2*time.Minute, func() (bool, string) {
		return !slices.ContainsFunc(w.Claims(), func(c karpv1.NodeClaim) bool { return c.Name == blocked }), blocked + " is there"
	})
	w.AwaitRunning("move", 1, 2*time.Minute)
	w.T.Logf("PostgreSQL was dead for %s; everything was done %s later", back.Sub(died).Round(time.Second), time.Since(back).Round(time.Second))
	world.AwaitAdopted(w, 5)
	if more := len(w.Instances()) - launched; more != 4 {
		w.T.Errorf("%d instances were launched for three new pods and one that moved", more)
	}
	if now := hosts(w, "stay"); !slices.Equal(now, stays) {
		w.T.Errorf("the pod that nothing happened to is on %v, was on %v", now, stays)
	}
	empty(w, guard, "stay", "move", "come")
}

// backupRestored takes a backup while machines are requested and a drain waits. Then the machines come, the drain ends, other
// nodes come and go. After the backup is restored, Temporal has forgotten all that: what should stay stays, what has gone stays
// gone, and nothing is launched a second time.
func backupRestored(w *world.World, guard *world.Guard) {
	w.Apply(pods("keep", 1))
	w.Apply(pods("move", 1))
	w.Apply(pods("leave", 1))
	for _, namespace := range []string{"keep", "move", "leave"} {
		w.AwaitRunning(namespace, 1, 2*time.Minute)
	}
	blocked := drainBlocked(w, "move")
	requested(w, "early", 2)
	backup := takeBackup(w)

	w.AwaitRunning("early", 2, 2*time.Minute)
	emptied := claimOf(w, "leave").Name
	w.Apply(budget("move", 1))
	w.Apply(pods("leave", 0))
	w.Await("the drained and the empty node to be gone", 2*time.Minute, func() (bool, string) {
		return !slices.ContainsFunc(w.Claims(), func(c karpv1.NodeClaim) bool { return c.Name == blocked || c.Name == emptied }), fmt.Sprint(len(w.Claims()), " claims")
	})
	w.Apply(pods("late", 2))
	w.AwaitRunning("late", 2, 2*time.Minute)
	world.AwaitAdopted(w, 6)
	launched, stay := len(w.Instances()), living(w)

	restoreBackup(w, backup)
	world.AwaitAdopted(w, 6)
	for namespace, replicas := range map[string]int{"keep": 1, "move": 1, "early": 2, "late": 2} {
		w.AwaitRunning(namespace, replicas, time.Minute)
	}
	awaitSweep(w)
	var result workflows.NodeClaimResult
	life := workflows.Cluster(w.Lab.Cluster()).NodeClaimID(emptied)
	if err := w.Temporal.GetWorkflow(w.Context(), life, "").Get(w.Context(), &result); err != nil || result.Reason != workflows.ReasonClaimGone {
		w.T.Errorf("the workflow of a claim that has gone since ended with %+v (%v), want the reason %s", result, err, workflows.ReasonClaimGone)
	}
	if more := len(w.Instances()) - launched; more != 0 {
		w.T.Errorf("%d instances were launched for pods that ran", more)
	}
	if now := living(w); !slices.Equal(now, stay) {
		w.T.Errorf("the instances %v live, want %v", now, stay)
	}
	empty(w, guard, "keep", "move", "leave", "early", "late")
}

// drainBlocked deletes the claim of the only node of a namespace's pods, whose budget allows no eviction, and returns the claim's
// name once its drain waits.
func drainBlocked(w *world.World, namespace string) string {
	w.T.Helper()
	w.Apply(budget(namespace, 0))
	claim := claimOf(w, namespace)
	if err := w.Delete(w.Context(), claim); err != nil {
		w.T.Fatal(err)
	}
	w.Await("the drain to wait for the budget", time.Minute, func() (bool, string) {
		drains := w.Executions("WorkflowType = 'Drain' AND ExecutionStatus = 'Running'")
		return len(drains) == 1, fmt.Sprint(len(drains), " drains")
	})
	return claim.Name
}

// claimOf returns the claim of the node on which the only pod of a namespace runs.
func claimOf(w *world.World, namespace string) *karpv1.NodeClaim {
	w.T.Helper()
	node := hosts(w, namespace)[0]
	for _, claim := range w.Claims() {
		if claim.Status.NodeName == node {
			return &claim
		}
	}
	w.T.Fatalf("no claim has the node %s", node)
	return nil
}

// requested creates pods and waits until Tenon has made claims for them.
func requested(w *world.World, namespace string, replicas int) {
	w.T.Helper()
	before := len(w.Claims())
	w.Apply(pods(namespace, replicas))
	w.Await("claims for the new pods", time.Minute, func() (bool, string) {
		return len(w.Claims()) >= before+replicas, fmt.Sprint(len(w.Claims()), " claims")
	})
}

// awaitSweep waits until a sweep has begun and ended.
func awaitSweep(w *world.World) {
	w.T.Helper()
	since := time.Now().UTC().Format(time.RFC3339)
	w.Await("a sweep", time.Minute, func() (bool, string) {
		sweeps := w.Executions("WorkflowType = 'Sweep' AND ExecutionStatus = 'Completed' AND StartTime > '" + since + "'")
		return len(sweeps) > 0, "none has ended"
	})
}

// pods returns a Deployment whose pods need a machine each, in its own namespace.
func pods(namespace string, replicas int) string {
	return flow.Workload{Namespace: namespace, Replicas: replicas, Requests: `cpu: "1", memory: 1Gi`, Apart: namespace}.Manifest()
}

// budget returns a PodDisruptionBudget that lets this many pods of a namespace be unavailable.
func budget(namespace string, most int) string {
	return fmt.Sprintf("apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {namespace: %[1]s, name: app}\nspec: {maxUnavailable: %[2]d, selector: {matchLabels: {app: %[1]s}}}\n", namespace, most)
}

// hosts returns the nodes on which a namespace's pods run, sorted.
func hosts(w *world.World, namespace string) []string {
	w.T.Helper()
	var names []string
	for _, pod := range w.Pods(namespace) {
		if pod.DeletionTimestamp.IsZero() {
			names = append(names, pod.Spec.NodeName)
		}
	}
	slices.Sort(names)
	return names
}

// living returns the ids of the living instances, sorted.
func living(w *world.World) []string {
	w.T.Helper()
	var ids []string
	for _, instance := range w.Living() {
		ids = append(ids, instance.ID)
	}
	slices.Sort(ids)
	return ids
}

// empty removes all pods and waits until nothing is left: no claim, no node, no instance and no workflow of a node.
func empty(w *world.World, guard *world.Guard, namespaces ...string) {
	w.T.Helper()
	for _, namespace := range namespaces {
		w.Apply(pods(namespace, 0))
	}
	w.AwaitNothing(3 * time.Minute)
	guard.AwaitQuiet(w)
	guard.Check(w.T)
	if unclaimed := guard.Unclaimed(); len(unclaimed) > 0 {
		w.T.Errorf("no claim ever had the machines %s", strings.Join(unclaimed, ", "))
	}
}
