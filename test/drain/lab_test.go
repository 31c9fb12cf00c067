// Package drain_test drains nodes of a real Kubernetes control plane by a real Temporal server: budgets, protected pods,
// deadlines, volumes, foreign nodes and people's orders, with the worker in this process.
package drain_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/encoding/protojson"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tenon-sh/tenon/activities"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	view "github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/lab/labtest"
	"github.com/tenon-sh/tenon/starter"
	"github.com/tenon-sh/tenon/worker"
	"github.com/tenon-sh/tenon/workflows"
)

const cluster = workflows.Cluster("drains")

// world is a control plane, a Temporal server and a worker that can drain.
type world struct {
	kube.WithWatch
	temporal client.Client
	events   *eventLog
	claims   *claimLog
	// binary is the path of the tenon command, env what it needs to reach the lab.
	binary string
	env    map[string]string
	// replaceOnEviction names pods, as namespace/name, that are replaced by another of the same name just before their first
	// eviction reaches the API server.
	replaceOnEviction sync.Map
}

// eventLog keeps the Events that people would see with kubectl.
type eventLog struct {
	mutex  sync.Mutex
	events []string
}

func (e *eventLog) Event(object runtime.Object, _, reason, message string) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	name := ""
	if named, ok := object.(metav1.Object); ok {
		name = named.GetName()
	}
	e.events = append(e.events, fmt.Sprintf("%s %s: %s", name, reason, message))
}

func (e *eventLog) all() []string {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return append([]string(nil), e.events...)
}

// claimLog plays the end of a NodeClaim: it and its Node are deleted at once.
type claimLog struct {
	kube    kube.Client
	mutex   sync.Mutex
	deleted []string
}

func (c *claimLog) delete(ctx context.Context, in workflows.DeleteClaimInput) (workflows.Ending, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.deleted = append(c.deleted, in.Claim)
	var claim karpv1.NodeClaim
	if err := c.kube.Get(ctx, kube.ObjectKey{Name: in.Claim}, &claim); err != nil {
		return workflows.Ending{}, kube.IgnoreNotFound(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: claim.Status.NodeName}}
	return workflows.Ending{}, errors.Join(c.kube.Delete(ctx, &claim), c.kube.Delete(ctx, node))
}

func (c *claimLog) all() []string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return append([]string(nil), c.deleted...)
}

// startWorld starts a lab in its own directory and a worker in this process.
func startWorld(ctx context.Context, t *testing.T) *world {
	t.Helper()
	l := labtest.Start(t, lab.Options{Components: append(lab.ControlPlane(), lab.Temporal)})
	config := labtest.Config(t, l)
	config.QPS, config.Burst = 200, 400
	direct, err := kube.NewWithWatch(config, kube.Options{Scheme: worker.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	temporal, err := client.Dial(client.Options{HostPort: l.TemporalAddress(), Identity: "tenon"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(temporal.Close)
	w := &world{WithWatch: direct, temporal: temporal, events: &eventLog{}, claims: &claimLog{kube: direct},
		binary: labtest.Build(t, t.TempDir()), env: l.Env()}
	w.work(t)
	w.wakeDrains(t, config)
	return w
}

// work runs a worker until the test ends.
func (w *world) work(t *testing.T) {
	t.Helper()
	drains := &activities.Drains{Events: w.events, Log: zap.NewNop(),
		Client: interceptor.NewClient(w.WithWatch, interceptor.Funcs{SubResourceCreate: w.replaceThenEvict})}
	running := sdk.New(w.temporal, cluster.TaskQueue(), sdk.Options{MaxHeartbeatThrottleInterval: time.Second})
	running.RegisterWorkflowWithOptions(workflows.Drain, workflow.RegisterOptions{Name: workflows.DrainType})
	running.RegisterActivityWithOptions(drains.Evict, activity.RegisterOptions{Name: workflows.EvictActivity.Name})
	running.RegisterActivityWithOptions(drains.Uncordon, activity.RegisterOptions{Name: workflows.UncordonActivity.Name})
	running.RegisterActivityWithOptions(w.claims.delete, activity.RegisterOptions{Name: workflows.DeleteClaimActivity.Name})
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(running.Stop)
}

// wakeDrains wakes blocked drains when they may continue, until the test ends.
func (w *world) wakeDrains(t *testing.T, config *rest.Config) {
	t.Helper()
	mirror, err := view.NewMirror(config, view.Options{Kind: nodeclass.Kind(), Log: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running errgroup.Group
	running.Go(func() error { return mirror.Run(ctx) })
	running.Go(func() error {
		return starter.WakeBlockedDrains(ctx, starter.Config{Cluster: cluster, Mirror: mirror, Temporal: w.temporal, Log: zap.NewNop()})
	})
	t.Cleanup(func() {
		stop()
		if err := running.Wait(); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// replaceThenEvict passes a request on, after replacing the pod if the test asked for that.
func (w *world) replaceThenEvict(ctx context.Context, c kube.Client, subresource string, object, body kube.Object, opts ...kube.SubResourceCreateOption) error {
	key := object.GetNamespace() + "/" + object.GetName()
	if successor, wanted := w.replaceOnEviction.LoadAndDelete(key); wanted {
		if err := c.Delete(ctx, object, kube.GracePeriodSeconds(0)); err != nil {
			return err
		}
		if err := c.Create(ctx, successor.(*corev1.Pod)); err != nil {
			return err
		}
	}
	return c.SubResource(subresource).Create(ctx, object, body, opts...)
}

// node creates a node that kwok simulates.
func (w *world) node(ctx context.Context, t *testing.T, name string) *corev1.Node {
	t.Helper()
	resources := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi"), corev1.ResourcePods: resource.MustParse("50")}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{lab.SimulatedNodeLabel: "true", corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{Capacity: resources, Allocatable: resources,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady"}}},
	}
	if err := w.Create(ctx, node); err != nil {
		t.Fatal(err)
	}
	w.await(ctx, t, "node "+name+" is ready", func(ctx context.Context) (bool, error) {
		if err := w.Get(ctx, kube.ObjectKeyFromObject(node), node); err != nil {
			return false, err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady {
				return condition.Status == corev1.ConditionTrue && len(node.Spec.Taints) == 0, nil
			}
		}
		return false, nil
	})
	return node
}

// namespace creates a namespace and waits until pods may be created in it.
func (w *world) namespace(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	if err := w.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	w.await(ctx, t, "namespace "+name+" has its service account", func(ctx context.Context) (bool, error) {
		err := w.Get(ctx, kube.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{})
		return err == nil, kube.IgnoreNotFound(err)
	})
}

// newPod describes a pod that runs on a node.
func newPod(namespace, name, node string, edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": namespace}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

// pod creates a pod and waits until it runs.
func (w *world) pod(ctx context.Context, t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	if err := w.Create(ctx, pod); err != nil {
		t.Fatal(err)
	}
	w.await(ctx, t, "pod "+pod.Name+" runs", func(ctx context.Context) (bool, error) {
		err := w.Get(ctx, kube.ObjectKeyFromObject(pod), pod)
		return err == nil && pod.Status.Phase == corev1.PodRunning, err
	})
	return pod
}

func annotated(key, value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations = map[string]string{key: value} }
}

// unending makes kwok keep the pod for an hour after it is deleted.
func unending(pod *corev1.Pod) { annotated("tenon.sh/termination-delay", "1h")(pod) }

// budget protects all pods of a namespace and waits until it counts them.
func (w *world) budget(ctx context.Context, t *testing.T, namespace, name string, minAvailable int32) *policyv1.PodDisruptionBudget {
	t.Helper()
	least := intstr.FromInt32(minAvailable)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": namespace}}}}
	if err := w.Create(ctx, budget); err != nil {
		t.Fatal(err)
	}
	w.await(ctx, t, "budget "+name+" counts its pods", func(ctx context.Context) (bool, error) {
		err := w.Get(ctx, kube.ObjectKeyFromObject(budget), budget)
		return err == nil && budget.Status.CurrentHealthy == minAvailable, err
	})
	return budget
}

// drain starts a manual drain of a node; claim is empty for a node that is not Tenon's.
func (w *world) drain(ctx context.Context, t *testing.T, node *corev1.Node, claim string, edit func(*workflows.DrainInput)) client.WorkflowRun {
	t.Helper()
	in := workflows.DrainInput{Cluster: cluster, Node: node.Name, NodeUID: string(node.UID), Claim: claim, Reason: workflows.ReasonManualDrain}
	if edit != nil {
		edit(&in)
	}
	run, err := w.temporal.ExecuteWorkflow(ctx, workflows.DrainOptions(in).Client(), workflows.DrainType, in)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func result(ctx context.Context, t *testing.T, run client.WorkflowRun) workflows.DrainResult {
	t.Helper()
	var result workflows.DrainResult
	if err := run.Get(ctx, &result); err != nil {
		t.Fatalf("drain %s: %v", run.GetID(), err)
	}
	return result
}

func (w *world) status(ctx context.Context, t *testing.T, run client.WorkflowRun) workflows.DrainStatus {
	t.Helper()
	value, err := w.temporal.QueryWorkflow(ctx, run.GetID(), run.GetRunID(), workflows.QueryStatus)
	if err != nil {
		t.Fatal(err)
	}
	var status workflows.DrainStatus
	if err := value.Get(&status); err != nil {
		t.Fatal(err)
	}
	return status
}

// blocked waits until the drain shows blockers, and returns its status.
func (w *world) blocked(ctx context.Context, t *testing.T, run client.WorkflowRun) workflows.DrainStatus {
	t.Helper()
	var status workflows.DrainStatus
	w.await(ctx, t, run.GetID()+" is blocked", func(ctx context.Context) (bool, error) {
		status = w.status(ctx, t, run)
		return status.Phase == workflows.PhaseBlocked, nil
	})
	return status
}

func (w *world) order(ctx context.Context, run client.WorkflowRun, update string, order workflows.DrainOrder) (workflows.DrainStatus, error) {
	var status workflows.DrainStatus
	handle, err := w.temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{WorkflowID: run.GetID(), RunID: run.GetRunID(), UpdateName: update,
		Args: []any{order}, WaitForStage: client.WorkflowUpdateStageCompleted})
	if err != nil {
		return status, err
	}
	return status, handle.Get(ctx, &status)
}

// history returns the events of a drain.
func (w *world) history(ctx context.Context, t *testing.T, run client.WorkflowRun) []*historypb.HistoryEvent {
	t.Helper()
	var events []*historypb.HistoryEvent
	for it := w.temporal.GetWorkflowHistory(ctx, run.GetID(), run.GetRunID(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); it.HasNext(); {
		event, err := it.Next()
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, event)
	}
	return events
}

// record keeps the history of a drain for the replay tests, if TENON_RECORD_HISTORIES names a directory. The histories under
// workflows/testdata are made this way; a new one is added when a workflow takes a new path.
func (w *world) record(ctx context.Context, t *testing.T, run client.WorkflowRun, what string) {
	t.Helper()
	dir := os.Getenv("TENON_RECORD_HISTORIES")
	if dir == "" {
		return
	}
	data, err := protojson.Marshal(&historypb.History{Events: w.history(ctx, t, run)})
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, err = zip.Write(data)
	if err := errors.Join(err, zip.Close(), os.WriteFile(filepath.Join(dir, "drain-"+what+".json.gz"), packed.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func (w *world) await(ctx context.Context, t *testing.T, what string, ok func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, ok); err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}
