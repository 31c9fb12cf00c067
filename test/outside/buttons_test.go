package outside_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/test/world"
	"github.com/tenon-sh/tenon/workflows"
)

// button is one of the buttons that Temporal's UI has for a workflow.
type button struct {
	name  string
	press func(ctx context.Context, w *world.World, id string) error
}

var buttons = []button{
	{"cancel", func(ctx context.Context, w *world.World, id string) error {
		return w.Temporal.CancelWorkflow(ctx, id, "")
	}},
	{"terminate", func(ctx context.Context, w *world.World, id string) error {
		return w.Temporal.TerminateWorkflow(ctx, id, "", "a person")
	}},
	{"reset", func(ctx context.Context, w *world.World, id string) (err error) {
		w.Await("the first workflow task of "+id, time.Minute, func() (bool, string) {
			err = w.Reset(ctx, id)
			return !errors.Is(err, world.ErrNotBegun), "it has not been completed"
		})
		return err
	}},
}

// buttonsOfTheOthers presses every button on workflows of every type but drains: nodes keep serving, pods get nodes, what is
// to be removed is removed, and nothing is left that costs money without an owner.
func buttonsOfTheOthers(w *world.World) {
	cluster := workflows.Cluster(w.Lab.Cluster())
	press := func(b button, id string) {
		w.T.Helper()
		var ended *serviceerror.NotFound // the list of workflows lags
		if err := b.press(w.Context(), w, id); err != nil && !errors.As(err, &ended) {
			w.T.Errorf("%s %s: %v", b.name, id, err)
		}
	}
	w.Apply(pods("others", 3))
	w.AwaitRunning("others", 3, 2*time.Minute)
	before := uids(w.Pods("others"))
	claims := w.Claims()
	for i, b := range buttons {
		press(b, cluster.NodeClaimID(claims[i].Name))
		press(b, cluster.ProvisioningID())
		w.Apply(pods("others", 4+i))
		w.AwaitRunning("others", 4+i, 3*time.Minute)
	}
	lives(w, 6)
	for _, node := range w.Nodes() {
		if slices.ContainsFunc(node.Spec.Taints, isDisrupted) {
			w.T.Errorf("node %s is closed", node.Name)
		}
	}
	for _, uid := range before {
		if !slices.Contains(uids(w.Pods("others")), uid) {
			w.T.Error("a pod was restarted")
		}
	}

	// A claim waits for capacity while its Launch is ended.
	for i, b := range buttons {
		w.Faults(ec2sim.Faults{Capacity: []ec2sim.CapacityFault{{Code: "InsufficientInstanceCapacity"}}})
		w.Apply(pods("others", 7+i))
		var launch string
		w.Await("a Launch", time.Minute, func() (bool, string) {
			for _, running := range w.Executions("WorkflowType = 'Launch' AND ExecutionStatus = 'Running'") {
				launch = running.GetExecution().GetWorkflowId()
			}
			return launch != "", ""
		})
		press(b, launch)
		w.Heal()
		w.AwaitRunning("others", 7+i, 4*time.Minute)
		lives(w, 7+i)
	}

	// Nodes are being removed, and a budget blocks their pods.
	w.Apply(budget("others", 0))
	w.Await("the budget to be reckoned", time.Minute, func() (bool, string) {
		var pdb policyv1.PodDisruptionBudget
		err := w.Get(w.Context(), kube.ObjectKey{Namespace: "others", Name: "app"}, &pdb)
		return err == nil && pdb.Status.ObservedGeneration == pdb.Generation && pdb.Status.CurrentHealthy == 9, fmt.Sprint(pdb.Status, err)
	})
	claims = w.Claims()
	for i, b := range buttons {
		claim := claims[i]
		if err := w.Delete(w.Context(), &claim); err != nil {
			w.T.Fatal(err)
		}
		w.Await("the drain of "+claim.Name, time.Minute, func() (bool, string) {
			return len(w.Executions("WorkflowId = '"+cluster.DrainID(claim.Status.NodeName)+"' AND ExecutionStatus = 'Running'")) == 1, "there is none"
		})
		w.Await("Node "+claim.Status.NodeName+" to be deleted too, and kept", 10*time.Second, func() (bool, string) {
			var node corev1.Node
			err := w.Get(w.Context(), kube.ObjectKey{Name: claim.Status.NodeName}, &node)
			return err == nil && node.DeletionTimestamp != nil, fmt.Sprint("it is not: ", err)
		})
		press(b, cluster.NodeClaimID(claim.Name))
	}
	w.Apply(budget("others", 3))
	w.AwaitRunning("others", 9, 4*time.Minute)
	lives(w, 9)

	// Empty nodes are removed although Disruption is disturbed.
	w.Apply(pods("others", 0))
	for _, b := range buttons {
		w.Await("Disruption", time.Minute, func() (bool, string) {
			return len(w.Executions("WorkflowId = '"+cluster.DisruptionID()+"' AND ExecutionStatus = 'Running'")) == 1, "it does not run"
		})
		press(b, cluster.DisruptionID())
	}
	w.AwaitNothing(4 * time.Minute)
}

// buttonsOfWhatJoins presses every button on the workflow of a node whose machine is booting.
func buttonsOfWhatJoins(w *world.World) {
	for i, b := range buttons {
		w.Apply(pods("joining", 1+i))
		var life string
		w.Await("the life of a node that has not joined", time.Minute, func() (bool, string) {
			for _, claim := range w.Claims() {
				id := workflows.Cluster(w.Lab.Cluster()).NodeClaimID(claim.Name)
				if !claim.IsTrue(karpv1.ConditionTypeInitialized) && len(w.Executions("WorkflowId = '"+id+"' AND ExecutionStatus = 'Running'")) == 1 {
					life = id
				}
			}
			return life != "", "there is none"
		})
		if err := b.press(w.Context(), w, life); err != nil {
			w.T.Fatalf("%s %s: %v", b.name, life, err)
		}
		w.AwaitRunning("joining", 1+i, 3*time.Minute)
		lives(w, 1+i)
	}
	empty(w, "joining")
}

// buttonsOfReplacements presses every button on the replacement of a drifted node, while the machine that is to take its pod
// boots. The old node is replaced nevertheless, or keeps serving until it is considered again.
func buttonsOfReplacements(w *world.World) {
	w.Apply(pods("replaced", 1))
	w.AwaitRunning("replaced", 1, 2*time.Minute)
	for i, b := range buttons {
		patch := kube.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec": {"template": {"metadata": {"labels": {"edited": "%d"}}}}}`, i))
		if err := w.Patch(w.Context(), &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, patch); err != nil {
			w.T.Fatal(err)
		}
		var replacement string
		w.Await("a replacement", 3*time.Minute, func() (bool, string) {
			for _, running := range w.Executions("WorkflowType = 'Replacement' AND ExecutionStatus = 'Running'") {
				replacement = running.GetExecution().GetWorkflowId()
			}
			return replacement != "" && len(w.Claims()) == 2, "there is none"
		})
		if err := b.press(w.Context(), w, replacement); err != nil {
			w.T.Fatalf("%s %s: %v", b.name, replacement, err)
		}
		w.Await("one node that serves after "+b.name, 3*time.Minute, func() (bool, string) {
			claims, nodes := w.Claims(), w.Nodes()
			if len(claims) != 1 || len(nodes) != 1 || len(w.Living()) != 1 {
				return false, fmt.Sprintf("%d claims, %d nodes, %d instances", len(claims), len(nodes), len(w.Living()))
			}
			if claims[0].DeletionTimestamp != nil || slices.ContainsFunc(nodes[0].Spec.Taints, isDisrupted) {
				return false, nodes[0].Name + " is being removed"
			}
			return len(w.Executions("WorkflowType = 'Replacement' AND ExecutionStatus = 'Running'")) == 0, replacement + " runs"
		})
		w.AwaitRunning("replaced", 1, time.Minute)
		lives(w, 1)
	}
	empty(w, "replaced")
}

// buttonsOfSweeps presses every button on running sweeps, and then lets a sweep find what nobody owns.
func buttonsOfSweeps(w *world.World) {
	sweep := workflows.Cluster(w.Lab.Cluster()).SweepID()
	for _, b := range buttons {
		// A sweep of so small a cluster ends at once, unless EC2 does not answer.
		if err := w.Lab.Kill(lab.EC2Sim, syscall.SIGSTOP); err != nil {
			w.T.Fatal(err)
		}
		var pressed string
		w.Await("a sweep that runs", time.Minute, func() (bool, string) {
			_ = w.Temporal.ScheduleClient().GetHandle(w.Context(), sweep).Trigger(w.Context(), client.ScheduleTriggerOptions{})
			for _, e := range w.Executions("WorkflowType = 'Sweep' AND ExecutionStatus = 'Running'") {
				pressed = e.GetExecution().GetWorkflowId()
			}
			return pressed != "", "there is none"
		})
		err := b.press(w.Context(), w, pressed)
		if err := errors.Join(err, w.Lab.Kill(lab.EC2Sim, syscall.SIGCONT)); err != nil {
			w.T.Fatalf("%s %s: %v", b.name, pressed, err)
		}
		w.Await("sweeps that end after "+b.name, 3*time.Minute, func() (bool, string) {
			running := len(w.Executions("WorkflowType = 'Sweep' AND ExecutionStatus = 'Running'"))
			return running == 0, fmt.Sprintf("%d run", running)
		})
	}
	w.Apply(pods("swept", 1))
	w.AwaitRunning("swept", 1, 2*time.Minute)
	if err := w.Temporal.TerminateWorkflow(w.Context(), workflows.Cluster(w.Lab.Cluster()).NodeClaimID(w.Claims()[0].Name), "", "a person"); err != nil {
		w.T.Fatal(err)
	}
	lives(w, 1)
	empty(w, "swept")
}

// buttonsUnderARate presses the buttons that make Disruption forget, while no worker runs that could remember. What a rate
// has counted still counts.
func buttonsUnderARate(w *world.World) {
	disruption := workflows.Cluster(w.Lab.Cluster()).DisruptionID()
	rate := func(text string) {
		w.T.Helper()
		pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		patch := fmt.Appendf(nil, `{"metadata": {"annotations": {%q: %s}}}`, karpv1.DisruptionRateAnnotationKey, text)
		if err := w.Patch(w.Context(), pool, kube.RawPatch(types.MergePatchType, patch)); err != nil {
			w.T.Fatal(err)
		}
	}
	rate(`"1/1h"`)
	w.Apply(pods("rate", 3))
	w.AwaitRunning("rate", 3, 2*time.Minute)
	w.Apply(pods("rate", 0))
	lives(w, 2)
	for _, b := range buttons {
		if err := w.Lab.Halt(lab.Worker); err != nil {
			w.T.Fatal(err)
		}
		if err := b.press(w.Context(), w, disruption); err != nil {
			w.T.Fatalf("%s: %v", b.name, err)
		}
		pressed := time.Now()
		if err := w.Lab.Resume(w.Context(), lab.Worker); err != nil {
			w.T.Fatal(err)
		}
		w.Await("an evaluation after "+b.name, time.Minute, func() (bool, string) {
			for _, event := range w.History(disruption, "") {
				completed := event.GetActivityTaskCompletedEventAttributes()
				if completed == nil || event.GetEventTime().AsTime().Before(pressed) {
					continue
				}
				var found workflows.Evaluation
				if err := converter.GetDefaultDataConverter().FromPayloads(completed.GetResult(), &found); err != nil {
					w.T.Fatal(err)
				}
				if len(found.Commands)+len(found.Replacements) > 0 {
					w.T.Fatalf("after %s, Disruption removes what the rate does not allow: %+v", b.name, found)
				}
				return true, ""
			}
			return false, "there is none"
		})
		lives(w, 2)
	}
	rate("null")
	w.AwaitNothing(3 * time.Minute)
}

// buttonsOfTheSchedule pauses, changes and deletes the Schedule of the sweep, which is soon restored.
func buttonsOfTheSchedule(w *world.World) {
	schedule := w.Temporal.ScheduleClient().GetHandle(w.Context(), workflows.Cluster(w.Lab.Cluster()).SweepID())
	was, err := schedule.Describe(w.Context())
	if err != nil {
		w.T.Fatal(err)
	}
	for _, change := range []struct {
		reason string
		make   func() error
	}{
		{"paused", func() error { return schedule.Pause(w.Context(), client.SchedulePauseOptions{Note: "a person"}) }},
		{"made rare, and without an end to a sweep", func() error {
			return schedule.Update(w.Context(), client.ScheduleUpdateOptions{DoUpdate: func(now client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
				now.Description.Schedule.Spec.Intervals = []client.ScheduleIntervalSpec{{Every: 24 * time.Hour}}
				now.Description.Schedule.Action.(*client.ScheduleWorkflowAction).WorkflowRunTimeout = 0
				return &client.ScheduleUpdate{Schedule: &now.Description.Schedule}, nil
			}})
		}},
		{"deleted", func() error { return schedule.Delete(w.Context()) }},
	} {
		if err := change.make(); err != nil {
			w.T.Fatalf("%s: %v", change.reason, err)
		}
		w.Await("the Schedule as it was before it was "+change.reason, time.Minute, func() (bool, string) {
			is, err := schedule.Describe(w.Context())
			if err != nil {
				return false, err.Error()
			}
			timeout := is.Schedule.Action.(*client.ScheduleWorkflowAction).WorkflowRunTimeout
			return !is.Schedule.State.Paused && cmp.Equal(is.Schedule.Spec.Intervals, was.Schedule.Spec.Intervals) && timeout > 0,
				fmt.Sprintf("paused: %v, every %v, a sweep ends after %s", is.Schedule.State.Paused, is.Schedule.Spec.Intervals, timeout)
		})
	}
}

func uids(pods []corev1.Pod) []types.UID {
	all := make([]types.UID, 0, len(pods))
	for i := range pods {
		all = append(all, pods[i].UID)
	}
	return all
}

// lives waits until there are exactly this many claims, instances and NodeClaim workflows, and each claim has its workflow.
func lives(w *world.World, want int) {
	w.T.Helper()
	w.Await(fmt.Sprintf("%d nodes with a workflow each", want), 3*time.Minute, func() (bool, string) {
		claims, living := w.Claims(), w.Living()
		running := w.Executions("WorkflowType = 'NodeClaim' AND ExecutionStatus = 'Running'")
		for i := range claims {
			name := claims[i].Name
			if !slices.ContainsFunc(running, func(e *workflowpb.WorkflowExecutionInfo) bool {
				return strings.HasSuffix(e.GetExecution().GetWorkflowId(), "/"+name)
			}) {
				return false, name + " has no workflow"
			}
		}
		return len(claims) == want && len(living) == want && len(running) == want, fmt.Sprintf("%d claims, %d instances, %d workflows", len(claims), len(living), len(running))
	})
}
