package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/workflows"
)

// askTimeout limits one eviction or deletion. The client itself waits when the server asks it to, which must not delay the
// other requests.
const askTimeout = 5 * time.Second

// budgetLists reads the disruption budgets of each namespace once per round of requests.
type budgetLists struct {
	client client.Client
	mu     sync.Mutex
	byName map[string]*budgetList
}

// budgetList holds the budgets of one namespace.
type budgetList struct {
	read    sync.Once
	budgets []policyv1.PodDisruptionBudget
	err     error
	// taken counts, by budget, the pods that were let through to the API server since the budgets were read.
	taken map[string]int32
}

// renew forgets what was read.
func (l *budgetLists) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byName = map[string]*budgetList{}
}

// of returns the budgets that cover a pod, selected as the API server selects them, ordered by name.
func (l *budgetLists) of(ctx context.Context, pod *corev1.Pod) ([]policyv1.PodDisruptionBudget, error) {
	l.mu.Lock()
	list := l.byName[pod.Namespace]
	if list == nil {
		list = &budgetList{}
		if l.byName == nil {
			l.byName = map[string]*budgetList{}
		}
		l.byName[pod.Namespace] = list
	}
	l.mu.Unlock()
	list.read.Do(func() {
		// The refused request may have used up its time.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
		defer cancel()
		var all policyv1.PodDisruptionBudgetList
		if err := l.client.List(ctx, &all, client.InNamespace(pod.Namespace)); err != nil {
			list.err = fmt.Errorf("list disruption budgets: %w", err)
		}
		slices.SortFunc(all.Items, func(a, b policyv1.PodDisruptionBudget) int { return strings.Compare(a.Name, b.Name) })
		list.budgets = all.Items
	})
	var covering []policyv1.PodDisruptionBudget
	for i := range list.budgets {
		if covers(&list.budgets[i], pod) {
			covering = append(covering, list.budgets[i])
		}
	}
	return covering, list.err
}

// refusal names the budgets that are certain to refuse a pod; nil where the API server has to be asked, which is so for as
// many pods as a budget allows.
func (l *budgetLists) refusal(ctx context.Context, pod *corev1.Pod) *workflows.Blocker {
	budgets, err := l.of(ctx, pod)
	healthy := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	switch {
	case err != nil || len(budgets) == 0 || pod.Status.Phase != corev1.PodRunning:
		return nil
	case len(budgets) == 1 && (!healthy || behind(&budgets[0]) || l.allows(pod.Namespace, &budgets[0])):
		return nil
	}
	return blocked(pod, budgets)
}

// allows reports whether a budget may allow one more pod than were let through already, and counts that pod.
func (l *budgetLists) allows(namespace string, budget *policyv1.PodDisruptionBudget) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.byName[namespace]
	if list.taken[budget.Name] >= budget.Status.DisruptionsAllowed {
		return false
	}
	if list.taken == nil {
		list.taken = map[string]int32{}
	}
	list.taken[budget.Name]++
	return true
}

// blocker names the disruption budgets that have refused a pod; the refusal itself names them only in its message. Unless
// it is certain that a budget was the reason, a budget that would allow the eviction is not named.
func (l *budgetLists) blocker(ctx context.Context, pod *corev1.Pod, refusal error, certain bool) *workflows.Blocker {
	budgets, err := l.of(ctx, pod)
	switch {
	case err != nil:
		return errorBlocker(pod, errors.Join(refusal, err))
	case len(budgets) == 0, len(budgets) == 1 && !certain && !behind(&budgets[0]) && budgets[0].Status.DisruptionsAllowed > 0:
		return errorBlocker(pod, refusal)
	}
	return blocked(pod, budgets)
}

// blocked describes the budgets, at least one, that block a pod.
func blocked(pod *corev1.Pod, budgets []policyv1.PodDisruptionBudget) *workflows.Blocker {
	blocker := &workflows.Blocker{Pod: pod.Namespace + "/" + pod.Name, Cause: blockedByBudget, By: budgets[0].Name}
	status := &budgets[0].Status
	switch {
	case len(budgets) > 1:
		names := make([]string, len(budgets))
		for i := range budgets {
			names[i] = budgets[i].Name
		}
		blocker.By = strings.Join(names, ", ")
		blocker.Message = fmt.Sprintf("more than one PodDisruptionBudget selects the pod (%s), which the Eviction API refuses", blocker.By)
	case behind(&budgets[0]):
		blocker.Message = fmt.Sprintf("PodDisruptionBudget %s was just changed and is still being evaluated", blocker.By)
	default:
		blocker.Message = fmt.Sprintf("PodDisruptionBudget %s needs %d healthy pods and has %d", blocker.By, status.DesiredHealthy, status.CurrentHealthy)
	}
	return blocker
}

// behind reports whether a budget was changed and its status has not been recalculated yet.
func behind(budget *policyv1.PodDisruptionBudget) bool {
	return budget.Status.ObservedGeneration < budget.Generation
}

// covers reports whether a budget covers the pod, as in policy/v1: a missing selector selects nothing, an empty one
// everything.
func covers(budget *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(pod.Labels))
}
