package outside_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/test/world"
	"github.com/tenon-sh/tenon/workflows"
)

// button is one of those that Temporal's UI has for a workflow.
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

// buttonsOfTheOthers presses every button on workflows of every type but drains: nodes serve on, pods get nodes, what goes
// goes, and nothing is paid for that nobody owns.
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

	// A claim waits for capacity while its Launch ends.
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

	// Nodes are on their way out, and a budget holds their pods.
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

	// Empty nodes go although Disruption is disturbed.
	w.Apply(pods("others", 0))
	for _, b := range buttons {
		w.Await("Disruption", time.Minute, func() (bool, string) {
			return len(w.Executions("WorkflowId = '"+cluster.DisruptionID()+"' AND ExecutionStatus = 'Running'")) == 1, "it does not run"
		})
		press(b, cluster.DisruptionID())
	}
	w.AwaitNothing(4 * time.Minute)
}

func uids(pods []corev1.Pod) []types.UID {
	all := make([]types.UID, 0, len(pods))
	for i := range pods {
		all = append(all, pods[i].UID)
	}
	return all
}

// lives waits until there are so many claims, each with an instance and a workflow of its own, and nothing else.
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
