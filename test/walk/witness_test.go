package walk_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/test/world"
	"github.com/tenon-sh/tenon/workflows"
)

const (
	// noticesWithin is how long a worker may continue after it has lost the Lease to another controller.
	noticesWithin = 12 * time.Second
	// arrivesWithin is how long requests may be delayed that were sent before a process or a network was suspended.
	arrivesWithin = 5 * time.Second
	// tellingTakes is how long it may take from the last look at a node until EC2 receives the termination of its machine.
	tellingTakes = 5 * time.Second
	// maxEvents limits the history of a node's life, however much happens to it. Fifty events are enough for an uneventful
	// one.
	maxEvents = 400
)

// witness records what is needed to judge the API server's logs and Temporal's histories.
type witness struct {
	mu sync.Mutex
	// hosts are the nodes of all pods there ever were, by namespace/name. forced are the nodes whose pods need not be
	// evicted: the node has a deadline, or its machine is gone.
	hosts  map[string]string
	forced map[string]bool
	// opened is when somebody last removed the taint from a node.
	opened map[string]time.Time
	// thefts are the times when another controller held the Lease, thaws the times when something suspended continued.
	thefts []theft
	thaws  []time.Time
	// judged is how much of the audit log has been judged.
	judged int
}

type theft struct{ from, to time.Time }

// watchPods starts recording where pods are.
func (w *walker) watchPods() {
	w.hosts, w.forced, w.opened = map[string]string{}, map[string]bool{}, map[string]time.Time{}
	w.Observe(map[client.Object]func(any, bool){&corev1.Pod{}: func(object any, _ bool) {
		if pod, ok := object.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
			w.witness.mu.Lock()
			defer w.witness.mu.Unlock()
			w.hosts[pod.Namespace+"/"+pod.Name] = pod.Spec.NodeName
		}
	}})
}

// force records that the pods of a node need not be evicted.
func (t *witness) force(node string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forced[node] = true
}

// open records that somebody has removed the taint from a node.
func (t *witness) open(node string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.opened[node] = time.Now()
}

// stolen records when another controller held the Lease.
func (t *witness) stolen(from, to time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.thefts = append(t.thefts, theft{from, to})
}

// thawed records that something suspended continues.
func (t *witness) thawed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.thaws = append(t.thaws, time.Now())
}

// judge returns the violations found in logs and histories since the last call; empty if there are none.
func (w *walker) judge() string {
	writes, instances := w.Writes(), w.Instances()
	w.witness.mu.Lock()
	w.excuse(instances)
	judged := w.judged
	w.judged = len(writes)
	wrong := slices.Concat(w.unfenced(writes[judged:]), w.unevicted(writes[judged:]))
	w.witness.mu.Unlock()
	wrong = slices.Concat(wrong, w.ledger.Violations("", w.reasonOf), w.unhealthy())
	return strings.Join(wrong, "; ")
}

// excuse marks as forced the nodes that somebody opened when their machines had been told to terminate: a pod that is bound
// to such a machine can only be lost. The lock is held.
func (t *witness) excuse(instances []ec2sim.Instance) {
	for _, instance := range instances {
		opened, some := t.opened[instance.PrivateDNS]
		if some && instance.EndedAt != nil && opened.After(instance.EndedAt.Add(-tellingTakes)) {
			t.forced[instance.PrivateDNS] = true
		}
	}
}

// unfenced returns the writes while another controller held the Lease, apart from those that ask for the Lease. The lock is
// held.
func (t *witness) unfenced(writes []world.Request) []string {
	var wrong []string
	for _, write := range writes {
		if write.Code >= 400 || strings.HasPrefix(write.Resource, "leases") || strings.HasPrefix(write.Resource, "events") || strings.HasSuffix(write.Resource, "reviews") {
			continue
		}
		without := slices.ContainsFunc(t.thefts, func(s theft) bool { return write.At.After(s.from.Add(noticesWithin)) && write.At.Before(s.to) })
		late := slices.ContainsFunc(t.thaws, func(at time.Time) bool {
			return write.At.After(at.Add(-time.Second)) && write.At.Before(at.Add(arrivesWithin))
		})
		if without && !late {
			wrong = append(wrong, fmt.Sprintf("at %s Tenon did %s %s %s/%s without the Lease", write.At.Format("15:04:05.000"), write.Verb, write.Resource, write.Namespace, write.Name))
		}
	}
	return wrong
}

// unevicted returns the pods that Tenon deleted instead of evicting them, on nodes without a deadline. PodDisruptionBudgets
// need no check, because the API server applies them to evictions. The lock is held.
func (t *witness) unevicted(writes []world.Request) []string {
	var wrong []string
	for _, write := range writes {
		node := t.hosts[write.Namespace+"/"+write.Name]
		if write.Verb == "delete" && write.Resource == "pods" && write.Code < 400 && node != "" && !t.forced[node] {
			wrong = append(wrong, fmt.Sprintf("at %s Tenon deleted pod %s/%s of node %s, which had no deadline", write.At.Format("15:04:05.000"), write.Namespace, write.Name, node))
		}
	}
	return wrong
}

// reasonOf returns why a claim was removed, from the result of its workflow; empty if a person ended the workflow, or if it
// runs again.
func (w *walker) reasonOf(claim string) string {
	ctx, stop := context.WithTimeout(w.Context(), 5*time.Second)
	defer stop()
	var result workflows.NodeClaimResult
	if err := w.Temporal.GetWorkflow(ctx, workflows.Cluster(w.Lab.Cluster()).NodeClaimID(claim), "").Get(ctx, &result); err != nil {
		return ""
	}
	return result.Reason
}

// unhealthy returns the workflows that failed, that cannot continue, or that have cost too much.
func (w *walker) unhealthy() []string {
	var wrong []string
	for _, failed := range w.Executions("ExecutionStatus IN ('Failed', 'TimedOut')") {
		wrong = append(wrong, fmt.Sprintf("%s is %s", failed.GetExecution().GetWorkflowId(), failed.GetStatus()))
	}
	for _, life := range w.Executions("WorkflowType = 'NodeClaim' AND ExecutionStatus != 'Running'") {
		if life.GetHistoryLength() > maxEvents {
			wrong = append(wrong, fmt.Sprintf("%s has %d events", life.GetExecution().GetWorkflowId(), life.GetHistoryLength()))
		}
	}
	for _, running := range w.Executions("ExecutionStatus = 'Running'") {
		id := running.GetExecution().GetWorkflowId()
		described, err := w.Temporal.WorkflowService().DescribeWorkflowExecution(w.Context(), &workflowservice.DescribeWorkflowExecutionRequest{Namespace: "default", Execution: running.GetExecution()})
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("describe %s: %v", id, err))
			continue
		}
		if attempt := described.GetPendingWorkflowTask().GetAttempt(); attempt > 3 {
			wrong = append(wrong, fmt.Sprintf("%s cannot go on: its workflow task was tried %d times", id, attempt))
		}
	}
	return wrong
}
