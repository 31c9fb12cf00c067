package activities

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/workflows"
)

// answer is the result of asking the API server to remove a pod.
type answer struct {
	// accepted says that the pod is being deleted because of this request.
	accepted bool
	// blocker says why it is not; nil if the pod or its namespace is already gone.
	blocker *workflows.Blocker
}

// evict requests the eviction of exactly this pod. After every answer but success, what the watch shows of the pod decides
// what happens next; this is the only place that tells the API server's refusals apart. With again, it asks the API server
// only if the pod's budgets may allow the eviction now.
func (d *Drains) evict(ctx context.Context, pod *corev1.Pod, budgets *budgetLists, again bool) answer {
	if again {
		if blocker := budgets.refusal(ctx, pod); blocker != nil {
			return answer{blocker: blocker}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
	}
	target := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	err := d.Client.SubResource("eviction").Create(ctx, target, eviction)
	if code := statusCode(err); code != 0 || err == nil {
		d.counts.evictionAsked(cmp.Or(code, http.StatusOK))
	}
	switch {
	case err == nil:
		return answer{accepted: true}
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return answer{}
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// The deletion of the namespace removes the pod.
		return answer{}
	case apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause):
		return answer{blocker: budgets.blocker(ctx, pod, err, true)}
	case statusCode(err) == http.StatusInternalServerError, errors.Is(err, context.DeadlineExceeded):
		// If several budgets select the pod, the answer is a plain 500. If a budget was just changed, it is a 429 with a
		// delay. The client itself waits for that delay, which is longer than this request may take.
		return answer{blocker: budgets.blocker(ctx, pod, err, false)}
	}
	return answer{blocker: errorBlocker(pod, err)}
}

// remove deletes exactly this pod with the given grace period, without asking its budgets.
func (d *Drains) remove(ctx context.Context, pod *corev1.Pod, grace time.Duration) answer {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	target := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	err := d.Client.Delete(ctx, target, client.Preconditions{UID: &pod.UID}, client.GracePeriodSeconds(int64(grace/time.Second)))
	switch {
	case err == nil:
		return answer{accepted: true}
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return answer{}
	}
	return answer{blocker: errorBlocker(pod, err)}
}

func statusCode(err error) int32 {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code
	}
	return 0
}
