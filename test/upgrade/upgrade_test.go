// Package upgrade_test rolls Tenon out and back: from workers without versions to build n, to n+1, back to n and back to
// workers without versions. At every step machines boot, a node is being replaced and a drain waits for a budget. The
// workers that run then must finish all of it.
package upgrade_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	temporal "go.temporal.io/sdk/client"
	policyv1 "k8s.io/api/policy/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/test/world"
)

func TestMain(m *testing.M) { os.Exit(world.Main(m, 1)) }

const (
	// The builds; none means workers without versions.
	older, newer, none = "n", "n+1", ""
	// steps is the number of steps.
	steps = 4
	// boot is how long a machine boots: longer than a step takes to begin, so that machines are booting in the middle of it.
	boot = 8 * time.Second
	// most is how long anything may take. A shorter limit would prove nothing.
	most = 2 * time.Minute
)

// switchedOff returns the flag that makes Temporal refuse versions of workers, like a server that is too old for them, or
// accept them.
func switchedOff(off bool) string {
	return fmt.Sprintf("--dynamic-config-value=system.enableDeploymentVersions=%t", !off)
}

func TestUpgradeAndRollback(t *testing.T) {
	w := &stage{World: world.Start(t, world.Options{Worker: []string{"--build-id=" + older}, Temporal: []string{switchedOff(true)}, BootDelay: boot})}
	g := w.Guard()
	defer g.End(t)
	w.DeletePool("default")
	w.Apply(pool("kept", 0) + workload("kept", 2))
	w.AwaitRunning("kept", 2, most)
	release := g.Budget(w.World, "kept", 2)
	w.drained = w.Pods("kept")[0].Spec.NodeName
	if out, err := w.Tenon("drain", w.drained); err != nil {
		t.Fatalf("tenon drain: %v: %s", err, out)
	}
	w.Apply(pool("grows", 0))
	for step := range steps {
		w.Apply(pool(drifts(step), 0) + workload(drifts(step), 1))
	}
	for step := range steps {
		w.AwaitRunning(drifts(step), 1, most)
	}

	w.step("from workers without versions to n, which is so while it runs", older, func() {
		w.reconfigure(lab.Temporal, switchedOff(false))
	})
	var second *process
	w.step("from n to n+1, which runs beside it until it is stopped", newer, func() {
		second = w.run("--build-id=" + newer)
		w.Await("n+1 to be known to Temporal", most, func() (bool, string) {
			_, err := w.deployment().DescribeVersion(w.Context(), temporal.WorkerDeploymentDescribeVersionOptions{BuildID: newer})
			return err == nil, fmt.Sprint(err)
		})
		if current := w.current(); current != older {
			t.Errorf("tasks go to %q while n leads", current)
		}
		w.halt(lab.Worker)
	})
	w.awaitRest()
	w.step("from n+1, which is killed, back to n", older, func() {
		w.resume(lab.Worker)
		if current := w.current(); current != newer {
			t.Errorf("tasks go to %q while n+1 leads", current)
		}
		second.kill()
	})
	w.step("from n back to workers without versions", none, func() {
		w.halt(lab.Worker)
		// As deploy/temporal/README.md describes it.
		command := exec.CommandContext(w.Context(), filepath.Join("..", "..", "bin", "temporal"), "worker", "deployment", "set-current-version",
			"--address", w.Lab.TemporalAddress(), "--deployment-name", w.Lab.Cluster(), "--unversioned", "--ignore-missing-task-queues", "--yes")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		w.reconfigure(lab.Temporal, switchedOff(true))
		w.resume(lab.Worker)
	})
	w.awaitRest()

	release()
	budget := &policyv1.PodDisruptionBudget{}
	budget.Namespace, budget.Name = "kept", "guard"
	if err := w.Delete(w.Context(), budget); err != nil {
		t.Fatal(err)
	}
	w.Await("the drain that began before all builds to end", most, func() (bool, string) {
		for _, node := range w.Nodes() {
			if node.Name == w.drained {
				return false, fmt.Sprint(node.Spec.Taints)
			}
		}
		return true, ""
	})
	w.drained = ""
	w.awaitRest()
}

// stage is the laboratory with the state of the test.
type stage struct {
	*world.World
	// taken counts the steps, and drained is the node whose drain waits meanwhile.
	taken   int
	drained string
	// replaced are the nodes that had to be replaced so far, and ended those of them that were gone at the last rest.
	replaced, ended []string
}

// drifts returns the pool whose node is replaced in a step.
func drifts(step int) string { return fmt.Sprintf("drifts-%d", step) }

// step begins a launch and a replacement, changes the workers in the middle of both, and waits until Temporal sends tasks to
// workers of the given build. What it has begun may end in a later step.
func (w *stage) step(what, build string, change func()) {
	w.T.Helper()
	began, pooled := time.Now(), drifts(w.taken)
	w.replaced = append(w.replaced, w.Pods(pooled)[0].Spec.NodeName)
	w.taken++
	// The launch comes second: it takes only seconds, while the replacement may start late after a worker was killed.
	w.Apply(pool(pooled, 1))
	w.Await("a replacement in flight", most, func() (bool, string) {
		replacing := len(w.Executions("WorkflowType = 'Replacement' AND ExecutionStatus = 'Running' AND NodePool = '" + pooled + "'"))
		return replacing == 1, fmt.Sprintf("%d replacements", replacing)
	})
	w.Apply(workload("grows", w.taken))
	w.Await("a launch in flight", most, func() (bool, string) {
		return slices.ContainsFunc(w.Claims(), func(c karpv1.NodeClaim) bool {
			return c.Labels[karpv1.NodePoolLabelKey] == "grows" && c.Status.ProviderID != "" && !c.IsTrue(karpv1.ConditionTypeInitialized)
		}), "no claim of an instance that is not a node yet"
	})
	change()
	changed := time.Now()
	w.Await("tasks to go to build "+build, most, func() (bool, string) { current := w.current(); return current == build, current })
	w.T.Logf("%s: changed within %s, and tasks went to the build %s later", what, changed.Sub(began).Round(time.Second), time.Since(changed).Round(100*time.Millisecond))
	// Drains that have ended answer too, whichever build they ended with.
	for _, node := range w.ended {
		if out, err := w.Tenon("drain", "status", node); err != nil || !strings.Contains(out, "Drained") {
			w.T.Errorf("the drain of %s, which is over, says %v: %s", node, err, out)
		}
	}
}

// awaitRest waits until nothing is in flight but the drain.
func (w *stage) awaitRest() {
	w.T.Helper()
	began := time.Now()
	w.AwaitRunning("kept", 2, most)
	w.AwaitRunning("grows", w.taken, most)
	for step := range steps {
		w.AwaitRunning(drifts(step), 1, most)
	}
	w.Await("everything but the drain to end", most, func() (bool, string) {
		claims, living := w.Claims(), w.Living()
		for i := range claims {
			if !claims[i].IsTrue(karpv1.ConditionTypeInitialized) || !claims[i].DeletionTimestamp.IsZero() && claims[i].Status.NodeName != w.drained {
				return false, "claim " + claims[i].Name + " comes or goes"
			}
		}
		if open := w.Executions("WorkflowType IN ('Launch', 'Replacement') AND ExecutionStatus = 'Running'"); len(open) > 0 {
			return false, open[0].GetExecution().GetWorkflowId() + " runs"
		}
		lives, drains := w.Executions("WorkflowType = 'NodeClaim' AND ExecutionStatus = 'Running'"), w.Executions("WorkflowType = 'Drain' AND ExecutionStatus = 'Running'")
		wanted := 0
		if w.drained != "" {
			wanted = 1
		}
		return len(lives) == len(claims) && len(living) == len(claims) && len(drains) == wanted,
			fmt.Sprintf("%d claims, %d instances, %d workflows of claims, %d drains", len(claims), len(living), len(lives), len(drains))
	})
	w.T.Logf("everything had ended after %s", time.Since(began).Round(time.Second))
	for _, node := range w.Nodes() {
		if slices.Contains(w.replaced, node.Name) {
			w.T.Errorf("node %s was to be replaced, and is still there", node.Name)
		}
	}
	w.ended = slices.Clone(w.replaced)
	for _, stuck := range w.Executions("ExecutionStatus = 'Running' AND TemporalReportedProblems IS NOT NULL") {
		w.T.Errorf("%s does not go on", stuck.GetExecution().GetWorkflowId())
	}
	for _, failed := range w.Executions("TenonCluster = '" + w.Lab.Cluster() + "' AND ExecutionStatus IN ('Failed', 'TimedOut', 'Terminated')") {
		w.T.Errorf("%s %s", failed.GetExecution().GetWorkflowId(), failed.GetStatus())
	}
	for _, running := range w.Executions("TenonCluster = '" + w.Lab.Cluster() + "'") {
		if behavior := running.GetVersioningInfo().GetBehavior(); behavior == enumspb.VERSIONING_BEHAVIOR_PINNED {
			w.T.Errorf("%s is pinned", running.GetExecution().GetWorkflowId())
		}
	}
	if w.drained == "" {
		return
	}
	if out, err := w.Tenon("drain", "status", w.drained); err != nil || !strings.Contains(out, "PodDisruptionBudget guard") {
		w.T.Errorf("the drain says %v: %s", err, out)
	}
}

// current returns the build to which Temporal sends the cluster's tasks.
func (w *stage) current() string {
	w.T.Helper()
	queue, err := w.Temporal.DescribeTaskQueue(w.Context(), w.Lab.Cluster(), enumspb.TASK_QUEUE_TYPE_WORKFLOW)
	if err != nil {
		return err.Error()
	}
	return queue.GetVersioningInfo().GetCurrentDeploymentVersion().GetBuildId()
}

func (w *stage) deployment() temporal.WorkerDeploymentHandle {
	return w.Temporal.WorkerDeploymentClient().GetHandle(w.Lab.Cluster())
}

func (w *stage) halt(c lab.Component) {
	w.T.Helper()
	if err := w.Lab.Halt(c); err != nil {
		w.T.Fatal(err)
	}
}

func (w *stage) resume(c lab.Component) {
	w.T.Helper()
	ctx, stop := context.WithTimeout(w.Context(), world.Patience(most))
	defer stop()
	if err := w.Lab.Resume(ctx, c); err != nil {
		w.T.Fatal(err)
	}
}

func (w *stage) reconfigure(c lab.Component, flags ...string) {
	w.T.Helper()
	ctx, stop := context.WithTimeout(w.Context(), world.Patience(most))
	defer stop()
	if err := w.Lab.Reconfigure(ctx, c, flags...); err != nil {
		w.T.Fatal(err)
	}
}

// process is a second worker, beside the laboratory's.
type process struct {
	cmd   *exec.Cmd
	ended sync.WaitGroup
}

// run starts a worker with the same permissions as the laboratory's own.
func (w *stage) run(flags ...string) *process {
	w.T.Helper()
	log, err := os.Create(filepath.Join(w.Lab.Dir(), "logs", "second-worker.log"))
	if err != nil {
		w.T.Fatal(err)
	}
	p := &process{cmd: w.Command(append([]string{"worker", "--metrics-address=", "--health-probe-address=", "--identity=second"}, flags...)...)}
	p.cmd.Env = append(p.cmd.Env, "KUBECONFIG="+filepath.Join(w.Lab.Dir(), "config", "tenon.kubeconfig"))
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr = log, log, world.DieTogether()
	began := make(chan error)
	p.ended.Go(func() {
		// The kernel kills the worker when the thread that started it ends.
		runtime.LockOSThread()
		defer func() { _ = log.Close() }()
		err := p.cmd.Start()
		began <- err
		if err == nil {
			_ = p.cmd.Wait()
		}
	})
	if err := <-began; err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(p.kill)
	return p
}

// kill kills the worker, which has no chance to release its Lease.
func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	p.ended.Wait()
}

// pool returns a NodePool whose nodes are removed for drift only; a change of generation makes them drift.
func pool(name string, generation int) string {
	return fmt.Sprintf(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %[1]s}
spec:
  disruption: {consolidateAfter: Never, budgets: [{nodes: "100%%"}]}
  template:
    metadata: {labels: {pool: %[1]s, generation: "%[2]d"}}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}]
---
`, name, generation)
}

// workload returns a Deployment each of whose pods gets its own node of the pool of the same name.
func workload(name string, replicas int) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: %[1]s, name: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      nodeSelector: {pool: %[1]s}
      terminationGracePeriodSeconds: 1
      containers: [{name: c, image: nginx, resources: {requests: {cpu: "1500m"}}}]
---
`, name, replicas)
}
