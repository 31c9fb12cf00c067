package walk_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/test/world"
)

const (
	// restsWithin is how long everything may take to come to rest.
	restsWithin = 4 * time.Minute
	// comesWithin is how long a machine may take to serve before the walker, like a person, deletes its claim: a machine
	// that never registers would be given up only after fifteen minutes.
	comesWithin = time.Minute
)

// rest ends all disturbances, and returns what has not come to rest in time; empty if everything has.
func (w *walker) rest() (wrong string) {
	w.Heal()
	w.release()
	for _, component := range append(w.servers(), lab.Worker) {
		if err := w.Lab.Resume(w.Context(), component); err != nil {
			return err.Error()
		}
	}
	for _, name := range workloads {
		if wanted, some := w.wanted[name]; some { // the API server may have been away when it was scaled
			if err := w.TryApply(workload(name, wanted)); err != nil {
				return "scale " + name + ": " + err.Error()
			}
		}
		budget := &policyv1.PodDisruptionBudget{}
		budget.Namespace, budget.Name = name, "app"
		if err := w.Delete(w.Context(), budget); client.IgnoreNotFound(err) != nil {
			return "open the budget of " + name + ": " + err.Error()
		}
	}
	deadline := time.Now().Add(world.Patience(restsWithin))
	quiet := 0
	for quiet < 10 {
		if err := w.restore(); err != nil {
			wrong = "there is no NodePool and EC2NodeClass: " + err.Error()
		} else {
			wrong = w.restless()
		}
		if wrong == "" {
			quiet++
		} else {
			quiet = 0
			if time.Now().After(deadline) {
				return "nothing disturbs any more, and after " + restsWithin.String() + " " + wrong
			}
		}
		time.Sleep(500 * time.Millisecond)
	}
	return ""
}

// restless returns what is not at rest; empty if everything is.
func (w *walker) restless() string {
	for _, name := range workloads {
		running := 0
		pods := w.Pods(name)
		for i := range pods {
			if pods[i].Status.Phase == corev1.PodRunning && pods[i].DeletionTimestamp == nil {
				running++
			}
		}
		if running != w.wanted[name] || len(pods) != running {
			return fmt.Sprintf("%d of %d pods of %s run, want %d", running, len(pods), name, w.wanted[name])
		}
	}
	claims, living, nodes := w.Claims(), w.Living(), w.Nodes()
	lives := w.Executions("WorkflowType = 'NodeClaim' AND ExecutionStatus = 'Running'")
	for i := range claims {
		claim := &claims[i]
		if !claim.IsTrue(karpv1.ConditionTypeInitialized) && claim.DeletionTimestamp == nil && time.Since(claim.CreationTimestamp.Time) > comesWithin {
			_ = w.Delete(w.Context(), claim)
		}
		switch {
		case claim.DeletionTimestamp != nil:
			return "claim " + claim.Name + " is being removed"
		case !claim.IsTrue(karpv1.ConditionTypeInitialized):
			return "claim " + claim.Name + " does not serve"
		case !slices.ContainsFunc(nodes, func(node corev1.Node) bool { return node.Spec.ProviderID == claim.Status.ProviderID }):
			return "claim " + claim.Name + " has no Node"
		case !slices.ContainsFunc(lives, func(e *workflowpb.WorkflowExecutionInfo) bool {
			return strings.HasSuffix(e.GetExecution().GetWorkflowId(), "/"+claim.Name)
		}):
			return "claim " + claim.Name + " has no workflow"
		}
	}
	if len(claims) != len(living) || len(claims) != len(lives) {
		return fmt.Sprintf("there are %d claims, %d instances and %d workflows of claims", len(claims), len(living), len(lives))
	}
	for _, node := range nodes {
		for _, taint := range node.Spec.Taints {
			if taint.Key == karpv1.DisruptedTaintKey {
				return "node " + node.Name + " is closed"
			}
		}
	}
	for _, running := range w.Executions("ExecutionStatus = 'Running' AND WorkflowType IN ('Launch', 'Drain', 'Replacement')") {
		return running.GetExecution().GetWorkflowId() + " runs"
	}
	return ""
}
