package activities

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// inhabited is a mirror with one node and its pods.
type inhabited struct {
	Mirror
	node       *corev1.Node
	providerID string
	pods       []*cluster.Pod
}

func (i *inhabited) NodeByProviderID(id string) *corev1.Node {
	if id != i.providerID {
		return nil
	}
	return i.node
}

func (i *inhabited) PodsOnNode(name string) []*cluster.Pod {
	if name != i.node.Name {
		return nil
	}
	return i.pods
}

func TestPodsOfAnInstanceThatIsGoneAreDeleted(t *testing.T) {
	t.Parallel()
	mirror := &inhabited{node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid-n"}}, providerID: "aws:///z/i-1"}
	for name, change := range map[string]func(*plan.Pod){
		"web": func(*plan.Pod) {}, "protected": func(p *plan.Pod) { p.DoNotDisrupt = true }, "agent": func(p *plan.Pod) { p.Daemon = true },
		"kubelets": func(p *plan.Pod) { p.Static = true }, "done": func(p *plan.Pod) { p.Terminal = true }, "refused": func(*plan.Pod) {},
	} {
		pod := &plan.Pod{Namespace: "team", Name: name, UID: types.UID("uid-" + name)}
		change(pod)
		mirror.pods = append(mirror.pods, &cluster.Pod{Pod: pod})
	}
	var deleted []string
	kube := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
			if object.GetName() == "refused" {
				return errors.New("no")
			}
			var asked client.DeleteOptions
			asked.ApplyOptions(opts)
			if *asked.Preconditions.UID != types.UID("uid-"+object.GetName()) || *asked.GracePeriodSeconds != 0 {
				t.Errorf("%s is deleted with %+v", object.GetName(), asked)
			}
			deleted = append(deleted, object.GetName())
			return nil
		}}).Build()
	a := New(Config{Kube: kube, Mirror: mirror, Log: zap.NewNop()})
	a.deleteStranded(t.Context(), "", workflows.TerminateInput{Node: "n"})
	a.deleteStranded(t.Context(), "aws:///z/i-2", workflows.TerminateInput{Node: "n"})
	a.deleteStranded(t.Context(), "aws:///z/i-1", workflows.TerminateInput{Node: "n", NodeUID: "uid-before"})
	if len(deleted) > 0 {
		t.Errorf("%v run on another instance", deleted)
	}
	a.deleteStranded(t.Context(), "aws:///z/i-1", workflows.TerminateInput{Node: "n", NodeUID: "uid-n"})
	slices.Sort(deleted)
	if diff := cmp.Diff([]string{"protected", "web"}, deleted); diff != "" {
		t.Errorf("whoever owns them is to make others (-want +got):\n%s", diff)
	}
}

// TestTheNodeOfAnEndingInstanceIsClosed checks that an ending instance gets no pods, whoever opens its node.
func TestTheNodeOfAnEndingInstanceIsClosed(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid-n"}}
	for reason, test := range map[string]struct {
		providerID, uid string
		want            bool
	}{
		"its own node":                             {providerID: "aws:///z/i-1", uid: "uid-n", want: true},
		"the name is another instance's":           {providerID: "aws:///z/i-2", uid: "uid-n"},
		"the node was made anew":                   {providerID: "aws:///z/i-1", uid: "uid-before"},
		"whose Node the claim never learned of":    {providerID: "aws:///z/i-1", want: true},
		"EC2 has not yet said which instance ends": {uid: "uid-n"},
	} {
		kube := fake.NewClientBuilder().WithObjects(node).Build()
		a := New(Config{Kube: kube, Mirror: &inhabited{node: node, providerID: "aws:///z/i-1"}, Log: zap.NewNop()})
		a.keepClosed(t.Context(), test.providerID, workflows.TerminateInput{Node: "n", NodeUID: test.uid})
		var now corev1.Node
		if err := kube.Get(t.Context(), client.ObjectKey{Name: "n"}, &now); err != nil || disrupted(&now) != test.want {
			t.Errorf("%s: taints %v, want closed %t; %v", reason, now.Spec.Taints, test.want, err)
		}
	}
}

// A claim that is deleted during its launch never learns its instance. The Node that the instance registered before it was
// terminated has to be deleted all the same: nothing else would do so.
func TestTerminateDeletesTheNodeOfAClaimThatNeverKnewIt(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid-n"}, Spec: corev1.NodeSpec{ProviderID: "aws:///z/i-1"}}
	for _, test := range []struct {
		reason, now string // the instance that the Node belongs to by now
		left        int
	}{{reason: "it is that instance's", now: "aws:///z/i-1", left: 0}, {reason: "the mirror is old, and the name another instance's", now: "aws:///z/i-2", left: 1}} {
		there := node.DeepCopy()
		there.Spec.ProviderID = test.now
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "uid-a", Finalizers: []string{karpv1.TerminationFinalizer}}}
		kube := fake.NewClientBuilder().WithScheme(testScheme(t)).WithStatusSubresource(claim).WithObjects(there, claim).Build()
		mirror := &inhabited{node: node, providerID: "aws:///z/i-1"}
		machines := &sweptCloud{instances: []cloud.Instance{{ID: "i-1", ProviderID: "aws:///z/i-1", State: stateTerminated}}}
		a := New(Config{Kube: kube, Mirror: mirror, Cloud: machines, Log: zap.NewNop()})
		if _, err := run(t, a.Terminate, workflows.TerminateInput{Claim: workflows.ClaimRef{Name: "a", UID: "uid-a"}, Instance: "i-1", Reason: "ClaimDeleted"}); err != nil {
			t.Fatal(err)
		}
		var nodes corev1.NodeList
		if err := kube.List(t.Context(), &nodes); err != nil || len(nodes.Items) != test.left {
			t.Errorf("%s: %d Nodes are left, want %d, %v", test.reason, len(nodes.Items), test.left, err)
		}
	}
}

// TestWhatRunsIsNotTerminatedUndrained has somebody signal that an instance is gone.
func TestWhatRunsIsNotTerminatedUndrained(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid-n"}, Spec: corev1.NodeSpec{ProviderID: "aws:///z/i-1"}}
	told := workflows.TerminateInput{Claim: workflows.ClaimRef{Name: "a", UID: "uid-a"}, Instance: "i-1", Node: "n", NodeUID: "uid-n", Reason: workflows.ReasonInstanceGone, Lost: true}
	untold := told
	untold.Node, untold.NodeUID = "", ""
	runs := []cloud.Instance{{ID: "i-1", ProviderID: "aws:///z/i-1", State: "running"}}
	for reason, test := range map[string]struct {
		in        workflows.TerminateInput
		registers string // the Node that the claim names
		instances []cloud.Instance
		nodes     []client.Object
		want      string
	}{
		"it has never registered":             {in: untold, instances: runs},
		"the life was not told of its Node":   {in: untold, registers: "n", instances: runs, nodes: []client.Object{node}, want: workflows.FailureNotLost},
		"EC2 does not know it":                {in: told, nodes: []client.Object{node}},
		"its Node is gone":                    {in: told, instances: runs},
		"EC2 says that it runs, all the time": {in: told, instances: runs, nodes: []client.Object{node}, want: workflows.FailureNotLost},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			kube := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(test.nodes...).Build()
			a := New(Config{Kube: kube, Mirror: &inhabited{}, Cloud: &sweptCloud{instances: test.instances}, Log: zap.NewNop()})
			claim := &karpv1.NodeClaim{Status: karpv1.NodeClaimStatus{NodeName: test.registers}}
			if err := a.checkLost(t.Context(), claim, test.in); workflows.FailureType(err) != test.want {
				t.Errorf("got %v, want the failure %q", err, test.want)
			}
		})
	}
}

// TestAClaimOutlivesItsNode has somebody else's finalizer hold the Node: if the claim is gone, others may rely on the Node
// being gone too.
func TestAClaimOutlivesItsNode(t *testing.T) {
	t.Parallel()
	const other = "example.com/detach"
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "uid-a", Finalizers: []string{karpv1.TerminationFinalizer}}}
	claim.Status.NodeName = "n"
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid-n", Finalizers: []string{karpv1.TerminationFinalizer, other},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: karpv1.SchemeGroupVersion.String(), Kind: "NodeClaim", Name: "a", UID: "uid-a"}}}}
	kube := fake.NewClientBuilder().WithScheme(testScheme(t)).WithStatusSubresource(claim).WithObjects(node, claim).Build()
	if err := kube.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	a := New(Config{Kube: kube, Mirror: &inhabited{}, Log: zap.NewNop()})
	ended := make(chan error, 1)
	go func() {
		_, err := run(t, a.Terminate, workflows.TerminateInput{Claim: workflows.ClaimRef{Name: "a", UID: "uid-a"}, Reason: "ClaimDeleted"})
		ended <- err
	}()
	for held := node.DeepCopy(); !slices.Equal(held.Finalizers, []string{other}) || held.DeletionTimestamp == nil; time.Sleep(10 * time.Millisecond) {
		if err := kube.Get(t.Context(), client.ObjectKeyFromObject(node), held); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-ended:
		t.Fatalf("the life ended before its Node was gone: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
		t.Errorf("the claim is gone before its Node: %v", err)
	}
	if err := kube.Patch(t.Context(), node, client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`))); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); !apierrors.IsNotFound(err) {
		t.Errorf("the claim stays after its Node is gone: %v", err)
	}
}

// TestReleasingAClaimLeavesOtherFinalizersAlone has others remove a finalizer of theirs after the claim was read: the API
// server refuses to have one added again.
func TestReleasingAClaimLeavesOtherFinalizersAlone(t *testing.T) {
	t.Parallel()
	const other = "example.com/backup"
	for reason, test := range map[string]struct{ read, now, want []string }{
		"nobody else has one":        {read: []string{karpv1.TerminationFinalizer}, now: []string{karpv1.TerminationFinalizer}},
		"theirs was taken off":       {read: []string{other, karpv1.TerminationFinalizer}, now: []string{karpv1.TerminationFinalizer}},
		"theirs stays":               {read: []string{karpv1.TerminationFinalizer, other}, now: []string{other, karpv1.TerminationFinalizer}, want: []string{other}},
		"ours was taken off already": {read: []string{other, karpv1.TerminationFinalizer}, now: []string{other}, want: []string{other}},
	} {
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "uid-a", Finalizers: test.now}}
		kube := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(claim).WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, to client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
				if patch.Type() != types.JSONPatchType {
					t.Errorf("%s: the list of finalizers is written as a whole", reason)
				}
				err := to.Patch(ctx, object, patch, options...)
				if err != nil && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
					// The API server answers a failed test of a JSON patch like this; the fake one passes the bare error
					// on.
					return apierrors.NewInvalid(karpv1.SchemeGroupVersion.WithKind("NodeClaim").GroupKind(), "a", nil)
				}
				return err
			}}).Build()
		read := claim.DeepCopy()
		read.Finalizers = test.read
		if err := New(Config{Kube: kube, Log: zap.NewNop()}).terminator.objects.releaseClaim(t.Context(), read); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
		var left karpv1.NodeClaim
		if err := kube.Get(t.Context(), client.ObjectKeyFromObject(claim), &left); err != nil || !slices.Equal(left.Finalizers, test.want) {
			t.Errorf("%s: %v are left, want %v; %v", reason, left.Finalizers, test.want, err)
		}
	}
}
