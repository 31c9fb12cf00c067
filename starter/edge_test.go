package starter

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// signal is one signal as Temporal received it.
type signal struct {
	Workflow, Name string
	Fact           any
}

// signals is a Temporal server that only records signals, and refuses the first few if refuses is set. Each signal is
// also sent to came, unless that is nil.
type signals struct {
	client.Client
	mu      sync.Mutex
	refuses int
	all     []signal
	came    chan signal
}

func (s *signals) SignalWithStartWorkflow(_ context.Context, id, name string, fact any, _ client.StartWorkflowOptions, _ any, _ ...any) (client.WorkflowRun, error) {
	return nil, s.take(signal{id, name, fact})
}

func (s *signals) ExecuteWorkflow(_ context.Context, options client.StartWorkflowOptions, _ any, _ ...any) (client.WorkflowRun, error) {
	return nil, s.take(signal{Workflow: options.ID})
}

func (s *signals) SignalWorkflow(_ context.Context, id, _, name string, fact any) error {
	return s.take(signal{id, name, fact})
}

func (s *signals) take(sent signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuses > 0 {
		s.refuses--
		return errors.New("unavailable")
	}
	s.all = append(s.all, sent)
	if s.came != nil {
		s.came <- sent
	}
	return nil
}

// endings returns the endings that were signalled to NodeClaim workflows, without their deadlines.
func (s *signals) endings() map[string][]workflows.Ending {
	s.mu.Lock()
	defer s.mu.Unlock()
	endings := map[string][]workflows.Ending{}
	for _, signal := range s.all {
		if ending, ok := signal.Fact.(workflows.Ending); ok {
			ending.Deadline = time.Time{}
			endings[signal.Workflow] = append(endings[signal.Workflow], ending)
		}
	}
	return endings
}

// announcing is a fake cloud that records the calls to it.
type announcing struct {
	Interruptions
	mu      sync.Mutex
	deleted []string
	shunned []cloud.OfferingKey
	// ending are capacity blocks that end, and asked the reservations that were asked about.
	ending map[string]time.Time
	asked  []string
}

func (a *announcing) EndingBlocks(_ context.Context, reservations []string) (map[string]time.Time, error) {
	a.asked = append(a.asked, reservations...)
	return a.ending, nil
}

func (a *announcing) Delete(_ context.Context, receipts []string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.deleted = append(a.deleted, receipts...)
	return nil
}

func (a *announcing) Shun(key cloud.OfferingKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.shunned = append(a.shunned, key)
}

// annotating is an API server that only records the annotations that claims get.
type annotating struct {
	kube.Client
	mu    sync.Mutex
	notes map[string]map[string]string
}

func (a *annotating) Patch(_ context.Context, object kube.Object, _ kube.Patch, _ ...kube.PatchOption) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.notes == nil {
		a.notes = map[string]map[string]string{}
	}
	a.notes[object.GetName()] = object.GetAnnotations()
	return nil
}

// mirrored is a mirror of claims by instance, and of pods by node.
type mirrored struct {
	Mirror
	windows karpv1.MaintenanceWindows
	claims  map[string]*karpv1.NodeClaim
	nodes   map[string]*corev1.Node
	pods    map[string][]*cluster.Pod
	// promised are the pods that were planned for a claim, by its name.
	promised map[string][]*cluster.Pod
	stale    error
	// overdue are the claims whose machines are overdue.
	overdue []*karpv1.NodeClaim
	budgets []*plan.DisruptionBudget
	pauses  []karpv1.Pause
	// claimNamed is the claim that Claim returns.
	claimNamed *karpv1.NodeClaim
}

func (m *mirrored) Nodes() []*corev1.Node { return slices.Collect(maps.Values(m.nodes)) }
func (m *mirrored) Snapshot() *plan.Snapshot {
	return &plan.Snapshot{DisruptionBudgets: m.budgets}
}
func (m *mirrored) Windows() karpv1.MaintenanceWindows          { return m.windows }
func (m *mirrored) Pauses() []karpv1.Pause                      { return m.pauses }
func (m *mirrored) NodePool(string) *karpv1.NodePool            { return nil }
func (m *mirrored) Claims() []*karpv1.NodeClaim                 { return slices.Collect(maps.Values(m.claims)) }
func (m *mirrored) Claim(string) *karpv1.NodeClaim              { return m.claimNamed }
func (m *mirrored) ClaimByInstance(id string) *karpv1.NodeClaim { return m.claims[id] }
func (m *mirrored) Node(name string) *corev1.Node               { return m.nodes[name] }
func (m *mirrored) PodsOnNode(name string) []*cluster.Pod       { return m.pods[name] }
func (m *mirrored) Overdue() []*karpv1.NodeClaim                { return m.overdue }
func (m *mirrored) Promised(key string) []*cluster.Pod          { return m.promised[key] }
func (m *mirrored) Fresh(time.Duration) error                   { return m.stale }

// interruptedClaim is a claim of a spot m5.large in us-east-1a.
func interruptedClaim(name, instance string) *karpv1.NodeClaim {
	return &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{
			corev1.LabelInstanceTypeStable: "m5.large", corev1.LabelTopologyZone: "us-east-1a", karpv1.CapacityTypeLabelKey: "spot"}},
		Status: karpv1.NodeClaimStatus{ProviderID: "aws:///us-east-1a/" + instance, NodeName: "node-" + name},
	}
}

// edge is all edges of a cluster, connected to these fakes.
type edge struct {
	*edges
	temporal *signals
	cloud    *announcing
	kube     *annotating
	mirror   *mirrored
	events   *record.FakeRecorder
	registry *prometheus.Registry
	// closed are the Nodes that were closed to new pods.
	closed []string
}

func newEdge(t testing.TB) *edge {
	t.Helper()
	e := &edge{temporal: &signals{}, cloud: &announcing{}, kube: &annotating{}, events: record.NewFakeRecorder(1000), registry: prometheus.NewRegistry(),
		mirror: &mirrored{claims: map[string]*karpv1.NodeClaim{"i-a": interruptedClaim("a", "i-a"), "i-b": interruptedClaim("b", "i-b")},
			nodes: map[string]*corev1.Node{"node-a": {ObjectMeta: metav1.ObjectMeta{Name: "node-a"}}}, pods: map[string][]*cluster.Pod{}}}
	metrics, err := NewInterruptionMetrics(e.registry)
	if err != nil {
		t.Fatal(err)
	}
	closeNode := func(_ context.Context, node *corev1.Node) error {
		e.closed = append(e.closed, node.Name)
		return nil
	}
	e.edges = newEdges(Config{Cluster: "c", LabelKeys: nodeclass.Labels(), Mirror: e.mirror, Kube: e.kube, Temporal: e.temporal, Close: closeNode, Interruptions: e.cloud, Events: e.events, Metrics: metrics, Log: zaptest.NewLogger(t)})
	return e
}

func notice(receipt string, kind cloud.InterruptionKind, instances ...string) cloud.Notice {
	return cloud.Notice{Receipt: receipt, Interruption: cloud.Interruption{Kind: kind, Instances: instances, At: time.Now()}}
}

// told returns the reasons of the Events recorded so far.
func (e *edge) told() []string {
	var reasons []string
	for {
		select {
		case event := <-e.events.Events:
			reasons = append(reasons, strings.Fields(event)[1])
		default:
			return reasons
		}
	}
}
