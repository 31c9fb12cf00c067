package activities

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// evictEnvironment runs Evict over objects that nothing else changes.
func evictEnvironment(t *testing.T, objects ...client.Object) *testsuite.TestActivityEnvironment {
	objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid"}})
	d := &Drains{Log: zap.NewNop(), Client: fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(objects...).
		WithIndex(&corev1.Pod{}, podNode, func(object client.Object) []string { return []string{object.(*corev1.Pod).Spec.NodeName} }).
		WithIndex(&corev1.Node{}, "metadata.name", func(object client.Object) []string { return []string{object.GetName()} }).Build()}
	var suite testsuite.WorkflowTestSuite
	environment := suite.NewTestActivityEnvironment()
	environment.RegisterActivityWithOptions(d.Evict, activity.RegisterOptions{Name: workflows.EvictActivity.Name})
	return environment
}

func protectedPod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "batch", UID: "pod-uid", Annotations: map[string]string{karpv1.DoNotDisruptAnnotationKey: "true"}},
		Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
}

func evictInput() workflows.EvictInput {
	return workflows.EvictInput{Node: "n", NodeUID: "uid", Claim: "claim", Reason: workflows.ReasonEmpty}
}

func TestEvictGoesOnWhereTheLastTryStopped(t *testing.T) {
	t.Parallel()
	environment := evictEnvironment(t)
	environment.SetHeartbeatDetails(evictProgress{Started: time.Now().Add(-time.Minute), Evicted: 3})
	value, err := environment.ExecuteActivity(workflows.EvictActivity.Name, evictInput())
	if err != nil {
		t.Fatal(err)
	}
	var got workflows.EvictResult
	if err := value.Get(&got); err != nil {
		t.Fatal(err)
	}
	if !got.Done || got.Evicted != 3 {
		t.Errorf("result %+v, want done with the three evictions of the try before", got)
	}
}

func TestEvictHandsOverWhenItsWorkerStops(t *testing.T) {
	t.Parallel()
	environment := evictEnvironment(t, protectedPod())
	stopping := make(chan struct{})
	environment.SetWorkerStopChannel(stopping)
	close(stopping)
	_, err := environment.ExecuteActivity(workflows.EvictActivity.Name, evictInput())
	if err == nil || !strings.Contains(err.Error(), errWorkerStopping.Error()) {
		t.Errorf("error %v, want to be tried again elsewhere", err)
	}
}

func TestEvictReportsNewBlockersOnly(t *testing.T) {
	t.Parallel()
	environment := evictEnvironment(t, protectedPod())
	value, err := environment.ExecuteActivity(workflows.EvictActivity.Name, evictInput())
	if err != nil {
		t.Fatal(err)
	}
	var first workflows.EvictResult
	if err := value.Get(&first); err != nil {
		t.Fatal(err)
	}
	if first.Done || first.Left != 1 || len(first.Blockers) != 1 || first.Blockers[0].Pod != "team/batch" {
		t.Fatalf("result %+v", first)
	}
	known := evictInput()
	known.Known, known.Deadline = first.Digest, time.Now().Add(-time.Second)
	if value, err = environment.ExecuteActivity(workflows.EvictActivity.Name, known); err != nil {
		t.Fatal(err)
	}
	var last workflows.EvictResult
	if err := value.Get(&last); err != nil {
		t.Fatal(err)
	}
	if last.Evicted != 1 {
		t.Errorf("at the deadline: %+v, want the pod deleted", last)
	}
}

// TestAPassLeavesTheWaitingToItsWorkflow has pods that a budget holds: a pass whose workflow knows the blockers reports
// that after few requests, and does not request an eviction that the budget is certain to refuse.
func TestAPassLeavesTheWaitingToItsWorkflow(t *testing.T) {
	t.Parallel()
	webPod := func(name string, change func(*corev1.Pod)) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name), Labels: map[string]string{"app": "web"}}, Spec: corev1.PodSpec{NodeName: "n"},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
		if change != nil {
			change(pod)
		}
		return pod
	}
	unready := func(pod *corev1.Pod) { pod.Status.Conditions = nil }
	for reason, test := range map[string]struct {
		left    time.Duration // until the deadline, where there is one
		objects []client.Object
		waits   bool
		asked   int
		calls   int
	}{
		"a budget holds ten pods":                   {objects: append(tenPods(webPod), budgetOf("team", "web", 0)), waits: true, calls: 6},
		"two budgets hold one":                      {objects: []client.Object{webPod("a", nil), budgetOf("team", "web", 1), budgetOf("team", "web2", 1)}, waits: true, calls: 6},
		"an annotation holds one":                   {objects: []client.Object{protectedPod()}, waits: true, calls: 5},
		"what is not Ready may go where enough are": {objects: []client.Object{webPod("a", unready), budgetOf("team", "web", 0)}, asked: 1},
		"the budget allows one":                     {objects: []client.Object{webPod("a", nil), budgetOf("team", "web", 1)}, asked: 1},
		"the budget allows two of ten":              {objects: append(tenPods(webPod), budgetOf("team", "web", 2)), asked: 2},
		"the deadline is near":                      {left: 40 * time.Second, objects: []client.Object{webPod("a", nil), budgetOf("team", "web", 0)}},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			in := evictInput()
			in.MayWait = true
			if test.left > 0 {
				in.Deadline = time.Now().Add(test.left)
			}
			var calls, asked atomic.Int64
			var taking sync.Mutex
			count := func() { calls.Add(1) }
			objects := append([]client.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid"}}}, test.objects...)
			d := &Drains{Log: zap.NewNop(), Client: fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(objects...).
				WithIndex(&corev1.Pod{}, podNode, func(object client.Object) []string { return []string{object.(*corev1.Pod).Spec.NodeName} }).
				WithIndex(&corev1.Node{}, "metadata.name", func(object client.Object) []string { return []string{object.GetName()} }).
				WithInterceptorFuncs(interceptor.Funcs{
					Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
						count()
						return c.Get(ctx, key, object, options...)
					},
					List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
						count()
						return c.List(ctx, list, options...)
					},
					Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
						count()
						return c.Patch(ctx, object, patch, options...)
					},
					SubResourceCreate: func(ctx context.Context, c client.Client, _ string, _, _ client.Object, _ ...client.SubResourceCreateOption) error {
						count()
						asked.Add(1)
						taking.Lock()
						defer taking.Unlock()
						return takeFrom(ctx, c)
					},
				}).Build()}
			var suite testsuite.WorkflowTestSuite
			environment := suite.NewTestActivityEnvironment()
			environment.RegisterActivityWithOptions(d.Evict, activity.RegisterOptions{Name: workflows.EvictActivity.Name})
			// The workflow already shows what this pass finds.
			in.Known = digestOf(heldBlockers(test.objects))
			stopping := make(chan struct{})
			time.AfterFunc(2*time.Second, func() { close(stopping) })
			environment.SetWorkerStopChannel(stopping)
			value, err := environment.ExecuteActivity(workflows.EvictActivity.Name, in)
			if !test.waits {
				if err == nil || int(asked.Load()) != test.asked {
					t.Errorf("the pass ended with %v after asking for %d evictions, want it to go on after %d", err, asked.Load(), test.asked)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got workflows.EvictResult
			if err := value.Get(&got); err != nil {
				t.Fatal(err)
			}
			if !got.Waiting || got.Done || int(calls.Load()) > test.calls || asked.Load() > 0 {
				t.Errorf("%+v after %d calls and %d evictions asked for, want it to wait after at most %d calls", got, calls.Load(), asked.Load(), test.calls)
			}
			var node corev1.Node
			if err := d.Client.Get(t.Context(), client.ObjectKey{Name: "n"}, &node); err != nil || node.Annotations[karpv1.DrainBlockedAnnotationKey] == "" {
				t.Errorf("nobody can see that the drain waits: %v, %v", node.Annotations, err)
			}
		})
	}
}

// takeFrom changes disruption budgets as the API server does with each eviction.
func takeFrom(ctx context.Context, c client.Client) error {
	var budgets policyv1.PodDisruptionBudgetList
	if err := c.List(ctx, &budgets); err != nil {
		return err
	}
	for i := range budgets.Items {
		budget := &budgets.Items[i]
		before := budget.DeepCopy()
		budget.Status.DisruptionsAllowed = max(0, budget.Status.DisruptionsAllowed-1)
		if err := c.Status().Patch(ctx, budget, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	return nil
}

func tenPods(pod func(string, func(*corev1.Pod)) *corev1.Pod) []client.Object {
	var pods []client.Object
	for i := range 10 {
		pods = append(pods, pod(fmt.Sprint("web-", i), nil))
	}
	return pods
}

// heldBlockers returns the blockers of the pods among some objects.
func heldBlockers(objects []client.Object) []workflows.Blocker {
	by, blockers := []string{}, []workflows.Blocker{}
	for _, object := range objects {
		if budget, ok := object.(*policyv1.PodDisruptionBudget); ok {
			by = append(by, budget.Name)
		}
	}
	for _, object := range objects {
		pod, ok := object.(*corev1.Pod)
		switch {
		case !ok:
		case len(by) > 0:
			blockers = append(blockers, workflows.Blocker{Pod: pod.Namespace + "/" + pod.Name, Cause: blockedByBudget, By: strings.Join(by, ", ")})
		default:
			blockers = append(blockers, workflows.Blocker{Pod: pod.Namespace + "/" + pod.Name, Cause: "DoNotDisrupt", By: karpv1.DoNotDisruptAnnotationKey})
		}
	}
	return blockers
}

// TestANodeThatDrainsIsBeingDeleted checks that a draining node has a deletionTimestamp for others to see, and that no Node
// is gone before its instance.
func TestANodeThatDrainsIsBeingDeleted(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	for reason, test := range map[string]struct {
		ending      bool
		finalizers  []string
		in          workflows.EvictInput
		interrupted int // how often somebody else changes the Node at the same moment
		want        bool
	}{
		"its claim is being deleted":              {ending: true, finalizers: []string{karpv1.TerminationFinalizer}, in: workflows.EvictInput{Claim: "claim"}, want: true},
		"its kubelet writes at the same moment":   {ending: true, finalizers: []string{karpv1.TerminationFinalizer}, in: workflows.EvictInput{Claim: "claim"}, interrupted: 2, want: true},
		"a drain by hand may be taken back":       {finalizers: []string{karpv1.TerminationFinalizer}, in: workflows.EvictInput{Claim: "claim", Reason: workflows.ReasonManualDrain}},
		"without our finalizer it would go early": {ending: true, finalizers: []string{"example.com/other"}, in: workflows.EvictInput{Claim: "claim"}},
		"it is not Tenon's":                       {ending: true, finalizers: []string{karpv1.TerminationFinalizer}},
	} {
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim", Finalizers: []string{karpv1.TerminationFinalizer}}}
		if test.ending {
			claim.DeletionTimestamp = &now
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid-n", Finalizers: test.finalizers}}
		kube := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(claim, node).WithInterceptorFuncs(interceptor.Funcs{
			Delete: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.DeleteOption) error {
				if test.interrupted > 0 {
					test.interrupted--
					beat := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"annotations": {"beat": "`+strconv.Itoa(test.interrupted)+`"}}}`))
					if err := to.Patch(ctx, node.DeepCopy(), beat); err != nil {
						return err
					}
				}
				return to.Delete(ctx, object, options...)
			}}).Build()
		var seen corev1.Node
		if err := kube.Get(t.Context(), client.ObjectKey{Name: "n"}, &seen); err != nil {
			t.Fatal(err)
		}
		p := newPass(&Drains{Log: zap.NewNop(), Client: kube}, test.in, &seen, time.Now(), time.Now(), evictProgress{})
		if err := p.heedClaim(t.Context()); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
		if err := kube.Get(t.Context(), client.ObjectKey{Name: "n"}, &seen); err != nil || (seen.DeletionTimestamp != nil) != test.want {
			t.Errorf("%s: being deleted %t, want %t, %v", reason, seen.DeletionTimestamp != nil, test.want, err)
		}
	}
}

// TestADrainingNodeIsClosedAgain has a person remove the taint from a node whose last pod blocks the drain: new pods must
// not come to an instance that will be terminated.
func TestADrainingNodeIsClosedAgain(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]struct {
		claim string
		want  bool
	}{
		"its machine goes with it":                          {claim: "claim", want: true},
		"a node that is not Tenon's is its owner's to open": {},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid"}}
			pod := protectedPod()
			// The drain lists the node's pods and opens its watches; then the node is opened.
			watching := make(chan struct{}, 10)
			kube := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(node, pod).
				WithIndex(&corev1.Pod{}, podNode, func(object client.Object) []string { return []string{object.(*corev1.Pod).Spec.NodeName} }).
				WithIndex(&corev1.Node{}, "metadata.name", func(object client.Object) []string { return []string{object.GetName()} }).
				WithInterceptorFuncs(interceptor.Funcs{Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
					events, err := c.Watch(ctx, list, options...)
					if _, nodes := list.(*corev1.NodeList); nodes {
						watching <- struct{}{}
					}
					return events, err
				}}).Build()
			d := &Drains{Log: zap.NewNop(), Client: kube}
			closed := func() bool {
				now, err := d.objects().node(t.Context(), "n", "uid")
				if err != nil {
					t.Error(err)
				}
				return disrupted(now) || now.Spec.Unschedulable
			}
			opened := make(chan struct{})
			go func() {
				defer close(opened)
				<-watching
				if !closed() {
					t.Error("the drain did not close its node")
				}
				now, err := d.objects().node(t.Context(), "n", "uid")
				if err == nil {
					_, err = d.objects().change(t.Context(), now, "open", func(node *corev1.Node) { node.Spec = corev1.NodeSpec{} })
				}
				if err != nil || closed() && test.claim == "" {
					t.Errorf("the node could not be opened: %v", err)
				}
			}()
			var suite testsuite.WorkflowTestSuite
			environment := suite.NewTestActivityEnvironment()
			environment.RegisterActivityWithOptions(d.Evict, activity.RegisterOptions{Name: workflows.EvictActivity.Name})
			in := evictInput()
			in.Claim = test.claim
			if _, err := environment.ExecuteActivity(workflows.EvictActivity.Name, in); err != nil {
				t.Fatal(err)
			}
			<-opened
			if got := closed(); got != test.want {
				t.Errorf("closed %t, want %t", got, test.want)
			}
		})
	}
}

// TestNoNodeIsDrainedThatIsOpen has the taint removed just before the last check, while nothing watches the node.
func TestNoNodeIsDrainedThatIsOpen(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid"}}
	kube := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(node).
		WithIndex(&corev1.Pod{}, podNode, func(object client.Object) []string { return []string{object.(*corev1.Pod).Spec.NodeName} }).Build()
	p := newPass(&Drains{Log: zap.NewNop(), Client: kube}, evictInput(), node, time.Now(), time.Now(), evictProgress{})
	if done, err := p.confirm(t.Context()); done || err != nil {
		t.Errorf("drained %t, %v, though pods could still come", done, err)
	}
	var now corev1.Node
	if err := kube.Get(t.Context(), client.ObjectKey{Name: "n"}, &now); err != nil || !disrupted(&now) {
		t.Errorf("taints %v, want it closed again; %v", now.Spec.Taints, err)
	}
	if done, err := p.confirm(t.Context()); !done || err != nil {
		t.Errorf("closed and empty: drained %t, %v", done, err)
	}
}

// TestAGoneNodeIsNotClosedForEver has the node removed while nothing watches it, after it was seen open: nothing is closed,
// and the drain does not begin to settle anew.
func TestAGoneNodeIsNotClosedForEver(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid"}}
	p := newPass(&Drains{Log: zap.NewNop(), Client: fake.NewClientBuilder().WithScheme(testScheme(t)).Build()}, evictInput(), node, time.Now(), time.Now(), evictProgress{})
	p.pods.latest = node
	settling := p.cordoned
	if opened, err := p.keepClosed(t.Context(), node); opened || err != nil || p.pods.latest != nil || p.cordoned != settling {
		t.Errorf("closed %t, %v; seen last %v, settling anew %t", opened, err, p.pods.latest, p.cordoned != settling)
	}
}

// TestLargePodsGoFirst checks that small pods wait only if places were planned for the pods of the removed nodes.
func TestLargePodsGoFirst(t *testing.T) {
	t.Parallel()
	ended := time.Now().Truncate(time.Second)
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim", Finalizers: []string{karpv1.TerminationFinalizer}, DeletionTimestamp: &metav1.Time{Time: ended}}}
	ahead := claim.DeepCopy()
	ahead.Name, ahead.DeletionTimestamp = "ahead", &metav1.Time{Time: ended.Add(time.Hour)}
	started := ended.Add(2 * time.Second)
	for _, test := range []struct {
		reason string
		in     workflows.EvictInput
		want   time.Time
	}{
		{reason: "consolidation has found places",
			in: workflows.EvictInput{Claim: "claim", Reason: string(karpv1.DisruptionReasonUnderutilized)}, want: ended.Add(largeFirst)},
		{reason: "the API server's clock is an hour ahead",
			in: workflows.EvictInput{Claim: "ahead", Reason: string(karpv1.DisruptionReasonUnderutilized)}, want: started.Add(largeFirst)},
		{reason: "an interrupted node is in a hurry", in: workflows.EvictInput{Claim: "claim", Reason: workflows.ReasonSpotInterrupted}, want: time.Time{}},
		{reason: "a person drains what is not Tenon's", in: workflows.EvictInput{Reason: workflows.ReasonManualDrain}, want: time.Time{}},
		{reason: "the claim is gone", in: workflows.EvictInput{Claim: "another", Reason: string(karpv1.DisruptionReasonDrifted)}, want: time.Time{}},
	} {
		d := &Drains{Log: zap.NewNop(), Client: fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(claim, ahead).Build()}
		p := newPass(d, test.in, &corev1.Node{}, time.Now(), time.Now(), evictProgress{Started: started})
		if err := p.heedClaim(t.Context()); err != nil || !p.smallFrom.Equal(test.want) {
			t.Errorf("%s: small pods go from %v on, want %v; %v", test.reason, p.smallFrom, test.want, err)
		}
	}
}
