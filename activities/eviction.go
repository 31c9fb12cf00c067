package activities

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// The causes of workflows.Blocker.
const (
	blockedByBudget   = "PodDisruptionBudget"
	blockedByVolume   = "Volume"
	blockedByError    = "Error"
	blockedByShutdown = string(plan.HoldTerminating)
)

// askTimeout bounds one eviction or deletion. The client waits by itself when the server asks it to, which must not
// keep the others waiting.
const askTimeout = 5 * time.Second

// answer is what became of asking the API server to remove a pod.
type answer struct {
	// accepted says that the pod is being deleted because of this request.
	accepted bool
	// blocker says why not; empty where the pod is gone already or its namespace is.
	blocker *workflows.Blocker
}

// evict asks for the eviction of exactly this pod. Every answer but success leaves the pod to be judged again by what
// the watch says of it; this is the one place where the API server's refusals are told apart.
func (d *Drains) evict(ctx context.Context, pod *corev1.Pod) answer {
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
		return answer{blocker: d.budgetBlocker(ctx, pod, err, true)}
	case statusCode(err) == http.StatusInternalServerError, errors.Is(err, context.DeadlineExceeded):
		// More than one budget is a plain 500. A budget that was just changed is a 429 with a delay that the client
		// waits for by itself, longer than this request may take.
		return answer{blocker: d.budgetBlocker(ctx, pod, err, false)}
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

// budgetBlocker names the disruption budgets that refuse a pod. The refusal itself names them only in its message, so
// they are found the way the API server finds them, by their selectors. Unless it is certain that a budget was the
// reason, budgets that would allow the eviction are not blamed for it.
func (d *Drains) budgetBlocker(ctx context.Context, pod *corev1.Pod, refusal error, certain bool) *workflows.Blocker {
	// The request's own time may be used up.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	var list policyv1.PodDisruptionBudgetList
	if err := d.Client.List(ctx, &list, client.InNamespace(pod.Namespace)); err != nil {
		return errorBlocker(pod, errors.Join(refusal, fmt.Errorf("list disruption budgets: %w", err)))
	}
	budgets := slices.DeleteFunc(list.Items, func(budget policyv1.PodDisruptionBudget) bool { return !covers(&budget, pod) })
	slices.SortFunc(budgets, func(a, b policyv1.PodDisruptionBudget) int { return strings.Compare(a.Name, b.Name) })
	blocker := &workflows.Blocker{Pod: pod.Namespace + "/" + pod.Name, Cause: blockedByBudget}
	switch len(budgets) {
	case 0:
		return errorBlocker(pod, refusal)
	case 1:
		budget := &budgets[0]
		behind := budget.Status.ObservedGeneration < budget.Generation
		if !certain && !behind && budget.Status.DisruptionsAllowed > 0 {
			return errorBlocker(pod, refusal)
		}
		blocker.By = budget.Name
		blocker.Message = fmt.Sprintf("PodDisruptionBudget %s needs %d healthy pods and has %d", budget.Name, budget.Status.DesiredHealthy, budget.Status.CurrentHealthy)
		if behind {
			blocker.Message = fmt.Sprintf("PodDisruptionBudget %s was just changed and is still being evaluated", budget.Name)
		}
	default:
		names := make([]string, len(budgets))
		for i := range budgets {
			names[i] = budgets[i].Name
		}
		blocker.By = strings.Join(names, ", ")
		blocker.Message = fmt.Sprintf("more than one PodDisruptionBudget selects the pod (%s), which the Eviction API refuses", blocker.By)
	}
	return blocker
}

// covers reports whether a budget counts the pod, as policy/v1 has it: a missing selector selects nothing, an empty one
// everything.
func covers(budget *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(pod.Labels))
}

func errorBlocker(pod *corev1.Pod, err error) *workflows.Blocker {
	return &workflows.Blocker{Pod: pod.Namespace + "/" + pod.Name, Cause: blockedByError, Message: err.Error()}
}

func statusCode(err error) int32 {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code
	}
	return 0
}
