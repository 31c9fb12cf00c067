package activities

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

var podsResource = schema.GroupResource{Resource: "pods"}

// budgetOf returns a budget of a namespace's pods with the label app=web.
func budgetOf(namespace, name string, allowed int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed, DesiredHealthy: 2, CurrentHealthy: 2 + allowed}}
}

func TestEvictAnswers(t *testing.T) {
	t.Parallel()
	budgetRefusal := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	budgetRefusal.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "whatever"}}
	terminating := apierrors.NewForbidden(podsResource, "web-0", errors.New("namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	plain500 := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "more than one budget"}}
	changed := budgetOf("team", "web", 1)
	changed.Generation = 2
	changed.Status.ObservedGeneration = 1

	for name, test := range map[string]struct {
		reason  string
		err     error
		budgets []client.Object
		want    answer
	}{
		"Accepted":        {reason: "the pod is going", want: answer{accepted: true}},
		"Gone":            {reason: "a pod that is gone needs nothing", err: apierrors.NewNotFound(podsResource, "web-0"), want: answer{}},
		"Namesake":        {reason: "another pod of that name is not ours", err: apierrors.NewConflict(podsResource, "web-0", errors.New("uid")), want: answer{}},
		"NamespaceEnding": {reason: "the namespace takes its pods along", err: terminating, want: answer{}},
		"Budget": {reason: "the budget is named with its numbers", err: budgetRefusal, budgets: []client.Object{budgetOf("team", "web", 0), budgetOf("other", "web", 0)},
			want: answer{blocker: &workflows.Blocker{Pod: "team/web-0", Cause: "PodDisruptionBudget", By: "web", Message: "PodDisruptionBudget web needs 2 healthy pods and has 2"}}},
		"BudgetChanged": {reason: "a budget that is being evaluated is named as such", err: context.DeadlineExceeded, budgets: []client.Object{changed},
			want: answer{blocker: &workflows.Blocker{Pod: "team/web-0", Cause: "PodDisruptionBudget", By: "web", Message: "PodDisruptionBudget web was just changed and is still being evaluated"}}},
		"BudgetUnknown": {reason: "a refusal no budget explains is shown as it is", err: budgetRefusal,
			want: answer{blocker: &workflows.Blocker{Pod: "team/web-0", Cause: "Error", Message: budgetRefusal.Error()}}},
		"TwoBudgets": {reason: "all budgets are named, in order", err: plain500, budgets: []client.Object{budgetOf("team", "b", 1), budgetOf("team", "a", 1)},
			want: answer{blocker: &workflows.Blocker{Pod: "team/web-0", Cause: "PodDisruptionBudget", By: "a, b", Message: "more than one PodDisruptionBudget selects the pod (a, b), which the Eviction API refuses"}}},
		"Broken": {reason: "a budget that would allow it is not blamed for a fault", err: plain500, budgets: []client.Object{budgetOf("team", "web", 1)},
			want: answer{blocker: &workflows.Blocker{Pod: "team/web-0", Cause: "Error", Message: plain500.Error()}}},
		"Overloaded": {reason: "an overloaded server is no budget", err: apierrors.NewTooManyRequests("slow down", 1), budgets: []client.Object{budgetOf("team", "web", 0)},
			want: answer{blocker: &workflows.Blocker{Pod: "team/web-0", Cause: "Error", Message: "slow down"}}},
		"Forbidden": {reason: "missing permissions are shown", err: apierrors.NewForbidden(podsResource, "web-0", errors.New("no")),
			want: answer{blocker: &workflows.Blocker{Pod: "team/web-0", Cause: "Error", Message: apierrors.NewForbidden(podsResource, "web-0", errors.New("no")).Error()}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web-0", UID: "uid-1", Labels: map[string]string{"app": "web"}}}
			var asked *policyv1.Eviction
			d := &Drains{Log: zap.NewNop(), Client: fake.NewClientBuilder().WithObjects(test.budgets...).WithInterceptorFuncs(interceptor.Funcs{
				SubResourceCreate: func(_ context.Context, _ client.Client, _ string, _, body client.Object, _ ...client.SubResourceCreateOption) error {
					asked = body.(*policyv1.Eviction)
					return test.err
				}}).Build()}
			got := d.evict(context.Background(), pod, &budgetLists{client: d.Client}, false)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(answer{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
			if asked.DeleteOptions == nil || asked.DeleteOptions.Preconditions == nil || *asked.DeleteOptions.Preconditions.UID != "uid-1" {
				t.Error("the eviction is not bound to the pod's UID")
			}
		})
	}
}

func TestRemoveIsBoundToTheUID(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web-0", UID: "uid-1"}}
	var asked client.DeleteOptions
	d := &Drains{Client: fake.NewClientBuilder().WithObjects(pod).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.DeleteOption) error {
			asked.ApplyOptions(opts)
			return nil
		}}).Build()}
	if got := d.remove(context.Background(), pod, 20*time.Second); !got.accepted {
		t.Errorf("answer %+v", got)
	}
	if asked.Preconditions == nil || *asked.Preconditions.UID != "uid-1" || *asked.GracePeriodSeconds != 20 {
		t.Errorf("deleted with %+v", asked)
	}
}

func TestCoversIsWhatTheAPIServerThinks(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	for name, test := range map[string]struct {
		reason   string
		selector *metav1.LabelSelector
		want     bool
	}{
		"None":  {reason: "a missing selector selects nothing", want: false},
		"Empty": {reason: "an empty selector selects everything", selector: &metav1.LabelSelector{}, want: true},
		"Match": {reason: "labels match", selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, want: true},
		"Other": {reason: "labels do not match", selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}, want: false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			budget := &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{Selector: test.selector}}
			if got := covers(budget, pod); got != test.want {
				t.Errorf("%s: got %v", test.reason, got)
			}
		})
	}
}

// countingClient counts writes to nodes, and makes the given number of them conflict.
func countingClient(node *corev1.Node, conflicts int) (client.WithWatch, *int) {
	writes := 0
	return fake.NewClientBuilder().WithScheme(kubescheme.Scheme).WithObjects(node).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if conflicts > 0 {
				conflicts--
				other := &corev1.Node{}
				if err := c.Get(ctx, client.ObjectKeyFromObject(object), other); err != nil {
					return err
				}
				other.Spec.Taints = append(other.Spec.Taints, corev1.Taint{Key: "example.com/other", Effect: corev1.TaintEffectNoExecute})
				if err := c.Update(ctx, other); err != nil {
					return err
				}
			}
			writes++
			err := c.Patch(ctx, object, patch, opts...)
			if err != nil && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
				// The API server answers a failed test of a JSON patch like this; the fake one passes the bare error on.
				return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", schema.GroupResource{Resource: "nodes"}, "n", err.Error(), 0, false)
			}
			return err
		}}).Build(), &writes
}

func TestCordon(t *testing.T) {
	t.Parallel()
	disrupted := karpv1.DisruptedNoScheduleTaint()
	for name, test := range map[string]struct {
		reason        string
		claimed       bool
		node          corev1.Node
		conflicts     int
		writes        int
		taints        []corev1.Taint
		unschedulable bool
		label         string
		undone        bool
	}{
		"Claimed":        {reason: "taint and label in one write", claimed: true, writes: 1, taints: []corev1.Taint{disrupted}, label: "karpenter"},
		"Again":          {reason: "nothing is written twice", claimed: true, node: corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{corev1.LabelNodeExcludeBalancers: "karpenter"}}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{disrupted}}}, taints: []corev1.Taint{disrupted}, label: "karpenter"},
		"Conflict":       {reason: "what another writes meanwhile is kept", claimed: true, conflicts: 1, writes: 2, taints: []corev1.Taint{{Key: "example.com/other", Effect: corev1.TaintEffectNoExecute}, disrupted}, label: "karpenter"},
		"Foreign":        {reason: "a node that is not Tenon's gets the ordinary cordon", writes: 1, unschedulable: true, undone: true},
		"ForeignAlready": {reason: "a cordon of somebody else is left as it is", node: corev1.Node{Spec: corev1.NodeSpec{Unschedulable: true}}, unschedulable: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			node := test.node.DeepCopy()
			node.Name, node.UID = "n", "uid"
			c, writes := countingClient(node, test.conflicts)
			d := &Drains{Client: c, Log: zap.NewNop()}
			read, err := d.objects().node(ctx, "n", "uid")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.cordon(ctx, read, test.claimed, false); err != nil {
				t.Fatal(err)
			}
			got, err := d.objects().node(ctx, "n", "uid")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.taints, got.Spec.Taints); diff != "" || got.Spec.Unschedulable != test.unschedulable || got.Labels[corev1.LabelNodeExcludeBalancers] != test.label {
				t.Errorf("%s: unschedulable %v, labels %v, taints (-want +got):\n%s", test.reason, got.Spec.Unschedulable, got.Labels, diff)
			}
			if *writes != test.writes {
				t.Errorf("%s: %d writes, want %d", test.reason, *writes, test.writes)
			}
			if _, err := d.Uncordon(ctx, workflows.UncordonInput{Node: "n", NodeUID: "uid"}); err != nil {
				t.Fatal(err)
			}
			if got, err = d.objects().node(ctx, "n", "uid"); err != nil {
				t.Fatal(err)
			}
			if got.Spec.Unschedulable != (test.unschedulable && !test.undone) || got.Labels[corev1.LabelNodeExcludeBalancers] != "" || len(got.Annotations) != 0 {
				t.Errorf("%s: taken back, it is unschedulable %v, labels %v, annotations %v", test.reason, got.Spec.Unschedulable, got.Labels, got.Annotations)
			}
		})
	}
}

func TestUncordonOfAMissingNode(t *testing.T) {
	t.Parallel()
	d := &Drains{Client: fake.NewClientBuilder().WithObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "new"}}).Build()}
	for _, in := range []workflows.UncordonInput{{Node: "n", NodeUID: "old"}, {Node: "m", NodeUID: "any"}} {
		if _, err := d.Uncordon(context.Background(), in); err != nil {
			t.Errorf("%+v: %v", in, err)
		}
	}
}

func TestDigestIgnoresNumbers(t *testing.T) {
	t.Parallel()
	one := []workflows.Blocker{{Pod: "a/b", Cause: "PodDisruptionBudget", By: "web", Message: "has 2"}}
	same := []workflows.Blocker{{Pod: "a/b", Cause: "PodDisruptionBudget", By: "web", Message: "has 3"}}
	other := []workflows.Blocker{{Pod: "a/b", Cause: "PodDisruptionBudget", By: "api", Message: "has 2"}}
	if digestOf(one) != digestOf(same) {
		t.Error("a number in a message is no news")
	}
	if digestOf(one) == digestOf(other) || digestOf(nil) != "" {
		t.Error("another budget is news, and nothing has no digest")
	}
}
