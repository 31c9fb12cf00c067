package scale_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/test/world"
	"github.com/tenon-sh/tenon/workflows"
)

const (
	// heldBudgets is the number of PodDisruptionBudgets that block the pods of the drains.
	heldBudgets = 10
	// batchPods is how many pods are created at once, each of which needs its own node.
	batchPods = 3
	// looksAnHour is how often per hour a blocked drain looks by itself if no signal wakes it.
	looksAnHour = 2
	// actionsAnHour and callsAnHour limit what a drain that waits for a budget may cost.
	actionsAnHour, callsAnHour = 6, 20
)

// waitingFigures are the costs of drains that wait for budgets, and the delays of pods meanwhile.
type waitingFigures struct {
	Drains int `json:"drains"`
	// Samples is the number of batches of pods before the drains waited, and again while they waited.
	Samples int `json:"samples"`
	// Before and While are the 95th percentiles of the seconds from a pod's creation to that of its NodeClaim.
	Before float64 `json:"secondsBefore"`
	While  float64 `json:"secondsWhile"`
	// QuietSeconds is how long the drains were observed while nothing changed, QuietEvents by how much their histories grew,
	// and QuietCalls how many requests they made to the API server meanwhile; QuietRequests lists those requests.
	QuietSeconds  float64        `json:"quietSeconds"`
	QuietEvents   int            `json:"quietEvents"`
	QuietCalls    int            `json:"quietCalls"`
	QuietRequests map[string]int `json:"quietRequests,omitempty"`
	// Actions and Calls are the cost of a drain in an hour in which nothing changes.
	Actions int `json:"actionsAnHour"`
	Calls   int `json:"callsAnHour"`
}

// blocked is a laboratory in which drains wait.
type blocked struct {
	*world.World
	batches int
}

// smallPool returns a NodePool whose machines hold one of the test's pods each, and stay.
func smallPool(name string) string {
	return fmt.Sprintf(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %s}
spec:
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: Never}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}
`, name)
}

// heldPods returns a Deployment and a budget that blocks all of its pods.
func heldPods(i, replicas int) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: held, name: held-%[1]d}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: held-%[1]d}}
  template:
    metadata: {labels: {app: held-%[1]d}}
    spec:
      nodeSelector: {karpenter.sh/nodepool: held}
      containers: [{name: main, image: none, resources: {requests: {cpu: 1700m}}}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {namespace: held, name: held-%[1]d}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: held-%[1]d}}}
`, i, replicas)
}

// measureWaiting lets budgets block this many drains, and measures what the drains cost and how long new pods wait for their
// NodeClaims meanwhile.
func measureWaiting(t *testing.T, drains, samples int) waitingFigures {
	t.Helper()
	b := &blocked{World: world.Start(t, world.Options{Reads: true, Large: true})}
	b.Apply("{apiVersion: v1, kind: Namespace, metadata: {name: held}}")
	b.Apply("{apiVersion: v1, kind: Namespace, metadata: {name: quick}}")
	b.Apply(smallPool("held") + "---" + smallPool("quick"))
	for i := range heldBudgets {
		n := drains / heldBudgets
		if i < drains%heldBudgets {
			n++
		}
		b.Apply(heldPods(i, n))
	}
	b.AwaitRunning("held", drains, 10*time.Minute)
	b.awaitBudgets(drains)
	figures := waitingFigures{Drains: drains, Samples: samples}
	b.sample(1) // warm up: the first time is slower
	before := b.sample(samples)
	b.order(drains)
	histories, requests, began := b.histories(), len(b.Requests()), time.Now()
	while := b.sample(samples)
	figures.Before, figures.While = percentile(before), percentile(while)
	figures.QuietSeconds = time.Since(began).Seconds()
	for id, events := range b.histories() {
		figures.QuietEvents += events - histories[id]
	}
	nodes := b.drainingNodes()
	figures.QuietRequests = map[string]int{}
	for _, request := range b.Requests()[requests:] {
		if slices.ContainsFunc(nodes, func(node corev1.Node) bool { return about(request, node.Name) }) || strings.Contains(request.URI, "/namespaces/held/") && request.Resource != "events" {
			figures.QuietCalls++
			figures.QuietRequests[request.Verb+" "+request.Resource]++
		}
	}
	for _, node := range nodes[:3] {
		actions, calls := b.look(node)
		figures.Actions, figures.Calls = max(figures.Actions, looksAnHour*actions), max(figures.Calls, looksAnHour*calls)
	}
	return figures
}

// awaitBudgets waits until every budget counts its pods and blocks them.
func (b *blocked) awaitBudgets(pods int) {
	b.T.Helper()
	b.Await("the budgets hold all pods", 2*time.Minute, func() (bool, string) {
		var list policyv1.PodDisruptionBudgetList
		if err := b.List(b.Context(), &list, client.InNamespace("held")); err != nil {
			return false, err.Error()
		}
		healthy := 0
		for _, budget := range list.Items {
			healthy += int(budget.Status.CurrentHealthy)
		}
		return healthy == pods, fmt.Sprintf("%d healthy", healthy)
	})
}

// drainingNodes returns the nodes whose drains wait. The NodePool has other nodes as well: those launched for the pods on
// them.
func (b *blocked) drainingNodes() []corev1.Node {
	b.T.Helper()
	var list corev1.NodeList
	if err := b.List(b.Context(), &list, client.MatchingLabels{karpv1.NodePoolLabelKey: "held"}); err != nil {
		b.T.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(node corev1.Node) bool { return node.Annotations[karpv1.DrainBlockedAnnotationKey] == "" })
}

// order deletes the claims of all nodes with blocked pods, and waits until every drain waits.
func (b *blocked) order(drains int) {
	b.T.Helper()
	if out, err := b.Kubectl("delete", "nodeclaims", "-l", karpv1.NodePoolLabelKey+"=held", "--wait=false"); err != nil {
		b.T.Fatalf("%v\n%s", err, out)
	}
	b.Await("every drain waits", 5*time.Minute, func() (bool, string) {
		waiting, resting := len(b.drainingNodes()), 0
		if waiting == drains {
			resting = len(b.Executions(fmt.Sprintf("WorkflowType = %q AND ExecutionStatus = 'Running' AND Phase = %q", workflows.DrainType, workflows.PhaseBlocked)))
		}
		time.Sleep(time.Second)
		return resting == drains, fmt.Sprintf("%d of %d wait, %d say so", waiting, drains, resting)
	})
}

// sample creates batches of pods one after the other and returns how long each pod waited for its NodeClaim, in seconds.
func (b *blocked) sample(batches int) []float64 {
	b.T.Helper()
	events, err := b.Watch(b.Context(), &karpv1.NodeClaimList{}, client.MatchingLabels{karpv1.NodePoolLabelKey: "quick"})
	if err != nil {
		b.T.Fatal(err)
	}
	defer events.Stop()
	known := map[string]bool{}
	for _, claim := range b.Claims() {
		known[claim.Name] = true
	}
	var waited []float64
	for range batches {
		b.batches++
		began := time.Now()
		for i := range batchPods {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "quick", Name: fmt.Sprintf("quick-%d-%d", b.batches, i)}}
			pod.Spec.NodeSelector = map[string]string{karpv1.NodePoolLabelKey: "quick"}
			pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1700m")}}}}
			b.Await("create a pod", time.Minute, func() (bool, string) {
				// Pods are forbidden until the namespace has its service account.
				err := b.Create(b.Context(), pod)
				return err == nil, fmt.Sprint(err)
			})
		}
		for came := 0; came < batchPods; {
			select {
			case event := <-events.ResultChan():
				if claim, ok := event.Object.(*karpv1.NodeClaim); ok && event.Type == watch.Added && !known[claim.Name] {
					known[claim.Name] = true
					came++
					waited = append(waited, time.Since(began).Seconds())
				}
			case <-time.After(2 * time.Minute):
				b.T.Fatalf("%d of %d claims came", came, batchPods)
			}
		}
		b.AwaitRunning("quick", b.batches*batchPods, 2*time.Minute)
	}
	return waited
}

// percentile returns the 95th percentile.
func percentile(samples []float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[min(len(sorted)*95/100, len(sorted)-1)]
}

// histories returns the number of events of each drain.
func (b *blocked) histories() map[string]int {
	b.T.Helper()
	count := map[string]int{}
	for _, execution := range b.Executions(fmt.Sprintf("WorkflowType = %q AND ExecutionStatus = 'Running'", workflows.DrainType)) {
		id := execution.GetExecution().GetWorkflowId()
		described, err := b.Temporal.DescribeWorkflowExecution(b.Context(), id, "")
		if err != nil {
			b.T.Fatal(err)
		}
		count[id] = int(described.GetWorkflowExecutionInfo().GetHistoryLength())
	}
	return count
}

// about reports whether a request is about a node or its pods.
func about(request world.Request, node string) bool {
	return request.Name == node && strings.HasPrefix(request.Resource, "nodes") || strings.Contains(request.URI, url.QueryEscape("="+node)) || strings.Contains(request.URI, "="+node)
}

// look makes a drain look once more, as its timer does, and returns the cost: actions, the timer included, and requests to
// the API server.
func (b *blocked) look(node corev1.Node) (actions, calls int) {
	b.T.Helper()
	drain := workflows.Cluster(b.Lab.Cluster()).DrainID(node.Name)
	before, requests := len(b.History(drain, "")), len(b.Requests())
	if err := b.Temporal.SignalWorkflow(b.Context(), drain, "", workflows.SignalDrainNotify, workflows.DrainWaiter{NodeUID: string(node.UID), Wake: true}); err != nil {
		b.T.Fatal(err)
	}
	var cost world.Cost
	b.Await("a drain has looked", time.Minute, func() (bool, string) {
		since := b.History(drain, "")[before:]
		cost = world.CostOf(since)
		timers := 0
		for _, event := range since {
			if event.GetEventType() == enumspb.EVENT_TYPE_TIMER_STARTED {
				timers++
			}
		}
		return timers > 0, fmt.Sprintf("%d events", len(since))
	})
	b.quiet(drain)
	// The signal stands in for the timer that would have fired.
	actions = cost.Actions + cost.Heartbeats - 1
	for _, request := range b.Requests()[requests:] {
		if about(request, node.Name) || strings.Contains(request.URI, "/namespaces/held/") {
			calls++
		}
	}
	return actions, calls
}

// quiet waits until a drain has no activity in flight; then its requests are in the audit log.
func (b *blocked) quiet(drain string) {
	b.T.Helper()
	b.Await("the drain waits", time.Minute, func() (bool, string) {
		described, err := b.Temporal.DescribeWorkflowExecution(context.WithoutCancel(b.Context()), drain, "")
		return err == nil && len(described.GetPendingActivities()) == 0, fmt.Sprint(err)
	})
}
