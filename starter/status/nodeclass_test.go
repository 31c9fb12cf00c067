package status

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/cluster"
)

func TestNodeClassIsLookedUpAsOftenAsNeeded(t *testing.T) {
	t.Parallel()
	world := newClassWorld(t)
	world.step("a new class gets finalizer and hash, then its status", taken{writes: 2, lookups: 1})
	class := world.class()
	hash, err := class.Hash("Y2E=")
	if err != nil {
		t.Fatal(err)
	}
	if !class.IsTrue("Ready") || !slices.Contains(class.Finalizers, awsv1.TerminationFinalizer) || class.Annotations[awsv1.AnnotationEC2NodeClassHash] != hash {
		t.Errorf("class %+v, want it ready, with finalizer and hash %s", class, hash)
	}
	world.step("the echo of these writes", taken{})
	world.passes(resolveEvery - time.Second)
	world.step("somebody labelled it", taken{})
	world.passes(2 * time.Second)
	world.step("a minute is over", taken{lookups: 1})

	world.status.Subnets = append(world.status.Subnets, awsv1.Subnet{ID: "subnet-3", Zone: "c"})
	world.passes(resolveEvery)
	world.step("a subnet came", taken{writes: 1, lookups: 1})
	if got := len(world.class().Status.Subnets); got != 3 {
		t.Errorf("%d subnets, want 3", got)
	}

	class = world.class()
	class.Generation++
	class.Spec.Role = "other"
	if err := world.client.Update(context.Background(), class); err != nil {
		t.Fatal(err)
	}
	world.step("its author changed it", taken{writes: 2, lookups: 1})
	if ready := world.class().Condition("Ready"); ready.ObservedGeneration != class.Generation {
		t.Errorf("Ready was observed at %d, want %d", ready.ObservedGeneration, class.Generation)
	}
}

func TestNodeClassKeepsTransitionTimes(t *testing.T) {
	t.Parallel()
	first, later := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(2000, 0))
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Generation: 4}}
	resolve := func(status awsv1.EC2NodeClassStatus) {
		resolved := class.DeepCopy()
		resolved.Status = status
		adopt(resolved, class)
		class = resolved
	}
	resolve(resolvedStatus(first, metav1.ConditionTrue))
	resolve(resolvedStatus(later, metav1.ConditionTrue))
	if got := class.Condition("Ready").LastTransitionTime; !got.Equal(&first) {
		t.Errorf("transition at %v though nothing changed, want %v", got, first)
	}
	resolve(resolvedStatus(later, metav1.ConditionFalse))
	if got := class.Condition("Ready"); !got.LastTransitionTime.Equal(&later) || got.ObservedGeneration != 4 {
		t.Errorf("Ready %+v, want a transition at %v and generation 4", got, later)
	}
	resolve(awsv1.EC2NodeClassStatus{})
	if len(class.Status.Conditions) != 0 {
		t.Errorf("conditions %v that nobody reports any more", class.Status.Conditions)
	}
}

func TestAnOutageOfTheCloudShowsOnlyWhereNothingIsKnown(t *testing.T) {
	t.Parallel()
	world := newClassWorld(t)
	world.failure = &cloud.Error{Kind: cloud.Forbidden, Reason: "Unauthorized", Operation: "DescribeSubnets", Err: errors.New("request 1")}
	world.step("nothing is known", taken{writes: 2, lookups: 1})
	ready := world.class().Condition("Ready")
	if ready == nil || ready.Status != metav1.ConditionUnknown || ready.Reason != "Unauthorized" || ready.Message == "" {
		t.Errorf("Ready is %+v, want Unknown with the error", ready)
	}
	world.failure = errors.New("request 2")
	world.step("the same again, in other words", taken{lookups: 1})
	world.failure = nil
	world.step("the cloud is back", taken{writes: 1, lookups: 1})
	world.failure = errors.New("request 3")
	world.passes(resolveEvery)
	world.step("the cloud is away again", taken{lookups: 1})
	if !world.class().IsTrue("Ready") {
		t.Error("an outage took a class away that worked")
	}
}

func TestNodeClassStaysWhileItIsUsed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	world := newClassWorld(t)
	world.step("a new class", taken{writes: 2, lookups: 1})
	seen := testClaim("seen", "default", "aws:///a", nil)
	unseen := testClaim("unseen", "default", "", nil)
	other := testClaim("other", "default", "aws:///b", nil)
	for _, claim := range []*karpv1.NodeClaim{seen, unseen, other} {
		claim.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"}
	}
	other.Spec.NodeClassRef.Name = "other"
	for _, claim := range []*karpv1.NodeClaim{unseen, other} {
		if err := world.client.Create(ctx, claim); err != nil {
			t.Fatal(err)
		}
	}
	world.claims = []*karpv1.NodeClaim{seen, other}
	if err := world.client.Delete(ctx, world.class()); err != nil {
		t.Fatal(err)
	}
	world.step("the mirror shows a claim of it", taken{})
	world.claims = []*karpv1.NodeClaim{other}
	world.step("the API server has a claim of it the mirror does not show", taken{})
	if world.released != 0 || world.class() == nil {
		t.Errorf("released %d times while it was used", world.released)
	}
	if err := world.client.Delete(ctx, unseen); err != nil {
		t.Fatal(err)
	}
	world.failure = errors.New("a launch template is in use")
	world.step("what was made for it cannot be removed yet", taken{})
	if world.class() == nil {
		t.Error("the class is gone though what was made for it is not")
	}
	world.failure = nil
	world.step("nothing uses it", taken{writes: 1})
	if world.released != 1 || world.class() != nil {
		t.Errorf("released %d times, class %v; want it gone", world.released, world.class())
	}
	world.step("there is no class", taken{})
}

// classWorld is an in-memory cluster with one EC2NodeClass, and its cloud: the mirror shows what the API server has,
// and writes are counted.
type classWorld struct {
	t        *testing.T
	client   kube.Client
	keeper   *NodeClasses
	writes   int
	lookups  int
	released int
	clock    time.Time
	status   awsv1.EC2NodeClassStatus
	claims   []*karpv1.NodeClaim
	failure  error
}

func newClassWorld(t *testing.T) *classWorld {
	w := &classWorld{t: t, clock: time.Unix(1_000_000, 0), status: resolvedStatus(metav1.NewTime(time.Unix(1000, 0)), metav1.ConditionTrue)}
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "u", Generation: 1}}
	w.client = countingClient(t, class, &w.writes)
	w.keeper = NewNodeClasses(nodeclass.Kind(), w, w.client, w, "Y2E=", nil, zaptest.NewLogger(t))
	w.keeper.now = func() time.Time { return w.clock }
	return w
}

// taken is the number of writes and of calls to the cloud in a pass.
type taken struct{ writes, lookups int }

// step reconciles the class and checks what that takes. Errors come from the cloud.
func (w *classWorld) step(reason string, want taken) {
	w.t.Helper()
	w.writes, w.lookups = 0, 0
	if _, err := w.keeper.reconcile(context.Background(), "default"); !errors.Is(err, w.failure) {
		w.t.Errorf("%s: error %v, want %v", reason, err, w.failure)
	}
	if got := (taken{w.writes, w.lookups}); got != want {
		w.t.Errorf("%s: %+v, want %+v", reason, got, want)
	}
}

func (w *classWorld) passes(d time.Duration) { w.clock = w.clock.Add(d) }

// class returns the class as the API server has it, or nil.
func (w *classWorld) class() *awsv1.EC2NodeClass {
	w.t.Helper()
	var class awsv1.EC2NodeClass
	if err := w.client.Get(context.Background(), kube.ObjectKey{Name: "default"}, &class); err != nil {
		if kube.IgnoreNotFound(err) != nil {
			w.t.Fatal(err)
		}
		return nil
	}
	return &class
}

func (w *classWorld) WaitSynced(context.Context) error                     { return nil }
func (w *classWorld) Subscribe(...cluster.EventKind) *cluster.Subscription { return nil }
func (w *classWorld) NodeClasses() []cloud.NodeClass                       { return []cloud.NodeClass{w.class()} }
func (w *classWorld) Claims() []*karpv1.NodeClaim                          { return w.claims }

func (w *classWorld) NodeClass(string) cloud.NodeClass {
	if class := w.class(); class != nil {
		return class
	}
	return nil
}

func (w *classWorld) ResolveNodeClass(_ context.Context, class cloud.NodeClass) (cloud.NodeClass, error) {
	w.lookups++
	resolved := class.DeepCopyObject().(*awsv1.EC2NodeClass)
	resolved.Status = *w.status.DeepCopy()
	return resolved, w.failure
}

func (w *classWorld) ReleaseNodeClass(context.Context, cloud.NodeClass) error {
	if w.failure == nil {
		w.released++
	}
	return w.failure
}

// resolvedStatus returns the status that the cloud resolves, with transitions at a time.
func resolvedStatus(at metav1.Time, ready metav1.ConditionStatus) awsv1.EC2NodeClassStatus {
	return awsv1.EC2NodeClassStatus{
		Subnets:    []awsv1.Subnet{{ID: "subnet-1", Zone: "a"}, {ID: "subnet-2", Zone: "b"}},
		Conditions: []metav1.Condition{{Type: "Ready", Status: ready, Reason: "Ready", LastTransitionTime: at}},
	}
}
