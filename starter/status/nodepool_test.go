package status

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
)

func TestNodeClassReady(t *testing.T) {
	t.Parallel()
	class := func(ready metav1.ConditionStatus, reason string) *awsv1.EC2NodeClass {
		c := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", Generation: 2}}
		c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: ready, Reason: reason, Message: "because", ObservedGeneration: 2}}
		return c
	}
	changed := class(metav1.ConditionTrue, "Ready")
	changed.Generation = 3
	deleted := class(metav1.ConditionTrue, "Ready")
	deleted.DeletionTimestamp = new(metav1.Now())
	for _, tc := range []struct {
		reason     string
		ref        *karpv1.NodeClassReference
		class      *awsv1.EC2NodeClass
		wantStatus metav1.ConditionStatus
		wantReason string
	}{
		{reason: "the class is ready", class: class(metav1.ConditionTrue, "Ready"), wantStatus: metav1.ConditionTrue, wantReason: ""},
		{reason: "the class says why it is not", class: class(metav1.ConditionFalse, "SubnetsNotFound"), wantStatus: metav1.ConditionFalse,
			wantReason: "SubnetsNotFound"},
		{reason: "the class does not know", class: class(metav1.ConditionUnknown, "x"), wantStatus: metav1.ConditionUnknown,
			wantReason: karpv1.ReasonNodeClassReadinessUnknown},
		{reason: "what the class says is about what it was", class: changed, wantStatus: metav1.ConditionUnknown,
			wantReason: karpv1.ReasonNodeClassReadinessUnknown},
		{reason: "the class has not said anything", class: &awsv1.EC2NodeClass{}, wantStatus: metav1.ConditionUnknown,
			wantReason: karpv1.ReasonNodeClassReadinessUnknown},
		{reason: "a class that goes is not used", class: deleted, wantStatus: metav1.ConditionFalse, wantReason: karpv1.ReasonNodeClassTerminating},
		{reason: "there is no class", wantStatus: metav1.ConditionFalse, wantReason: karpv1.ReasonNodeClassNotFound},
		{
			reason: "a class of another provider", ref: &karpv1.NodeClassReference{Group: "karpenter.azure.com", Kind: "AKSNodeClass", Name: "default"},
			class: class(metav1.ConditionTrue, "Ready"), wantStatus: metav1.ConditionFalse, wantReason: karpv1.ReasonNodeClassNotFound,
		},
	} {
		pool := testPool("default")
		if tc.ref != nil {
			pool.Spec.Template.Spec.NodeClassRef = tc.ref
		}
		got := nodeClassReady(nodeclass.Kind(), pool, func(string) cloud.NodeClass {
			if tc.class == nil {
				return nil
			}
			return tc.class
		})
		if got.Status != tc.wantStatus || got.Reason != tc.wantReason {
			t.Errorf("%s: %s with reason %q, want %s with %q", tc.reason, got.Status, got.Reason, tc.wantStatus, tc.wantReason)
		}
		if got.Status != metav1.ConditionTrue && got.Message == "" {
			t.Errorf("%s: no message", tc.reason)
		}
	}
}

func TestPoolStatusFollowsTheMirror(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	world := newPoolWorld(t)
	world.step("a new pool without a class", 2)
	pool := world.pool("default")
	if ready := pool.Condition("Ready"); ready == nil || ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, "NodeClassReady=False") {
		t.Errorf("Ready is %+v, want False for the class", ready)
	}
	wantResources(t, "no nodes", pool, map[corev1.ResourceName]string{
		"cpu": "0", "memory": "0", "pods": "0", "ephemeral-storage": "0", "nodes": "0",
	})
	if hash, err := pool.Hash(); err != nil || pool.Annotations[karpv1.NodePoolHashAnnotationKey] != hash {
		t.Errorf("annotations %v, want the hash %s (%v)", pool.Annotations, hash, err)
	}
	world.step("nothing has changed", 0)

	world.classes["default"] = &awsv1.EC2NodeClass{Status: awsv1.EC2NodeClassStatus{
		Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}},
	}}
	world.step("the class is ready", 1)
	if pool = world.pool("default"); !pool.IsTrue("Ready") || pool.Condition("Ready").ObservedGeneration != pool.Generation {
		t.Errorf("Ready is %+v, want True for generation %d", pool.Condition("Ready"), pool.Generation)
	}

	world.claims = []*karpv1.NodeClaim{
		testClaim("launching", "default", "", nil),
		testClaim("booting", "default", "aws:///a", corev1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("58")}),
		testClaim("serving", "default", "aws:///b", corev1.ResourceList{"cpu": resource.MustParse("4")}),
		testClaim("of another pool", "other", "aws:///c", corev1.ResourceList{"cpu": resource.MustParse("64")}),
		testClaim("of no pool", "", "aws:///d", corev1.ResourceList{"cpu": resource.MustParse("64")}),
	}
	world.nodes["aws:///a"] = testStatusNode(false, corev1.ResourceList{"cpu": resource.MustParse("1")})
	world.nodes["aws:///b"] = testStatusNode(true, corev1.ResourceList{
		"cpu": resource.MustParse("3920m"), "nvidia.com/gpu": resource.MustParse("1"), "hugepages-2Mi": resource.MustParse("0"),
	})
	world.step("nodes come, and maybe more do", 0)
	world.step("no more nodes come", 1)
	wantResources(t, "the initialized Node counts by itself, the others by what was bought", world.pool("default"), map[corev1.ResourceName]string{
		"cpu": "7920m", "memory": "0", "pods": "58", "ephemeral-storage": "0", "nodes": "2", "nvidia.com/gpu": "1",
	})
	if nodes := world.pool("default").Status.Nodes; nodes == nil || *nodes != 2 {
		t.Errorf("status.nodes is %v, want 2", nodes)
	}
	world.step("nothing has changed again", 0)

	broken := world.pool("default")
	broken.Generation++
	broken.Spec.Template.Spec.StartupTaints = []corev1.Taint{{Key: "a", Effect: "NoSchedule"}, {Key: "a", Effect: "NoSchedule"}}
	if err := world.client.Update(ctx, broken); err != nil {
		t.Fatal(err)
	}
	world.step("the pool is broken", 2)
	pool = world.pool("default")
	valid := pool.Condition(karpv1.ConditionTypeValidationSucceeded)
	if pool.IsTrue("Ready") || valid.Reason != karpv1.ReasonNodePoolValidationFailed || !strings.Contains(valid.Message, "spec.template.spec.startupTaints[1]") {
		t.Errorf("ValidationSucceeded is %+v, want False naming the field", valid)
	}
}

func TestClaimsGetTodaysHash(t *testing.T) {
	t.Parallel()
	world := newPoolWorld(t)
	old, drifted := testClaim("old", "default", "aws:///a", nil), testClaim("drifted", "default", "aws:///b", nil)
	today, byHand := testClaim("today", "default", "aws:///c", nil), testClaim("by-hand", "default", "aws:///d", nil)
	for claim, version := range map[*karpv1.NodeClaim]string{old: "v2", drifted: "v2", today: karpv1.NodePoolHashVersion} {
		claim.Annotations = map[string]string{karpv1.NodePoolHashAnnotationKey: "1", karpv1.NodePoolHashVersionAnnotationKey: version}
	}
	drifted.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeDrifted, Status: metav1.ConditionTrue})
	for _, claim := range []*karpv1.NodeClaim{old, drifted, today, byHand} {
		if err := world.client.Create(context.Background(), claim); err != nil {
			t.Fatal(err)
		}
		world.claims = append(world.claims, claim)
	}
	world.step("claims of an older Karpenter", 4)
	hash, err := world.pool("default").Hash()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][2]string{
		"old":     {hash, karpv1.NodePoolHashVersion},
		"drifted": {"1", karpv1.NodePoolHashVersion},
		"today":   {"1", karpv1.NodePoolHashVersion},
		"by-hand": {"", ""},
	} {
		var claim karpv1.NodeClaim
		if err := world.client.Get(context.Background(), kube.ObjectKey{Name: name}, &claim); err != nil {
			t.Fatal(err)
		}
		got := [2]string{claim.Annotations[karpv1.NodePoolHashAnnotationKey], claim.Annotations[karpv1.NodePoolHashVersionAnnotationKey]}
		if got != want {
			t.Errorf("claim %s has hash and version %v, want %v", name, got, want)
		}
	}
}

// TestCountsAreWrittenOncePerBurst checks that nodes which arrive one after the other do not cost one write each, and
// that a pool whose nodes keep changing is still written.
func TestCountsAreWrittenOncePerBurst(t *testing.T) {
	t.Parallel()
	world := newPoolWorld(t)
	now := time.Unix(0, 0)
	world.keeper.now = func() time.Time { return now }
	world.step("a new pool", 2)
	come := func(n int) {
		for range n {
			id := fmt.Sprint("aws:///", len(world.claims))
			world.claims = append(world.claims, testClaim(id, "default", id, nil))
		}
	}
	count := func(reason string, want int64) {
		t.Helper()
		if nodes := world.pool("default").Status.Nodes; *nodes != want {
			t.Errorf("%s: %d nodes, want %d", reason, *nodes, want)
		}
	}
	come(1)
	world.step("the first of a burst", 0)
	come(25)
	world.step("the rest of it", 0)
	world.step("no more come", 1)
	count("after a burst", 26)
	come(1)
	world.step("another one", 0)
	world.claims = world.claims[:26]
	world.step("it is gone again", 0)
	if len(world.keeper.counts) > 0 {
		t.Error("what is written is waited for")
	}
	for range maxCounts/statusEvery + 1 {
		come(1)
		world.writes = 0
		if err := world.keeper.pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		now = now.Add(statusEvery)
	}
	if world.writes != 1 {
		t.Errorf("%d writes at the end of %s in which nodes came all the time", world.writes, maxCounts)
	}
	count("in the midst of changes", 26+int64(maxCounts/statusEvery)+1)
}

// TestAStaleMirrorWritesNothing checks that the API server refuses a status computed from an old object, and that this
// is not treated as a failure.
func TestAStaleMirrorWritesNothing(t *testing.T) {
	t.Parallel()
	world := newPoolWorld(t)
	world.step("a new pool", 2)
	stale := world.pool("default")
	world.classes["default"] = &awsv1.EC2NodeClass{Status: awsv1.EC2NodeClassStatus{
		Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}},
	}}
	world.step("the class is ready", 1)
	world.frozen = stale
	delete(world.classes, "default")
	world.claims = []*karpv1.NodeClaim{testClaim("a", "default", "aws:///a", nil)}
	world.step("a node comes, and the mirror is behind", 0)
	world.step("the mirror is still behind", 1)
	if !world.pool("default").IsTrue("Ready") {
		t.Error("the newer status was overwritten")
	}
}

// poolWorld is an in-memory cluster: the mirror shows what the API server has, and writes are counted.
type poolWorld struct {
	t       *testing.T
	client  kube.Client
	writes  int
	keeper  *NodePools
	classes map[string]cloud.NodeClass
	claims  []*karpv1.NodeClaim
	pauses  []karpv1.Pause
	windows karpv1.MaintenanceWindows
	nodes   map[string]*corev1.Node
	// frozen, when set, is the pool that the mirror shows instead of the current one.
	frozen *karpv1.NodePool
}

func newPoolWorld(t *testing.T) *poolWorld {
	w := &poolWorld{t: t, classes: map[string]cloud.NodeClass{}, nodes: map[string]*corev1.Node{}}
	w.client = countingClient(t, testPool("default"), &w.writes)
	w.keeper = NewNodePools(nodeclass.Kind(), w.client, w, zaptest.NewLogger(t))
	return w
}

// step makes a pass and checks how many writes it takes.
func (w *poolWorld) step(reason string, want int) {
	w.t.Helper()
	w.writes = 0
	if err := w.keeper.pass(context.Background()); err != nil {
		w.t.Errorf("%s: %v", reason, err)
	}
	if w.writes != want {
		w.t.Errorf("%s: %d writes, want %d", reason, w.writes, want)
	}
}

func (w *poolWorld) pool(name string) *karpv1.NodePool {
	w.t.Helper()
	var pool karpv1.NodePool
	if err := w.client.Get(context.Background(), kube.ObjectKey{Name: name}, &pool); err != nil {
		w.t.Fatal(err)
	}
	return &pool
}

func (w *poolWorld) WaitSynced(context.Context) error                     { return nil }
func (w *poolWorld) Subscribe(...cluster.EventKind) *cluster.Subscription { return nil }
func (w *poolWorld) NodeClass(name string) cloud.NodeClass                { return w.classes[name] }
func (w *poolWorld) Claims() []*karpv1.NodeClaim                          { return w.claims }
func (w *poolWorld) NodeByProviderID(id string) *corev1.Node              { return w.nodes[id] }
func (w *poolWorld) PublishedDevices() plan.DeviceTemplates               { return nil }
func (w *poolWorld) Pauses() []karpv1.Pause                               { return w.pauses }
func (w *poolWorld) Windows() karpv1.MaintenanceWindows                   { return w.windows }
func (w *poolWorld) NodePools() []*karpv1.NodePool {
	if w.frozen != nil {
		return []*karpv1.NodePool{w.frozen}
	}
	return []*karpv1.NodePool{w.pool("default")}
}

func testPool(name string) *karpv1.NodePool {
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
	pool.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"}
	return pool
}

func testClaim(name, pool, providerID string, capacity corev1.ResourceList) *karpv1.NodeClaim {
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if pool != "" {
		claim.Labels = map[string]string{karpv1.NodePoolLabelKey: pool}
	}
	claim.Status.ProviderID, claim.Status.Capacity = providerID, capacity
	return claim
}

func testStatusNode(initialized bool, capacity corev1.ResourceList) *corev1.Node {
	node := &corev1.Node{Status: corev1.NodeStatus{Capacity: capacity}}
	if initialized {
		node.Labels = map[string]string{karpv1.NodeInitializedLabelKey: "true"}
	}
	return node
}

func wantResources(t *testing.T, reason string, pool *karpv1.NodePool, want map[corev1.ResourceName]string) {
	t.Helper()
	got := map[corev1.ResourceName]string{}
	for _, name := range slices.Sorted(maps.Keys(pool.Status.Resources)) {
		quantity := pool.Status.Resources[name]
		got[name] = quantity.String()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: status.resources (-want +got)\n%s", reason, diff)
	}
}

// TestPausedPools checks that the condition Paused comes and goes with what is paused, and leaves Ready alone.
func TestPausedPools(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	pool := &karpv1.NodePool{}
	pool.Name = "p"
	for _, test := range []struct {
		reason      string
		pauses      []karpv1.Pause
		annotations map[string]string
		want        string
	}{
		{reason: "nothing is paused"},
		{reason: "one kind of work", pauses: []karpv1.Pause{{What: karpv1.PauseDisruption}}, want: "Disruption"},
		{reason: "two kinds, one of them for the pool", pauses: []karpv1.Pause{{What: karpv1.PauseDisruption}}, annotations: map[string]string{karpv1.PauseAnnotationKey: "interruption"}, want: "DisruptionAndInterruption"},
		{reason: "a pause that is over", pauses: []karpv1.Pause{{What: karpv1.PauseDisruption, Until: now}}},
		{reason: "an observed pool", annotations: map[string]string{karpv1.ObserveAnnotationKey: "true"}, want: "Observed"},
	} {
		pool.Annotations = test.annotations
		condition, some := pausedCondition(test.pauses, pool, now)
		if condition.Reason != test.want || some != (test.want != "") {
			t.Errorf("%s: the condition is %+v, want the reason %q", test.reason, condition, test.want)
		}
	}
	if slices.Contains(pool.ReadyParts(), karpv1.ConditionTypePaused) {
		t.Error("a pause affects Ready")
	}
}
