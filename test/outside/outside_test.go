// Package outside_test does to a cluster, to Temporal and to EC2 what others do: another controller takes the Lease,
// somebody presses the buttons of Temporal's UI or removes a finalizer, EC2 throttles, Temporal goes away or loses its data,
// and the cluster is created again under its old name. The parts of a test share a laboratory; the last part leaves a
// different cluster behind.
package outside_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/test/flow"
	"github.com/tenon-sh/tenon/test/world"
	"github.com/tenon-sh/tenon/workflows"
)

func TestMain(m *testing.M) { os.Exit(world.Main(m, 16)) }

// TestButtons presses the buttons of Temporal's UI on workflows of every type.
func TestButtons(t *testing.T) {
	t.Parallel()
	w := world.Start(t, world.Options{Worker: []string{"--sweep-interval=10s"}})
	impatient(w)
	inTurn(t, w, []part{
		{"UnderARate", buttonsUnderARate}, // comes first, since a rate counts what the last evaluation before it began
		{"OfADrain", buttonsOfADrain},
		{"OfTheOthers", buttonsOfTheOthers},
		{"OfWhatJoins", buttonsOfWhatJoins},
		{"OfReplacements", buttonsOfReplacements},
		{"OfSweeps", buttonsOfSweeps},
		{"SweepsRemember", sweepsRemember},
		{"OfTheSchedule", buttonsOfTheSchedule},
	})
}

func TestFromOutside(t *testing.T) {
	t.Parallel()
	w := world.Start(t, world.Options{Simulator: []string{"--queue=" + queueName}, Worker: fromOutsideFlags()})
	impatient(w)
	inTurn(t, w, []part{
		{"ThrottledInTheBody", throttledInTheBody},
		{"PausedOverRestarts", pausedOverRestarts},
		{"ApprovedOverRestarts", approvedOverRestarts},
		{"Observed", observedFromOutside},
		{"ClocksDiffer", clocksDiffer},
		{"PoisonPool", poisonPool},
		{"BlockedDrain", blockedDrain},
		{"MachinesThatDoNotCome", machinesThatDoNotCome},
		{"FinalizerTakenOff", finalizerTakenOff},
		{"NodeFinalizerTakenOff", nodeFinalizerTakenOff},
		{"LeaseTaken", leaseTaken},
		{"TemporalAway", temporalAway},
		{"TemporalLost", temporalLost},
		{"TemporalRestored", temporalRestored},
		{"Rebuilt", rebuilt},
	})
}

// fromOutsideFlags returns the worker's flags in TestFromOutside.
func fromOutsideFlags() []string {
	return []string{"--sweep-interval=10s", "--interruption-queue=" + queueName}
}

// part is a part of a test.
type part struct {
	name string
	run  func(*world.World)
}

// inTurn runs parts that share a laboratory.
func inTurn(t *testing.T, w *world.World, parts []part) {
	t.Helper()
	for _, part := range parts {
		if !t.Run(part.name, func(t *testing.T) {
			own := w.For(t)
			defer func() { w.Lab = own.Lab }() // a part may start it again
			part.run(own)
		}) {
			return // its leftovers would only confuse the parts that follow
		}
	}
}

// impatient makes the default NodePool remove empty nodes soon.
func impatient(w *world.World) {
	w.T.Helper()
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"disruption": {"consolidateAfter": "2s", "budgets": [{"nodes": "100%"}]}}}`))
	if err := w.Patch(w.Context(), pool, patch); err != nil {
		w.T.Fatal(err)
	}
}

// isDisrupted reports whether a taint is that of a node being removed.
func isDisrupted(taint corev1.Taint) bool {
	disrupted := karpv1.DisruptedNoScheduleTaint()
	return taint.MatchTaint(&disrupted)
}

// pods returns a Deployment whose pods need a machine each, in its own namespace.
func pods(namespace string, replicas int) string {
	return flow.Workload{Namespace: namespace, Replicas: replicas, Requests: `cpu: "1", memory: 1Gi`, Apart: namespace}.Manifest()
}

// budget returns a PodDisruptionBudget that lets this many pods of a namespace be unavailable.
func budget(namespace string, most int) string {
	return fmt.Sprintf("apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {namespace: %[1]s, name: app}\nspec: {maxUnavailable: %[2]d, selector: {matchLabels: {app: %[1]s}}}\n", namespace, most)
}

// empty removes a namespace's pods and waits until their nodes are gone.
func empty(w *world.World, namespace string) {
	w.T.Helper()
	w.Apply(pods(namespace, 0))
	w.AwaitNothing(3 * time.Minute)
}

// throttledInTheBody lets EC2 answer launches with an error in the reply's body: a request repeated with the same token
// would return the same answer for ever.
func throttledInTheBody(w *world.World) {
	w.Faults(ec2sim.Faults{Capacity: []ec2sim.CapacityFault{{Code: "RequestLimitExceeded"}}})
	w.Apply(pods("throttled", 1))
	w.Await("a launch", time.Minute, func() (bool, string) { return len(w.Executions("WorkflowType = 'Launch'")) > 0, "" })
	time.Sleep(10 * time.Second) // as long as EC2 throttles
	w.Heal()
	healed := time.Now()
	w.AwaitRunning("throttled", 1, time.Minute)
	w.T.Logf("the pod ran %s after EC2 had healed", time.Since(healed).Round(time.Second))
	w.RecordLatest(w.Executions("WorkflowType = 'Launch'")[0].GetExecution().GetWorkflowId(), "throttled")
	empty(w, "throttled")
}

// clocksDiffer lets a worker announce pods whose clock is eight minutes behind that of the worker that planned last. The
// pods are still planned for.
func clocksDiffer(w *world.World) {
	w.Apply(pods("clocks", 1))
	w.AwaitRunning("clocks", 1, time.Minute)
	provisioning := workflows.Cluster(w.Lab.Cluster()).ProvisioningID()
	plans := func() (n int) {
		for _, event := range w.History(provisioning, "") {
			if event.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == workflows.PlanActivity.Name {
				n++
			}
		}
		return n
	}
	before := plans()
	if err := w.Temporal.SignalWorkflow(w.Context(), provisioning, "", workflows.SignalPodsPending, workflows.PodsPending{Seen: time.Now().Add(-8 * time.Minute)}); err != nil {
		w.T.Fatal(err)
	}
	w.Await("another plan", time.Minute, func() (bool, string) {
		now := plans()
		return now > before, fmt.Sprintf("%d plans", now)
	})
	w.RecordLatest(provisioning, "clocks-differ")
	empty(w, "clocks")
}

// poisonPool adds a NodePool whose claims no API server accepts: its name is too long for a label on its nodes. All other
// pools still get their nodes.
func poisonPool(w *world.World) {
	name := strings.Repeat("poison-", 10) + "pool"
	w.Apply(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: ` + name + `}
spec:
  weight: 100
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
`)
	w.Apply(pods("poison", 1))
	w.AwaitRunning("poison", 1, time.Minute)
	w.Await("the pool to say what is wrong", time.Minute, func() (bool, string) {
		var pool karpv1.NodePool
		if err := w.Get(w.Context(), client.ObjectKey{Name: name}, &pool); err != nil {
			w.T.Fatal(err)
		}
		condition := pool.Condition(karpv1.ConditionTypeValidationSucceeded)
		return condition != nil && condition.Status == metav1.ConditionFalse && strings.Contains(condition.Message, "metadata.name"), fmt.Sprint(condition)
	})
	w.DeletePool(name)
	empty(w, "poison")
}

// buttonsOfADrain lets a person order a drain that a budget blocks, delete the claim, which waits for that drain, and end
// the drain by a button. The claim then drains its node itself, and begins again when the person ends that drain too.
func buttonsOfADrain(w *world.World) {
	for _, button := range []struct {
		name  string
		press func(ctx context.Context, id string) error
	}{
		{"cancel", func(ctx context.Context, id string) error { return w.Temporal.CancelWorkflow(ctx, id, "") }},
		{"terminate", func(ctx context.Context, id string) error {
			return w.Temporal.TerminateWorkflow(ctx, id, "", "a person")
		}},
	} {
		namespace := "button-" + button.name
		w.Apply(pods(namespace, 1))
		w.AwaitRunning(namespace, 1, 2*time.Minute)
		w.Apply(budget(namespace, 0))
		node := w.Pods(namespace)[0].Spec.NodeName
		if out, err := w.Tenon("drain", node, "--keep"); err != nil {
			w.T.Fatalf("tenon drain: %v\n%s", err, out)
		}
		drain := workflows.Cluster(w.Lab.Cluster()).DrainID(node)
		w.Await("the drain to be blocked", time.Minute, func() (bool, string) {
			out, err := w.Tenon("drain", "status", node)
			return err == nil && strings.Contains(out, workflows.PhaseBlocked), out
		})
		claim := w.Claims()[0]
		if err := w.Delete(w.Context(), &claim); err != nil {
			w.T.Fatal(err)
		}
		w.Await("the claim to wait for the drain", time.Minute, func() (bool, string) {
			history := w.History(drain, "")
			return slices.ContainsFunc(history, func(e *historypb.HistoryEvent) bool {
				return e.GetWorkflowExecutionSignaledEventAttributes().GetSignalName() == workflows.SignalDrainNotify
			}), fmt.Sprintf("%d events", len(history))
		})
		ended := w.Executions("WorkflowId = '" + drain + "'")[0].GetExecution().GetRunId()
		if err := button.press(w.Context(), drain); err != nil {
			w.T.Fatal(err)
		}
		pressed := time.Now()
		another := func(what, than string) (run string) {
			w.Await(what, 3*time.Minute, func() (bool, string) {
				runs := w.Executions("WorkflowId = '" + drain + "' AND ExecutionStatus = 'Running'")
				if len(runs) == 1 {
					run = runs[0].GetExecution().GetRunId()
				}
				return run != "" && run != than, fmt.Sprintf("%d drains run", len(runs))
			})
			return run
		}
		own := another("a drain of the claim's own", ended)
		w.T.Logf("%s: the claim drains its node itself after %s", button.name, time.Since(pressed).Round(time.Second))
		if err := button.press(w.Context(), drain); err != nil {
			w.T.Fatal(err)
		}
		another("a drain in place of the claim's own", own)
		w.Apply(budget(namespace, 1))
		empty(w, namespace)
		w.Record(world.Run{ID: drain, Type: workflows.DrainType, Events: w.History(drain, ended)}, button.name+"-in-the-ui")
		life := workflows.Cluster(w.Lab.Cluster()).NodeClaimID(claim.Name)
		w.RecordLatest(life, "after-"+button.name)
		w.Await("the life of the node to have ended well", time.Minute, func() (bool, string) {
			runs := w.Executions("WorkflowId = '" + life + "'")
			return len(runs) == 1 && runs[0].GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, fmt.Sprint(runs)
		})
	}
}

// blockedDrain lets a budget block a node's pod: while it waits, its drain asks nothing and writes nothing, and it continues
// as soon as the budget opens.
func blockedDrain(w *world.World) {
	w.Apply(pods("blocked", 2))
	w.AwaitRunning("blocked", 2, 2*time.Minute)
	w.Apply(budget("blocked", 0))
	held := w.Pods("blocked")[0]
	if out, err := w.Tenon("drain", held.Spec.NodeName); err != nil {
		w.T.Fatalf("tenon drain: %v\n%s", err, out)
	}
	drain := workflows.Cluster(w.Lab.Cluster()).DrainID(held.Spec.NodeName)
	looks := func() (scheduled, waiting int) {
		for _, event := range w.History(drain, "") {
			if event.GetActivityTaskScheduledEventAttributes() != nil {
				scheduled++
			}
			if event.GetTimerStartedEventAttributes() != nil {
				waiting++
			}
		}
		return scheduled, waiting
	}
	w.Await("the drain to wait", time.Minute, func() (bool, string) {
		scheduled, waiting := looks()
		return waiting == 1, fmt.Sprintf("%d passes, %d pauses", scheduled, waiting)
	})
	events, writes, began := len(w.History(drain, "")), len(w.Writes()), time.Now()
	time.Sleep(20 * time.Second)
	if more := len(w.History(drain, "")) - events; more > 0 {
		w.T.Errorf("%d events in %s of waiting", more, time.Since(began).Round(time.Second))
	}
	for _, write := range w.Writes()[writes:] {
		if write.Resource == "pods/eviction" || write.Name == held.Spec.NodeName {
			w.T.Errorf("%s %s %s while the drain waits", write.Verb, write.Resource, write.Name)
		}
	}
	if out, err := w.Kubectl("taint", "node", held.Spec.NodeName, karpv1.DisruptedTaintKey+"-"); err != nil {
		w.T.Fatalf("kubectl taint: %v\n%s", err, out)
	}
	w.Await("the node that somebody has opened to be closed", 20*time.Second, func() (bool, string) {
		var node corev1.Node
		if err := w.Get(w.Context(), client.ObjectKey{Name: held.Spec.NodeName}, &node); err != nil {
			return false, err.Error()
		}
		_, waiting := looks()
		return waiting == 2 && slices.ContainsFunc(node.Spec.Taints, isDisrupted), fmt.Sprintf("taints %v, %d pauses of its drain", node.Spec.Taints, waiting)
	})
	w.Apply(budget("blocked", 1))
	opened := time.Now()
	w.Await("the pod to be evicted", 15*time.Second, func() (bool, string) {
		return !slices.ContainsFunc(w.Pods("blocked"), func(p corev1.Pod) bool { return p.UID == held.UID && p.DeletionTimestamp == nil }), "it runs"
	})
	w.T.Logf("the pod was evicted %s after its budget had opened", time.Since(opened).Round(100*time.Millisecond))
	w.Await("the drain to end", time.Minute, func() (bool, string) {
		return len(w.Executions("WorkflowId = '"+drain+"' AND ExecutionStatus = 'Running'")) == 0, "it runs"
	})
	w.RecordLatest(drain, "blocked")
	empty(w, "blocked")
}

// machinesThatDoNotCome launches twenty machines of which two never register: their pods are planned for elsewhere as soon
// as it is clear that these machines take longer than others.
func machinesThatDoNotCome(w *world.World) {
	w.Faults(ec2sim.Faults{NeverRegister: []ec2sim.BootFault{{Occurrence: ec2sim.Occurrence{Times: 2}}}})
	w.Apply(pods("overdue", 20))
	w.AwaitRunning("overdue", 18, time.Minute)
	others := time.Now()
	w.AwaitRunning("overdue", 20, time.Minute)
	w.T.Logf("all pods ran %s after the others", time.Since(others).Round(time.Second))
	if claims := len(w.Claims()); claims != 22 {
		w.T.Errorf("%d claims, want 22: 20 nodes that serve and 2 that do not", claims)
	}
	w.Heal()
	w.Apply(pods("overdue", 0))
	for _, claim := range w.Claims() {
		if claim.IsTrue(karpv1.ConditionTypeInitialized) {
			continue
		}
		if err := w.Delete(w.Context(), &claim); err != nil {
			w.T.Error(err)
		}
	}
	w.AwaitNothing(3 * time.Minute)
}

// finalizerTakenOff lets a person remove a claim's finalizer and delete it: its node and its instance are removed
// nevertheless, and its workflow ends and reports why.
func finalizerTakenOff(w *world.World) {
	w.Apply(pods("finalizer", 1))
	w.AwaitRunning("finalizer", 1, 2*time.Minute)
	claim := w.Claims()[0]
	id := workflows.Cluster(w.Lab.Cluster()).NodeClaimID(claim.Name)
	for {
		before := claim.DeepCopy()
		claim.Finalizers = nil
		if err := w.Patch(w.Context(), &claim, client.MergeFrom(before)); err != nil {
			w.T.Fatal(err)
		}
		if err := w.Delete(w.Context(), &claim); client.IgnoreNotFound(err) != nil {
			w.T.Fatal(err)
		}
		if err := w.Get(w.Context(), client.ObjectKeyFromObject(&claim), &claim); err != nil {
			break
		}
	}
	w.Await("the workflow of "+claim.Name+" to end", 4*time.Minute, func() (bool, string) {
		running := w.Executions("WorkflowId = '" + id + "' AND ExecutionStatus = 'Running'")
		return len(running) == 0, fmt.Sprintf("%d run", len(running))
	})
	var result workflows.NodeClaimResult
	if err := w.Temporal.GetWorkflow(w.Context(), id, "").Get(w.Context(), &result); err != nil || result.Reason != workflows.ReasonClaimGone {
		w.T.Errorf("the workflow ended with %+v, %v", result, err)
	}
	w.RecordLatest(id, "claim-gone")
	if slices.ContainsFunc(w.Living(), func(i ec2sim.Instance) bool { return strings.HasSuffix(claim.Status.ProviderID, i.ID) }) {
		w.T.Errorf("instance %s of a claim that is gone is paid for", claim.Status.ProviderID)
	}
	empty(w, "finalizer")
}

// nodeFinalizerTakenOff removes a Node's finalizer and deletes it undrained, as people do when a drain takes too long for
// them: its pod gets another node, and its machine is terminated.
func nodeFinalizerTakenOff(w *world.World) {
	w.Apply(pods("nodefinalizer", 1))
	w.AwaitRunning("nodefinalizer", 1, 2*time.Minute)
	claim := w.Claims()[0]
	node := claim.Status.NodeName
	for _, command := range [][]string{{"patch", "node", node, "--type=merge", `--patch={"metadata": {"finalizers": null}}`}, {"delete", "node", node}} {
		if out, err := w.Kubectl(command...); err != nil {
			w.T.Fatalf("kubectl %s: %v\n%s", strings.Join(command, " "), err, out)
		}
	}
	w.Await("the instance of "+claim.Name+" to be ended", 3*time.Minute, func() (bool, string) {
		gone := !slices.ContainsFunc(w.Living(), func(i ec2sim.Instance) bool { return strings.HasSuffix(claim.Status.ProviderID, i.ID) })
		return gone, claim.Status.ProviderID + " runs"
	})
	w.AwaitRunning("nodefinalizer", 1, 3*time.Minute)
	empty(w, "nodefinalizer")
}

// leaseTaken lets another controller hold the Lease: meanwhile nothing is written, launched or decided. After the release,
// the waiting pods get nodes.
func leaseTaken(w *world.World) {
	const other = "karpenter-76f8d_5e1a"
	hold := func(holder string) {
		for {
			var lease coordinationv1.Lease
			if err := w.Get(w.Context(), client.ObjectKey{Namespace: "kube-system", Name: "karpenter-leader-election"}, &lease); err != nil {
				w.T.Error(err)
				return
			}
			lease.Spec.HolderIdentity, lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds = &holder, &metav1.MicroTime{Time: time.Now()}, new(int32(15))
			if err := w.Update(w.Context(), &lease); err == nil {
				return
			}
		}
	}
	hold(other)
	taken, released, renewed := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(renewed)
		for {
			select {
			case <-time.After(2 * time.Second):
				hold(other)
			case <-released:
				return
			}
		}
	}()
	settled := taken.Add(5 * time.Second) // the elector looks at the Lease every three seconds
	time.Sleep(time.Until(settled))
	w.Apply(pods("lease", 2))
	time.Sleep(25 * time.Second) // longer than a batch, a sweep and a renewal
	if claims, living := len(w.Claims()), len(w.Living()); claims+living > 0 {
		w.T.Errorf("%d claims and %d instances were made while another controller held the Lease", claims, living)
	}
	for _, write := range w.Writes() {
		if write.At.After(settled) {
			w.T.Errorf("%s %s %s was written %s after another controller had taken the Lease", write.Verb, write.Resource, write.Name, write.At.Sub(taken).Round(time.Millisecond))
		}
	}
	close(released)
	<-renewed
	hold("")
	began := time.Now()
	w.AwaitRunning("lease", 2, time.Minute)
	w.T.Logf("the pods ran %s after the Lease was let go", time.Since(began).Round(time.Second))
	empty(w, "lease")
}

// rebuilt creates the cluster again under its old name, while nodes of the old cluster and their workflows still exist: the
// new cluster is served, and what the old one left is removed by itself.
func rebuilt(w *world.World) {
	w.Apply(pods("before", 4))
	w.AwaitRunning("before", 4, 2*time.Minute)
	left := w.Living()
	w.Rebuild()
	began := time.Now()
	w.Apply(pods("after", 1))
	w.AwaitRunning("after", 1, time.Minute)
	w.RecordLatest(workflows.Cluster(w.Lab.Cluster()).ProvisioningID(), "rebuilt")
	w.T.Logf("a pod of the new cluster ran after %s", time.Since(began).Round(time.Second))
	w.Await("what the old cluster left to be gone", 4*time.Minute, func() (bool, string) {
		living := 0
		for _, instance := range w.Living() {
			if slices.ContainsFunc(left, func(i ec2sim.Instance) bool { return i.ID == instance.ID }) {
				living++
			}
		}
		lives := w.Executions("WorkflowType = 'NodeClaim' AND ExecutionStatus = 'Running'")
		return living == 0 && len(lives) == 1, fmt.Sprintf("%d of %d instances of the old cluster live, %d NodeClaim workflows run", living, len(left), len(lives))
	})
	said := 0
	for _, execution := range w.Executions("WorkflowType = 'NodeClaim' AND ExecutionStatus = 'Completed'") {
		var result workflows.NodeClaimResult
		run := execution.GetExecution()
		if err := w.Temporal.GetWorkflow(w.Context(), run.GetWorkflowId(), run.GetRunId()).Get(w.Context(), &result); err != nil {
			w.T.Fatal(err)
		}
		if result.Reason == workflows.ReasonClusterGone {
			said++
		}
	}
	if said != len(left) {
		w.T.Errorf("%d of %d workflows of the old cluster say why they ended", said, len(left))
	}
}
