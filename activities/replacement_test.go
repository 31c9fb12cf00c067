package activities

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/testsuite"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tenon-sh/tenon/activities/readiness"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	karpv1alpha1 "github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// replacing is a cluster as an activity of a replacement sees it: the API server, and a mirror that shows the same.
type replacing struct {
	Mirror
	client.WithWatch
	t       *testing.T
	running []string
	events  *record.FakeRecorder
	acts    *Activities
}

func newReplacing(t *testing.T, running []string, objects ...client.Object) *replacing {
	t.Helper()
	r := &replacing{t: t, events: record.NewFakeRecorder(100)}
	r.WithWatch = fake.NewClientBuilder().WithScheme(testScheme(t)).WithStatusSubresource(&karpv1.NodeClaim{}).WithObjects(objects...).
		WithIndex(&corev1.Pod{}, podNode, func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).Build()
	r.running = running
	r.connect(r.WithWatch)
	return r
}

// connect recreates the activities with another client of the API server.
func (r *replacing) connect(kube client.WithWatch) {
	r.acts = New(Config{Cluster: "c", Kube: kube, Mirror: r, Temporal: &sweptTemporal{running: r.running}, Events: r.events, Log: zap.NewNop()})
}

func (r *replacing) NodePool(name string) *karpv1.NodePool {
	pool := &karpv1.NodePool{}
	if err := r.Get(context.Background(), client.ObjectKey{Name: name}, pool); err != nil {
		return nil
	}
	return pool
}
func (r *replacing) NodePools() []*karpv1.NodePool             { return nil }
func (r *replacing) NodeOverlays() []*karpv1alpha1.NodeOverlay { return nil }
func (r *replacing) NodeClass(string) cloud.NodeClass          { return nil }
func (r *replacing) Assume(...*karpv1.NodeClaim)               {}
func (r *replacing) Fresh(time.Duration) error                 { return nil }
func (r *replacing) AwaitClaims(context.Context, string) error { return nil }
func (r *replacing) PodsOwnedBy(_, _, _ string) []*cluster.Pod { return nil }

func (r *replacing) Snapshot() *plan.Snapshot {
	reduce := new(plan.Interner)
	snapshot := &plan.Snapshot{Time: time.Now()}
	var nodes corev1.NodeList
	if err := r.List(context.Background(), &nodes); err != nil {
		r.t.Fatal(err)
	}
	for _, claim := range r.claims() {
		node := reduce.Claim(&claim)
		for i := range nodes.Items {
			if nodes.Items[i].Spec.ProviderID == claim.Status.ProviderID {
				node = node.Join(reduce.Node(&nodes.Items[i]))
			}
		}
		pods, err := r.acts.sweeper.objects.podsOn(context.Background(), node.Name)
		if err != nil {
			r.t.Fatal(err)
		}
		for i := range pods {
			node.Pods = append(node.Pods, reduce.Pod(&pods[i]))
		}
		snapshot.Nodes = append(snapshot.Nodes, node)
	}
	return snapshot
}

func (r *replacing) claims() []karpv1.NodeClaim {
	r.t.Helper()
	var list karpv1.NodeClaimList
	if err := r.List(context.Background(), &list); err != nil {
		r.t.Fatal(err)
	}
	return list.Items
}

func (r *replacing) node(name string) *corev1.Node {
	r.t.Helper()
	node := &corev1.Node{}
	if err := r.Get(context.Background(), client.ObjectKey{Name: name}, node); err != nil {
		r.t.Fatal(err)
	}
	return node
}

// run executes an activity as Temporal would.
func run[In, Out any](t *testing.T, do func(context.Context, In) (Out, error), in In) (out Out, err error) {
	t.Helper()
	environment := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	environment.RegisterActivity(do)
	value, err := environment.ExecuteActivity(do, in)
	if err != nil {
		return out, err
	}
	return out, value.Get(&out)
}

// serving returns an initialized node of pool p, and its claim.
func serving(name string) (*karpv1.NodeClaim, *corev1.Node) {
	claim := groupClaim(name, "g", "i-"+name)
	claim.Labels = map[string]string{karpv1.NodePoolLabelKey: "p"}
	claim.Finalizers = []string{karpv1.TerminationFinalizer}
	claim.Status.NodeName = "node-" + name
	for _, condition := range []string{karpv1.ConditionTypeLaunched, karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized} {
		claim.SetCondition(metav1.Condition{Type: condition, Status: metav1.ConditionTrue})
	}
	node := sweptNode("node-"+name, "i-"+name, true, old)
	node.UID = "uid-node"
	node.Labels[karpv1.NodePoolLabelKey] = "p"
	return claim, node
}

func replaceOf(claims int, of ...*karpv1.NodeClaim) workflows.ReplacementCommand {
	in := workflows.ReplacementCommand{ID: "r1", Reason: "Drifted", Why: "it has drifted"}
	for _, claim := range of {
		in.Nodes = append(in.Nodes, workflows.RemovedNode{Node: claim.Status.NodeName, NodeUID: "uid-node", NodePool: "p", Claim: workflows.ClaimRef{Name: claim.Name, UID: string(claim.UID)}})
	}
	for range claims {
		in.Claims = append(in.Claims, workflows.PlannedClaim{NodePool: "p", CapacityType: "spot", InstanceTypes: []string{"m6i.large"}, Group: "alike"})
	}
	return in
}

func poolP() *karpv1.NodePool { return &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p"}} }

// TestBeginAndUndo begins a replacement twice, as after a crash, and takes it back twice: claims are created once, and in
// the end everything is as before.
func TestBeginAndUndo(t *testing.T) {
	t.Parallel()
	claim, node := serving("a")
	r := newReplacing(t, nil, poolP(), claim, node)
	in := replaceOf(2, claim)
	first, err := run(t, r.acts.BeginReplacement, in)
	if err != nil {
		t.Fatal(err)
	}
	again, err := run(t, r.acts.BeginReplacement, in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, again); diff != "" || len(first.Groups) != 1 || len(first.Groups[0].Claims) != 2 || len(r.claims()) != 3 {
		t.Errorf("%d claims; begun again (-first +second):\n%s", len(r.claims()), diff)
	}
	marked := r.node("node-a")
	if !disrupted(marked) || marked.Annotations[karpv1.ReplacementAnnotationKey] != "r1" || marked.Annotations[karpv1.RemovalReasonAnnotationKey] != "" {
		t.Errorf("marked node: %v %v", marked.Spec.Taints, marked.Annotations)
	}
	for _, c := range r.claims() {
		if c.Name == "a" && (!c.IsTrue(karpv1.ConditionTypeDisruptionReason) || c.Condition(karpv1.ConditionTypeDisruptionReason).Reason != "Drifted") {
			t.Errorf("claim of the marked node: %v", c.Status.Conditions)
		}
		if c.Name != "a" && (c.Annotations[karpv1.ReplacementAnnotationKey] != "r1" || c.Annotations[karpv1.LaunchGroupAnnotationKey] != "r1-0") {
			t.Errorf("replacement: %v", c.Annotations)
		}
	}
	other := in
	other.ID = "r2"
	if _, err := run(t, r.acts.BeginReplacement, other); err == nil || !strings.Contains(err.Error(), "somebody else") {
		t.Errorf("a node was to be replaced twice: %v", err)
	}
	if _, err := run(t, r.acts.UndoReplacement, workflows.UndoInput{ID: "r2", Nodes: in.Nodes, Why: "in vain"}); err != nil || !disrupted(r.node("node-a")) {
		t.Errorf("taking back what was never begun took the mark of another: %v", err)
	}
	undo := workflows.UndoInput{ID: "r1", Nodes: in.Nodes, Pools: []string{in.Claims[0].NodePool, in.Claims[1].NodePool}, Why: "there is no capacity"}
	for range 2 {
		undone, err := run(t, r.acts.UndoReplacement, undo)
		if err != nil || !slices.Equal(undone.Nodes, []string{"node-a"}) {
			t.Errorf("undone %+v, %v", undone, err)
		}
	}
	clean := r.node("node-a")
	left := r.claims()
	if disrupted(clean) || clean.Annotations[karpv1.ReplacementAnnotationKey] != "" || len(left) != 1 || left[0].Condition(karpv1.ConditionTypeDisruptionReason) != nil {
		t.Errorf("left behind: %v %v, %d claims", clean.Spec.Taints, clean.Annotations, len(left))
	}
	close(r.events.Events)
	told := 0
	for event := range r.events.Events {
		if strings.Contains(event, "DisruptionAborted") && strings.Contains(event, "there is no capacity") {
			told++
		}
	}
	if told < 2 {
		t.Error("neither Node nor NodeClaim say why")
	}
}

// Whichever write at the begin or the undoing of a replacement loses its answer, the next attempt emits all Events that
// were due: on the Node, on its claim and on the claims that are deleted again.
func TestEventsOfAReplacementOutliveALostAnswer(t *testing.T) {
	t.Parallel()
	play := func(t *testing.T, lost int) (writes int) {
		claim, node := serving("a")
		r := newReplacing(t, nil, poolP(), claim, node)
		answer := func(err error) error {
			if writes++; err == nil && writes == lost {
				return context.Canceled
			}
			return err
		}
		r.connect(interceptor.NewClient(r.WithWatch, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
				return answer(c.Create(ctx, o, options...))
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
				return answer(c.Delete(ctx, o, options...))
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
				return answer(c.Patch(ctx, o, patch, options...))
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, of string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
				return answer(c.SubResource(of).Patch(ctx, o, patch, options...))
			},
		}))
		in := replaceOf(2, claim)
		undo := workflows.UndoInput{ID: in.ID, Nodes: in.Nodes, Pools: []string{in.Claims[0].NodePool, in.Claims[1].NodePool}, Why: "there is no capacity"}
		failed := 0
		for range 2 {
			if _, err := run(t, r.acts.BeginReplacement, in); err == nil {
				break
			}
			failed++
		}
		for range 2 {
			if _, err := run(t, r.acts.UndoReplacement, undo); err == nil {
				break
			}
			failed++
		}
		if left := r.claims(); len(left) != 1 || disrupted(r.node("node-a")) {
			t.Errorf("%d claims are left, the node is marked: %v", len(left), disrupted(r.node("node-a")))
		}
		if lost > 0 && failed != 1 {
			t.Errorf("%d attempts failed, want the one whose answer was lost", failed)
		}
		close(r.events.Events)
		told := map[string]int{}
		for event := range r.events.Events {
			for _, what := range []string{"DisruptionLaunching", "It is not replaced", "was undone"} {
				if strings.Contains(event, what) {
					told[what]++
				}
			}
		}
		for what, want := range map[string]int{"DisruptionLaunching": 2, "It is not replaced": 2, "was undone": 2} {
			if told[what] < want {
				t.Errorf("%q was said %d times, want at least %d", what, told[what], want)
			}
		}
		return writes
	}
	writes := play(t, 0)
	for lost := range writes {
		t.Run(fmt.Sprintf("write %d of %d", lost+1, writes), func(t *testing.T) {
			t.Parallel()
			play(t, lost+1)
		})
	}
}

// A node that the policy Balanced consolidates gets one Event. Other policies and other reasons cause none.
func TestBeginTellsWhatBalancedLetsGo(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		policy karpv1.ConsolidationPolicy
		why    karpv1.DisruptionReason
		want   int
	}{
		{reason: "the policy weighs it: once on the Node and once on its claim", policy: karpv1.ConsolidationPolicyBalanced,
			why: karpv1.DisruptionReasonUnderutilized, want: 2},
		{reason: "drift is not weighed", policy: karpv1.ConsolidationPolicyBalanced, why: karpv1.DisruptionReasonDrifted, want: 0},
		{reason: "another policy weighs nothing", policy: karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized, why: karpv1.DisruptionReasonUnderutilized, want: 0},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			claim, node := serving("a")
			pool := poolP()
			pool.Spec.Disruption.ConsolidationPolicy = test.policy
			r := newReplacing(t, nil, pool, claim, node)
			in := replaceOf(0, claim)
			in.Reason, in.Why = string(test.why), "it saves much"
			for range 2 {
				if _, err := run(t, r.acts.BeginReplacement, in); err != nil {
					t.Fatal(err)
				}
			}
			close(r.events.Events)
			told := 0
			for event := range r.events.Events {
				if event == "Normal ConsolidationApproved it saves much" {
					told++
				}
			}
			if told != test.want {
				t.Errorf("told %d times, want %d", told, test.want)
			}
		})
	}
}

func TestBeginRefuses(t *testing.T) {
	t.Parallel()
	claim, node := serving("a")
	leaving := claim.DeepCopy()
	leaving.DeletionTimestamp = new(metav1.Now())
	anew := claim.DeepCopy()
	anew.UID = "another"
	for _, test := range []struct {
		reason  string
		objects []client.Object
		want    string
	}{
		{reason: "the claim is gone", objects: []client.Object{poolP(), node}, want: "gone or is being removed"},
		{reason: "the claim is being deleted", objects: []client.Object{poolP(), leaving, node}, want: "gone or is being removed"},
		{reason: "there is another of its name", objects: []client.Object{poolP(), anew, node}, want: "gone or is being removed"},
		{reason: "the Node is gone", objects: []client.Object{poolP(), claim}, want: "gone or is being removed"},
		{reason: "the pool is gone", objects: []client.Object{claim, node}, want: "NodePool p is gone"},
	} {
		var objects []client.Object
		for _, object := range test.objects {
			objects = append(objects, object.DeepCopyObject().(client.Object))
		}
		r := newReplacing(t, nil, objects...)
		if _, err := run(t, r.acts.BeginReplacement, replaceOf(1, claim)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.reason, err)
		}
		if len(r.claims()) > 1 {
			t.Errorf("%s: a claim was made", test.reason)
		}
	}
}

// TestBeginApart marks those of several nodes that have not changed, each with its own reason, and begins nothing if all
// have changed.
func TestBeginApart(t *testing.T) {
	t.Parallel()
	a, nodeA := serving("a")
	b, nodeB := serving("b")
	r := newReplacing(t, nil, poolP(), a, nodeA, nodeB)
	in := replaceOf(0, a, b)
	in.Independent, in.Nodes[0].Why = true, "its pod fits elsewhere"
	if _, err := run(t, r.acts.BeginReplacement, in); err != nil {
		t.Fatal(err)
	}
	if !disrupted(r.node("node-a")) || disrupted(r.node("node-b")) {
		t.Error("not just the node was marked whose claim is there")
	}
	if why := r.claims()[0].Condition(karpv1.ConditionTypeDisruptionReason); why == nil || why.Message != "its pod fits elsewhere" {
		t.Errorf("the claim says %+v", why)
	}
	in.Nodes = in.Nodes[1:]
	if _, err := run(t, r.acts.BeginReplacement, in); workflows.FailureType(err) != workflows.FailureChanged {
		t.Errorf("with no node that is as it was: %v", err)
	}
}

// TestBeginAsksForThePods checks that a replacement begins only if most of the pods it was decided for are still there.
func TestBeginAsksForThePods(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason           string
		running, leaving int
		begins           bool
	}{
		{reason: "all are there", running: 4, leaving: 0, begins: true},
		{reason: "a few have left, as some always do", running: 2, leaving: 1, begins: true},
		{reason: "the workload is being taken away", running: 1, leaving: 3, begins: false},
		{reason: "the node is empty by now, and goes by itself", running: 0, leaving: 0, begins: false},
	} {
		claim, node := serving("a")
		objects := []client.Object{poolP(), claim, node}
		for i := range test.running + test.leaving {
			pod := webPod(fmt.Sprint("web-", i), nil)
			if i >= test.running {
				pod.DeletionTimestamp, pod.Finalizers = new(metav1.Now()), []string{"kubelet"}
			}
			objects = append(objects, pod)
		}
		r := newReplacing(t, nil, objects...)
		in := replaceOf(1, claim)
		in.Moves = 4
		_, err := run(t, r.acts.BeginReplacement, in)
		if begun := len(r.claims()) == 2 && disrupted(r.node("node-a")); begun != test.begins || (err == nil) != test.begins {
			t.Errorf("%s: begun: %t, %v", test.reason, begun, err)
		}
		if err != nil && workflows.FailureType(err) != workflows.FailureChanged {
			t.Errorf("%s: Disruption is not told that it should decide anew: %v", test.reason, err)
		}
	}
}

// webPod returns a pod of a Deployment on node-a.
func webPod(name string, annotations map[string]string) *corev1.Pod {
	yes := true
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "uid-pod", Annotations: annotations,
		OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: &yes}}}, Spec: corev1.PodSpec{NodeName: "node-a"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning}}
}

// TestRetire checks two nodes once more that are about to be removed.
func TestRetire(t *testing.T) {
	t.Parallel()
	claimA, _ := serving("a")
	for _, test := range []struct {
		reason string
		edit   func(a, b *karpv1.NodeClaim, nodeA *corev1.Node)
		apart  bool
		pods   []client.Object
		want   workflows.RetireResult
		stay   []string
	}{
		{reason: "nothing keeps them", want: workflows.RetireResult{Retired: []string{"a", "b"}}},
		{
			reason: "one was deleted meanwhile by somebody else", want: workflows.RetireResult{Retired: []string{"b"}, Gone: []string{"a"}},
			edit: func(a, _ *karpv1.NodeClaim, _ *corev1.Node) { a.DeletionTimestamp = new(metav1.Now()) },
		},
		{
			reason: "one was let go by an earlier try", want: workflows.RetireResult{Retired: []string{"a", "b"}},
			edit: func(a, _ *karpv1.NodeClaim, nodeA *corev1.Node) {
				a.DeletionTimestamp = new(metav1.Now())
				nodeA.Annotations[karpv1.RemovalReasonAnnotationKey] = "Drifted"
			},
		},
		{
			reason: "a person asks for one to stay", stay: []string{"a", "b"},
			want: workflows.RetireResult{Blocked: []string{"node-a: it is annotated karpenter.sh/do-not-disrupt=true"}, ForGood: true},
			edit: func(_, _ *karpv1.NodeClaim, nodeA *corev1.Node) {
				nodeA.Annotations[karpv1.DoNotDisruptAnnotationKey] = "true"
			},
		},
		{
			reason: "a pod has come that does not want to be moved", stay: []string{"a", "b"}, pods: []client.Object{webPod("web-1", map[string]string{karpv1.DoNotDisruptAnnotationKey: "true"})},
			want: workflows.RetireResult{Blocked: []string{"node-a: pod default/web-1 is annotated not to be disrupted"}, ForGood: true},
		},
		{
			reason: "a pod finds no other place for now", stay: []string{"a", "b"}, pods: []client.Object{webPod("web-1", nil)},
			want: workflows.RetireResult{Blocked: []string{"a: pod default/web-1 would find no other place now"}, NoRoom: true},
		},
		{
			reason: "a person asks for one to stay, which keeps no other", apart: true, stay: []string{"a"},
			want: workflows.RetireResult{Retired: []string{"b"}, Left: replaceOf(0, claimA).Nodes, Blocked: []string{"node-a: it is annotated karpenter.sh/do-not-disrupt=true"}, ForGood: true},
			edit: func(_, _ *karpv1.NodeClaim, nodeA *corev1.Node) {
				nodeA.Annotations[karpv1.DoNotDisruptAnnotationKey] = "true"
			},
		},
		{
			reason: "the pod of one finds no other place, which keeps no other", apart: true, stay: []string{"a"}, pods: []client.Object{webPod("web-1", nil)},
			want: workflows.RetireResult{Retired: []string{"b"}, Left: replaceOf(0, claimA).Nodes, Blocked: []string{"a: pod default/web-1 would find no other place now"}, NoRoom: true},
		},
		{
			reason: "somebody else was at one, so that it was never marked", apart: true, stay: []string{"a"},
			want: workflows.RetireResult{Retired: []string{"b"}, Gone: []string{"a"}},
			edit: func(_, _ *karpv1.NodeClaim, nodeA *corev1.Node) {
				nodeA.Annotations[karpv1.ReplacementAnnotationKey] = "another"
			},
		},
	} {
		a, nodeA := serving("a")
		b, nodeB := serving("b")
		for _, node := range []*corev1.Node{nodeA, nodeB} {
			taintDisrupted(node)
			node.Annotations = map[string]string{karpv1.ReplacementAnnotationKey: "r1"}
		}
		if test.edit != nil {
			test.edit(a, b, nodeA)
		}
		r := newReplacing(t, nil, append([]client.Object{poolP(), a, b, nodeA, nodeB}, test.pods...)...)
		got, err := run(t, r.acts.Retire, workflows.RetireInput{ID: "r1", Reason: "Drifted", Nodes: replaceOf(0, a, b).Nodes, Independent: test.apart})
		if err != nil {
			t.Errorf("%s: %v", test.reason, err)
			continue
		}
		slices.Sort(got.Retired)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.reason, diff)
		}
		var stay []string
		for _, claim := range r.claims() {
			if claim.DeletionTimestamp.IsZero() {
				stay = append(stay, claim.Name)
			}
		}
		if !slices.Equal(stay, test.stay) {
			t.Errorf("%s: %q stay, want %q", test.reason, stay, test.stay)
		}
	}
}

// TestRetireOpens checks that the launched nodes take pods when the old nodes are removed, or later if requested.
func TestRetireOpens(t *testing.T) {
	t.Parallel()
	old, oldNode := serving("old")
	taintDisrupted(oldNode)
	oldNode.Annotations = map[string]string{karpv1.ReplacementAnnotationKey: "r1"}
	launched, launchedNode := serving("new")
	reserve(launchedNode)
	r := newReplacing(t, nil, poolP(), old, launched, oldNode, launchedNode)
	in := workflows.RetireInput{ID: "r1", Reason: "Underutilized", Nodes: replaceOf(0, old).Nodes, Independent: true, KeepTainted: true,
		Claims: []workflows.ClaimRef{{Name: launched.Name, UID: string(launched.UID)}}}
	for _, look := range []struct {
		reason string
		closed bool
	}{
		{"the large pods of the nodes go first", true},
		{"now it is the small ones' turn", false},
	} {
		if _, err := run(t, r.acts.Retire, in); err != nil {
			t.Fatal(err)
		}
		if closed := readiness.Expecting(r.node("node-new")); closed != look.closed {
			t.Errorf("%s: what was launched is closed: %t", look.reason, closed)
		}
		in.Nodes, in.KeepTainted = nil, false
	}
}

// TestSweepUnmarks removes from nodes the marks that a terminated replacement or Karpenter has left behind, and no others.
func TestSweepUnmarks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason       string
		id, launched string
		says, leaves bool
		running      []string
		unmarked     bool
	}{
		{reason: "its replacement was terminated", id: "r1", says: true, unmarked: true},
		{reason: "its replacement was terminated before it was said on the claim", id: "r1", unmarked: true},
		{reason: "its replacement runs", id: "r1", says: true, running: []string{"c/replacement/r1"}},
		{reason: "it is being removed", id: "r1", says: true, leaves: true},
		{reason: "Karpenter marked it and never came back", says: true, unmarked: true},
		{reason: "somebody drains it", says: true, running: []string{"c/drain/node-a"}},
		{reason: "somebody has drained it by hand and keeps it"},
		{reason: "somebody has drained it by hand that once came as a replacement", id: "r0", launched: "r0"},
	} {
		claim, node := serving("a")
		taintDisrupted(node)
		node.Annotations = map[string]string{}
		if test.id != "" {
			node.Annotations[karpv1.ReplacementAnnotationKey] = test.id
		}
		if test.launched != "" {
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, karpv1.ReplacementAnnotationKey, test.launched)
		}
		if test.says {
			claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeDisruptionReason, Status: metav1.ConditionTrue, Reason: "Drifted"})
		}
		if test.leaves {
			claim.DeletionTimestamp = new(metav1.Now())
		}
		r := newReplacing(t, test.running, claim, node)
		listed := r.claims()[0]
		s := sweep{sweeper: r.acts.sweeper, claims: map[string]*karpv1.NodeClaim{node.Spec.ProviderID: &listed}}
		s.marks(t.Context(), []*corev1.Node{r.node("node-a")})
		if s.result.Failures > 0 {
			t.Errorf("%s: %v", test.reason, s.result.Failed)
			continue
		}
		if unmarked := !disrupted(r.node("node-a")); unmarked != test.unmarked || unmarked != (len(s.result.Unmarked) == 1) {
			t.Errorf("%s: unmarked %t, want %t (%v)", test.reason, unmarked, test.unmarked, s.result.Unmarked)
		}
		if now := r.claims()[0]; test.unmarked && now.Condition(karpv1.ConditionTypeDisruptionReason) != nil {
			t.Errorf("%s: the claim still says that it goes", test.reason)
		}
	}
}
