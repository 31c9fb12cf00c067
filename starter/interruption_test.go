package starter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
	claims map[string]*karpv1.NodeClaim
	nodes  map[string]*corev1.Node
	pods   map[string][]*cluster.Pod
	// promised are the pods that were planned for a claim, by its name.
	promised map[string][]*cluster.Pod
	stale    error
	// overdue are the claims whose machines are overdue.
	overdue []*karpv1.NodeClaim
	budgets []*plan.DisruptionBudget
	// claimNamed is the claim that Claim returns.
	claimNamed *karpv1.NodeClaim
}

func (m *mirrored) Nodes() []*corev1.Node { return slices.Collect(maps.Values(m.nodes)) }
func (m *mirrored) Snapshot() *plan.Snapshot {
	return &plan.Snapshot{DisruptionBudgets: m.budgets}
}
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

func TestInterruptionsBecomeEndings(t *testing.T) {
	t.Parallel()
	spot := []cloud.OfferingKey{{InstanceType: "m5.large", Zone: "us-east-1a", CapacityType: "spot"}}
	tests := map[string]struct {
		reason  string
		notices []cloud.Notice
		arrange func(*edge)
		endings map[string][]workflows.Ending
		deleted []string
		shunned []cloud.OfferingKey
		events  []string
	}{
		"spot": {
			reason:  "the node goes, its offering is left alone, and both claim and Node say why",
			notices: []cloud.Notice{notice("1", cloud.SpotInterruption, "i-a")}, deleted: []string{"1"}, shunned: spot,
			endings: map[string][]workflows.Ending{"c/nodeclaim/a": {{Reason: "SpotInterrupted"}}},
			events:  []string{"SpotInterrupted", "SpotInterrupted", "TerminatingOnInterruption", "TerminatingOnInterruption"},
		},
		"rebalance": {
			reason: "nothing has happened yet", notices: []cloud.Notice{notice("1", cloud.RebalanceRecommendation, "i-a")}, deleted: []string{"1"},
			events: []string{"SpotRebalanceRecommendation", "SpotRebalanceRecommendation"},
		},
		"rebalance, where that replaces": {
			reason:  "the node is replaced before EC2 wants it, and its offering is left alone",
			arrange: func(e *edge) { e.interruptions.replacesAtRisk = true },
			notices: []cloud.Notice{notice("1", cloud.RebalanceRecommendation, "i-a")}, deleted: []string{"1"}, shunned: spot,
			endings: map[string][]workflows.Ending{"c/nodeclaim/a": {{Reason: "RebalanceRecommended"}}},
			events:  []string{"SpotRebalanceRecommendation", "SpotRebalanceRecommendation", "TerminatingOnInterruption", "TerminatingOnInterruption"},
		},
		"duplicates": {
			reason:  "SQS may deliver twice, EC2 may say the same again, and one removal has one signal",
			notices: []cloud.Notice{notice("1", cloud.SpotInterruption, "i-a"), notice("2", cloud.SpotInterruption, "i-a")},
			deleted: []string{"1", "2"}, shunned: slices.Repeat(spot, 2),
			endings: map[string][]workflows.Ending{"c/nodeclaim/a": {{Reason: "SpotInterrupted"}}},
			events:  []string{"SpotInterrupted", "SpotInterrupted", "TerminatingOnInterruption", "TerminatingOnInterruption"},
		},
		"a change of several": {
			reason: "AWS Health names all affected instances in one event", notices: []cloud.Notice{notice("1", cloud.ScheduledChange, "i-a", "i-b", "i-x")},
			arrange: func(e *edge) { e.mirror.nodes = nil },
			endings: map[string][]workflows.Ending{"c/nodeclaim/a": {{Reason: "ScheduledChange"}}, "c/nodeclaim/b": {{Reason: "ScheduledChange"}}},
			events:  []string{"InstanceUnhealthy", "InstanceUnhealthy", "TerminatingOnInterruption", "TerminatingOnInterruption"},
		},
		"stopped": {
			reason: "somebody stops the instance", notices: []cloud.Notice{notice("1", cloud.InstanceStopping, "i-b")}, deleted: []string{"1"},
			endings: map[string][]workflows.Ending{"c/nodeclaim/b": {{Reason: "InstanceStopping"}}}, events: []string{"InstanceStopping", "TerminatingOnInterruption"},
		},
		"terminated": {
			reason: "nothing is left to drain", notices: []cloud.Notice{notice("1", cloud.InstanceTerminated, "i-b")}, deleted: []string{"1"},
			endings: map[string][]workflows.Ending{"c/nodeclaim/b": {{Reason: "InstanceTerminated", Lost: true}}},
			events:  []string{"InstanceTerminating", "TerminatingOnInterruption"},
		},
		"Tenon's own": {
			reason: "Tenon terminates the instances of claims that are being deleted, and need not be told",
			arrange: func(e *edge) {
				e.mirror.claims["i-a"].DeletionTimestamp = &metav1.Time{Time: time.Now()}
				e.mirror.pods["node-a"] = []*cluster.Pod{{Pod: &plan.Pod{Daemon: true}}}
			},
			notices: []cloud.Notice{notice("1", cloud.InstanceTerminating, "i-a"), notice("2", cloud.InstanceTerminated, "i-a")}, deleted: []string{"1", "2"},
		},
		"killed while draining": {
			reason: "the drain waits for pods that run no longer", notices: []cloud.Notice{notice("1", cloud.InstanceTerminated, "i-a")}, deleted: []string{"1"},
			arrange: func(e *edge) {
				e.mirror.claims["i-a"].DeletionTimestamp = &metav1.Time{Time: time.Now()}
				e.mirror.pods["node-a"] = []*cluster.Pod{{Pod: &plan.Pod{}}}
			},
			endings: map[string][]workflows.Ending{"c/nodeclaim/a": {{Reason: "InstanceTerminated", Lost: true, Deleting: true}}},
		},
		"interrupted while draining": {
			reason: "it goes already; only its offering is left alone, and the Events say so", notices: []cloud.Notice{notice("1", cloud.SpotInterruption, "i-a")},
			arrange: func(e *edge) { e.mirror.claims["i-a"].DeletionTimestamp = &metav1.Time{Time: time.Now()} },
			deleted: []string{"1"}, shunned: spot, events: []string{"SpotInterrupted", "SpotInterrupted"},
		},
		"out of order": {
			reason: "SQS may deliver first what came last", notices: []cloud.Notice{notice("1", cloud.InstanceTerminated, "i-a")}, deleted: []string{"1", "2", "3"},
			arrange: func(e *edge) {
				e.mirror.claims["i-a"].DeletionTimestamp = &metav1.Time{Time: time.Now()}
				e.mirror.pods["node-a"] = []*cluster.Pod{{Pod: &plan.Pod{}}}
				for _, kind := range []cloud.InterruptionKind{cloud.InstanceTerminated, cloud.InstanceTerminating} {
					e.notices.handleAll(context.Background(), []cloud.Notice{notice(fmt.Sprint(len(e.cloud.deleted)+2), kind, "i-a")})
				}
			},
			endings: map[string][]workflows.Ending{"c/nodeclaim/a": {{Reason: "InstanceTerminated", Lost: true, Deleting: true}}},
		},
		"impaired while draining": {
			reason: "the drain waits for nothing any more", notices: []cloud.Notice{notice("1", cloud.SystemImpaired, "i-a")}, deleted: []string{"1"},
			arrange: func(e *edge) {
				e.mirror.claims["i-a"].DeletionTimestamp = &metav1.Time{Time: time.Now()}
				e.mirror.pods["node-a"] = []*cluster.Pod{{Pod: &plan.Pod{}}}
			},
			endings: map[string][]workflows.Ending{"c/nodeclaim/a": {{Reason: "SystemStatusImpaired", Forced: true, Deleting: true}}}, events: []string{"InstanceUnhealthy", "InstanceUnhealthy"},
		},
		"somebody else's": {
			reason: "most instances of an account are", notices: []cloud.Notice{notice("1", cloud.InstanceStopping, "i-x")}, deleted: []string{"1"},
		},
		"not known yet": {
			reason: "an instance launched a moment ago may be ours: the notice is to come again", notices: []cloud.Notice{notice("1", cloud.SpotInterruption, "i-x")},
		},
		"never known": {
			reason: "a minute later it would be known", deleted: []string{"1"},
			notices: []cloud.Notice{{Receipt: "1", Interruption: cloud.Interruption{Kind: cloud.SpotInterruption, Instances: []string{"i-x"}, At: time.Now().Add(-2 * time.Minute)}}},
		},
		"not seen": {
			reason: "an old view of the cluster may lack a claim that is there", arrange: func(e *edge) { e.mirror.stale = errors.New("stale") },
			notices: []cloud.Notice{{Receipt: "1", Interruption: cloud.Interruption{Kind: cloud.SpotInterruption, Instances: []string{"i-x"}, At: time.Now().Add(-2 * time.Minute)}}},
		},
		"junk": {
			reason: "it will never be understood", notices: []cloud.Notice{{Receipt: "1", Err: errors.New("not an event")}}, deleted: []string{"1"},
		},
		"of no concern": {reason: "the rule lets more through than is needed", notices: []cloud.Notice{{Receipt: "1"}}, deleted: []string{"1"}},
		"Temporal hiccups": {
			reason: "a signal that fails is sent again at once", notices: []cloud.Notice{notice("1", cloud.ScheduledChange, "i-b")}, deleted: []string{"1"},
			arrange: func(e *edge) { e.temporal.refuses = 2 },
			endings: map[string][]workflows.Ending{"c/nodeclaim/b": {{Reason: "ScheduledChange"}}}, events: []string{"InstanceUnhealthy", "TerminatingOnInterruption"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEdge(t)
			if test.arrange != nil {
				test.arrange(e)
			}
			e.notices.handleAll(t.Context(), test.notices)
			if test.endings == nil {
				test.endings = map[string][]workflows.Ending{}
			}
			if diff := cmp.Diff(test.endings, e.temporal.endings()); diff != "" {
				t.Errorf("%s: endings (-want +got):\n%s", test.reason, diff)
			}
			slices.Sort(e.cloud.deleted)
			events := e.told()
			slices.Sort(events)
			for what, pair := range map[string][2]any{"deleted": {test.deleted, e.cloud.deleted}, "shunned": {test.shunned, e.cloud.shunned}, "events": {test.events, events}} {
				if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
					t.Errorf("%s: %s (-want +got):\n%s", test.reason, what, diff)
				}
			}
		})
	}
}

func TestClaimsSayWhenTheirInstanceEnds(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const atOnce, inTwo = "2026-01-02T03:04:05Z", "2026-01-02T03:06:05Z"
	going := func(e *edge) {
		e.mirror.claims["i-a"].DeletionTimestamp = &metav1.Time{Time: at.Add(-time.Hour)}
		e.mirror.pods["node-a"] = []*cluster.Pod{{Pod: &plan.Pod{DoNotDisrupt: true}}}
	}
	known := func(annotation, moment string) func(*edge) {
		return func(e *edge) {
			going(e)
			e.mirror.claims["i-a"].Annotations = map[string]string{annotation: moment}
		}
	}
	for _, test := range []struct {
		reason  string
		kind    cloud.InterruptionKind
		arrange func(*edge)
		want    string
	}{
		{reason: "a spot instance has two minutes", kind: cloud.SpotInterruption, want: inTwo},
		{reason: "as has one in a reservation that is taken back", kind: cloud.ReservationInterruption, want: inTwo},
		{reason: "one that is being stopped has none", kind: cloud.InstanceStopping, want: atOnce},
		{reason: "nor one that is being terminated", kind: cloud.InstanceTerminating, want: atOnce},
		{reason: "work on the machine begins nobody knows when", kind: cloud.ScheduledChange, want: ""},
		{reason: "nothing has happened yet", kind: cloud.RebalanceRecommendation, want: ""},
		{reason: "a drain that waits for a pod does not wait any more", kind: cloud.SpotInterruption, arrange: going, want: inTwo},
		{reason: "Tenon's own termination is no news", kind: cloud.InstanceTerminating, arrange: func(e *edge) {
			going(e)
			e.mirror.pods = nil
		}, want: ""},
		{reason: "the deadline of the drain may be sooner", kind: cloud.SpotInterruption,
			arrange: known(karpv1.NodeClaimTerminationTimestampAnnotationKey, atOnce), want: ""},
		{reason: "or later", kind: cloud.SpotInterruption, arrange: known(karpv1.NodeClaimTerminationTimestampAnnotationKey, "2026-01-02T09:00:00Z"), want: inTwo},
		{reason: "it was stopped before it could be taken back", kind: cloud.SpotInterruption, arrange: known(karpv1.InstanceEndsAnnotationKey, atOnce), want: ""},
	} {
		e := newEdge(t)
		if test.arrange != nil {
			test.arrange(e)
		}
		e.notices.handleAll(t.Context(), []cloud.Notice{{Receipt: "1", Interruption: cloud.Interruption{Kind: test.kind, Instances: []string{"i-a"}, At: at}}})
		if got := e.kube.notes["a"][karpv1.InstanceEndsAnnotationKey]; got != test.want {
			t.Errorf("%s: the claim says %q, want %q", test.reason, got, test.want)
		}
	}
}

// TestANoticeIsNotLostWhileTemporalIsAway receives a spot notice while Temporal does not answer, for longer than the
// queue keeps it: the Node is closed at once, and the claim is notified when Temporal is back.
func TestANoticeIsNotLostWhileTemporalIsAway(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	claim := e.mirror.claims["i-a"]
	e.mirror.claimNamed = claim
	e.temporal.refuses = 1000
	e.notices.handleAll(t.Context(), []cloud.Notice{notice("1", cloud.SpotInterruption, "i-a")})
	if diff := cmp.Diff([]string{"node-a"}, e.closed); diff != "" {
		t.Errorf("closed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1"}, e.cloud.deleted); diff != "" {
		t.Errorf("what is noted need not come again (-want +got):\n%s", diff)
	}
	event, _ := e.changes.queue.Get()
	if want := (cluster.Event{Kind: cluster.ClaimChanged, Name: "a"}); event != want {
		t.Errorf("%+v is tried again, want %+v", event, want)
	}
	claim.Annotations = e.kube.notes["a"] // as the watch shows it
	if _, err := e.changes.claims.changed(t.Context(), "a"); err == nil {
		t.Error("the claim was told while Temporal is away")
	}
	e.temporal.refuses = 0
	for range 2 {
		if _, err := e.changes.claims.changed(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(map[string][]workflows.Ending{"c/nodeclaim/a": {{Reason: "SpotInterrupted"}}}, e.temporal.endings()); diff != "" {
		t.Errorf("endings (-want +got):\n%s", diff)
	}
	// Another replica, which has signalled nothing yet, finds the note on the claim.
	other := newEdge(t)
	other.mirror.claimNamed = claim
	if _, err := other.changes.claims.changed(t.Context(), "a"); err != nil || len(other.temporal.endings()["c/nodeclaim/a"]) != 1 {
		t.Errorf("another replica told %v, error %v", other.temporal.endings(), err)
	}
}

func TestPodsThatAreLostAreAnnouncedWhenTheyNeedAPlace(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	e := newEdge(t)
	claim := e.mirror.claims["i-a"]
	claim.DeletionTimestamp = &metav1.Time{Time: at}
	e.mirror.pods["node-a"] = []*cluster.Pod{{Pod: &plan.Pod{}}, {Pod: &plan.Pod{DoNotDisrupt: true}}, {Pod: &plan.Pod{DoNotDisrupt: true, GracePeriod: 10 * time.Minute}}}
	// loss is whether more pods are lost than were announced, and when the next look is due.
	type loss struct {
		more bool
		next time.Duration
	}
	step := func(why string, after time.Duration, want loss) {
		t.Helper()
		more, next := e.leaving.losesMore(claim, at.Add(after))
		if got := (loss{more, next}); got != want {
			t.Errorf("%s: %+v, want %+v", why, got, want)
		}
	}
	step("a drain without an end loses none", 0, loss{})
	claim.Spec.TerminationGracePeriod = &metav1.Duration{Duration: time.Hour}
	step("two are lost in an hour", 0, loss{next: 48 * time.Minute})
	step("one has to begin to end early", 48*time.Minute, loss{more: true, next: 10 * time.Minute})
	step("and was announced", 49*time.Minute, loss{next: 9 * time.Minute})
	step("then the other", 58*time.Minute, loss{more: true})
	step("and nothing more", 59*time.Minute, loss{})
	e.mirror.nodes["node-a"].Annotations = map[string]string{karpv1.ReplacementAnnotationKey: "c/replacement/1"}
	e.mirror.nodes["node-a"].Spec.Taints = []corev1.Taint{karpv1.DisruptedNoScheduleTaint()}
	e.leaving.lost.forget(claim.UID)
	step("the pods of a node that is replaced have their places", time.Hour, loss{})
}

func TestWaveOfInterruptionsShunsAnOfferingOnce(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	for i := range 40 {
		instance := fmt.Sprintf("i-%d", i)
		e.mirror.claims[instance] = interruptedClaim(fmt.Sprint(i), instance)
		e.notices.handleAll(t.Context(), []cloud.Notice{notice(instance, cloud.SpotInterruption, instance)})
	}
	want := signal{"c/provisioning", workflows.SignalCapacityRefused, workflows.CapacityRefused{Refused: []cloud.OfferingKey{e.edges.notices.offerings.of(e.mirror.claims["i-0"])}, Quiet: true}}
	also := want
	also.Workflow = "c/disruption"
	var shuns []signal
	for i, sent := range e.temporal.all {
		if _, ok := sent.Fact.(workflows.CapacityRefused); ok {
			if shuns = append(shuns, sent); i > 1 {
				t.Errorf("signal %d, %+v, comes after a claim's", i, sent)
			}
		}
	}
	if diff := cmp.Diff([]signal{want, also}, shuns); diff != "" {
		t.Errorf("whoever plans is told once, and quietly (-want +got):\n%s", diff)
	}
	if got := len(e.temporal.endings()); got != 40 {
		t.Errorf("%d claims end, want 40", got)
	}
}

func TestInterruptionMetrics(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.notices.handleAll(t.Context(), []cloud.Notice{notice("1", cloud.SpotInterruption, "i-a"), {Receipt: "2", Err: errors.New("junk")}, {Receipt: "3"}})
	e.notices.unhealthy(t.Context(), cloud.SystemImpaired, "i-b")
	e.notices.unhealthy(t.Context(), cloud.SystemImpaired, "i-b")
	families, err := e.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := strings.TrimPrefix(family.GetName(), "karpenter_interruption_")
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			got[name] = metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	want := map[string]float64{"deleted_messages_total": 3, "instance_status_unhealthy_total SystemStatus": 1, "message_queue_duration_seconds": 1,
		"received_messages_total no_op": 1, "received_messages_total spot_interrupted": 1, "received_messages_total unparsable": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := NewInterruptionMetrics(e.registry); err != nil {
		t.Errorf("a second worker in one process: %v", err)
	}
}

func TestClaimsThatLeavePodsAreAnnounced(t *testing.T) {
	t.Parallel()
	pod := func(change func(*plan.Pod)) []*cluster.Pod {
		p := &plan.Pod{UID: "p"}
		change(p)
		return []*cluster.Pod{{Pod: p}}
	}
	running := pod(func(*plan.Pod) {})
	replaced := func(e *edge) {
		e.mirror.nodes["node-a"].Annotations = map[string]string{karpv1.ReplacementAnnotationKey: "c/replacement/1"}
		e.mirror.nodes["node-a"].Spec.Taints = []corev1.Taint{karpv1.DisruptedNoScheduleTaint()}
	}
	tests := map[string]struct {
		reason  string
		pods    []*cluster.Pod
		arrange func(*edge)
		want    bool
	}{
		"running":     {reason: "its pods need another node", pods: running, want: true},
		"empty":       {reason: "nobody needs one", want: false},
		"daemons":     {reason: "they go with the node", pods: pod(func(p *plan.Pod) { p.Daemon = true }), want: false},
		"terminating": {reason: "their successors are on their way", pods: pod(func(p *plan.Pod) { p.Deletion = time.Now() }), want: false},
		"undisturbed": {reason: "they stay until they are done", pods: pod(func(p *plan.Pod) { p.DoNotDisrupt = true }), want: false},
		"undisturbed, and lost": {reason: "they are lost with their instance", pods: pod(func(p *plan.Pod) { p.DoNotDisrupt = true }), arrange: func(e *edge) {
			e.mirror.claims["i-a"].Annotations = map[string]string{karpv1.InstanceEndsAnnotationKey: time.Now().Add(2 * time.Minute).Format(time.RFC3339)}
		}, want: true},
		"expected": {reason: "what was planned for it will not find it",
			arrange: func(e *edge) { e.mirror.promised = map[string][]*cluster.Pod{"a": running} }, want: true},
		"replaced": {reason: "the replacement has a place for each of its pods", pods: running, arrange: replaced, want: false},
		"a replacement": {reason: "it is not replaced itself, whatever it was launched for", pods: running, arrange: func(e *edge) {
			replaced(e)
			e.mirror.nodes["node-a"].Spec.Taints = nil
		}, want: true},
		"interrupted while replaced": {reason: "its replacement may not be there in time", pods: running, arrange: func(e *edge) {
			replaced(e)
			e.notices.handleAll(t.Context(), []cloud.Notice{notice("1", cloud.SpotInterruption, "i-a")})
		}, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEdge(t)
			e.mirror.pods["node-a"] = test.pods
			if test.arrange != nil {
				test.arrange(e)
			}
			if got := e.leaving.leavesPods(e.mirror.claims["i-a"], time.Now()); got != test.want {
				t.Errorf("%s: %v, want %v", test.reason, got, test.want)
			}
		})
	}
}

func TestLeavingClaimsAreAnnouncedTogether(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.temporal.refuses, e.temporal.came = 1, make(chan signal, 10)
	for _, version := range []string{"7", "12", "9"} {
		e.leaving.add(version)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error)
	go func() { done <- e.leaving.announce(ctx) }()
	select {
	case sent := <-e.temporal.came:
		announced, ok := sent.Fact.(workflows.PodsPending)
		if !ok || sent.Workflow != "c/provisioning" || announced.SeenVersion != "12" || announced.Seen.IsZero() {
			t.Errorf("sent %+v, want Provisioning told of the newest version, also after a failure", sent)
		}
	case <-time.After(time.Minute):
		t.Error("Provisioning was never told")
	}
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}
