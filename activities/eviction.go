package activities

import (
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

// answer is what became of asking the API server to remove a pod.
type answer struct {
	// accepted says that the pod is being deleted because of this request.
	accepted bool
	// blocker says why not; empty where the pod is gone already or its namespace is.
	blocker *workflows.Blocker
}

// evict asks for the eviction of exactly this pod. Every answer but success leaves the pod to be judged again by what
// the watch says of it; this is the one place where the API server's refusals are told apart. A pod that has been refused
// before is asked for only where its budgets may allow it now.
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
	switch {
	case err == nil:
		return answer{accepted: true}
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return answer{}
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// The namespace's own deletion takes the pod.
		return answer{}
	case apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause):
		return answer{blocker: budgets.blocker(ctx, pod, err, true)}
	case statusCode(err) == http.StatusInternalServerError, errors.Is(err, context.DeadlineExceeded):
		// More than one budget is a plain 500. A budget that was just changed is a 429 with a delay that the client
		// waits for by itself, longer than this request may take.
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
