package starter

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// fleet is a mirror of nodes and their claims, of one pool.
type fleet struct {
	Mirror
	pool    *karpv1.NodePool
	pauses  []karpv1.Pause
	windows karpv1.MaintenanceWindows
	claims  map[string]*karpv1.NodeClaim
	nodes   map[string]*corev1.Node
	stale   error
}

// newFleet returns a fleet of nodes n0, n1, ... with claims of the same names.
func newFleet(size int, born time.Time) *fleet {
	f := &fleet{pool: testPool("default"), claims: map[string]*karpv1.NodeClaim{}, nodes: map[string]*corev1.Node{}}
	for i := range size {
		name := fmt.Sprintf("n%d", i)
		meta := metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(born), Labels: map[string]string{karpv1.NodePoolLabelKey: "default"}}
		f.claims[name] = &karpv1.NodeClaim{ObjectMeta: meta, Status: karpv1.NodeClaimStatus{ProviderID: "aws:///z/" + name, NodeName: name}}
		f.nodes[name] = &corev1.Node{ObjectMeta: meta}
	}
	return f
}

func (f *fleet) Pauses() []karpv1.Pause             { return f.pauses }
func (f *fleet) Windows() karpv1.MaintenanceWindows { return f.windows }
func (f *fleet) NodePool(string) *karpv1.NodePool   { return f.pool }
func (f *fleet) Fresh(time.Duration) error          { return f.stale }
func (f *fleet) Claims() []*karpv1.NodeClaim {
	return slices.Collect(maps.Values(f.claims))
}
func (f *fleet) Nodes() []*corev1.Node                     { return slices.Collect(maps.Values(f.nodes)) }
func (f *fleet) ClaimOfNode(name string) *karpv1.NodeClaim { return f.claims[name] }
func (f *fleet) Snapshot() *plan.Snapshot {
	return &plan.Snapshot{NodePools: []*karpv1.NodePool{f.pool}}
}

func (f *fleet) fall(ill time.Time, names ...string) {
	for _, name := range names {
		f.nodes[name].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(ill)}}
	}
}

// outcome is when the next look is due, and how many endings were signalled and Events recorded so far.
type outcome struct {
	wait            time.Duration
	endings, events int
}

func TestIllNodesAreEnded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f, temporal, events := newFleet(6, now.Add(-time.Hour)), &signals{}, record.NewFakeRecorder(10)
	e := newEdges(Config{Cluster: "c", Mirror: f, Temporal: temporal, Events: events, Log: zaptest.NewLogger(t),
		RepairPolicies: []cloud.RepairPolicy{{Condition: corev1.NodeReady, Status: corev1.ConditionUnknown, Tolerated: 30 * time.Minute}}})
	step := func(why string, at time.Duration, want outcome) {
		t.Helper()
		wait := e.repairs.repair(t.Context(), now.Add(at))
		if got := (outcome{wait, len(temporal.all), len(events.Events)}); got != want {
			t.Errorf("%s: %+v, want %+v", why, got, want)
		}
	}
	step("all are well", 0, outcome{})
	f.fall(now, "n0")
	step("one is ill", 10*time.Minute, outcome{wait: 20 * time.Minute})
	temporal.refuses = 1
	step("Temporal is away", 30*time.Minute, outcome{wait: endAgain})
	step("it is ended", 31*time.Minute, outcome{endings: 1, events: 1})
	step("once", 32*time.Minute, outcome{endings: 1, events: 1})
	want := signal{"c/nodeclaim/n0", workflows.SignalEnding, workflows.Ending{Reason: workflows.ReasonUnhealthy, Deadline: now.Add(31 * time.Minute), Forced: true}}
	if diff := cmp.Diff(want, temporal.all[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f.fall(now, "n1", "n2")
	step("three of six are ill, and that is not the nodes' fault", 33*time.Minute, outcome{endings: 1, events: 4})
	delete(f.nodes, "n2")
	step("two of five are no better", 34*time.Minute, outcome{endings: 1, events: 4})
	delete(f.nodes, "n0")
	step("one of four is", 35*time.Minute, outcome{endings: 2, events: 5})
	f.fall(now, "n3")
	f.stale = fmt.Errorf("old")
	step("on an old view nothing is ended", 36*time.Minute, outcome{wait: staleAgain, endings: 2, events: 5})
}

func TestClaimsExpireWhenTheirPoolIsNoLongerGraceful(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f, temporal := newFleet(2, now), &signals{}
	f.claims["n0"].Spec.ExpireAfter = karpv1.NewNillableDuration(time.Hour)
	e := newEdges(Config{Cluster: "c", Mirror: f, Temporal: temporal, Log: zaptest.NewLogger(t)})
	step := func(why string, at time.Duration, want outcome) {
		t.Helper()
		wait := e.expirations.expire(t.Context(), now.Add(at))
		if got := (outcome{wait: wait, endings: len(temporal.all)}); got != want {
			t.Errorf("%s: %+v, want %+v", why, got, want)
		}
	}
	f.pool.Annotations = map[string]string{karpv1.ExpirationAnnotationKey: karpv1.ExpirationGraceful}
	step("a young claim", 0, outcome{})
	step("one that is to be replaced first", 10*time.Hour, outcome{})
	f.pool.Annotations = nil
	step("a moment after its expiry its own workflow ends it", time.Hour+20*time.Second, outcome{wait: 40 * time.Second})
	f.claims["n0"].DeletionTimestamp = &metav1.Time{Time: now}
	step("and has", 2*time.Hour, outcome{})
	f.claims["n0"].DeletionTimestamp = nil
	step("it waited, and is ended", 2*time.Hour, outcome{endings: 1})
	step("once", 3*time.Hour, outcome{endings: 1})
	if diff := cmp.Diff(signal{"c/nodeclaim/n0", workflows.SignalEnding, workflows.Ending{Reason: workflows.ReasonExpired}}, temporal.all[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func testPool(name string) *karpv1.NodePool {
	return &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
}
