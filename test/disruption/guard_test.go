package disruption_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/test/world"
)

// guard watches over PodDisruptionBudgets. It watches pods, budgets and ReplicaSets itself and never reads a budget's
// status: whether a pod may be removed follows from the readiness of the pods that the budget selects, at the moment at
// which the watch reports that the pod is being deleted.
type guard struct {
	kube client.Client
	mu   sync.Mutex
	pods map[types.NamespacedName]*corev1.Pod
	// budgets are the existing ones; scales are the replicas that ReplicaSets want, by UID.
	budgets map[types.NamespacedName]*policyv1.PodDisruptionBudget
	scales  map[types.UID]int
	// closed are the namespaces of finished scenarios.
	closed map[string]bool
	found  map[string][]string
	// checked is the number of removed pods that a budget selects.
	checked int
	pending sync.WaitGroup
}

func guardBudgets(w *world.World) *guard {
	w.T.Helper()
	g := newGuard()
	g.kube = w.WithWatch
	w.Observe(map[client.Object]func(any, bool){
		&corev1.Pod{}: g.podChanged, &policyv1.PodDisruptionBudget{}: g.budgetChanged, &appsv1.ReplicaSet{}: g.scaleChanged,
	})
	return g
}

func newGuard() *guard {
	return &guard{
		pods: map[types.NamespacedName]*corev1.Pod{}, budgets: map[types.NamespacedName]*policyv1.PodDisruptionBudget{},
		scales: map[types.UID]int{}, closed: map[string]bool{}, found: map[string][]string{},
	}
}

func (g *guard) budgetChanged(object any, deleted bool) {
	budget, ok := object.(*policyv1.PodDisruptionBudget)
	if !ok {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if key := client.ObjectKeyFromObject(budget); deleted {
		delete(g.budgets, key)
	} else {
		g.budgets[key] = budget
	}
}

func (g *guard) scaleChanged(object any, deleted bool) {
	if set, ok := object.(*appsv1.ReplicaSet); ok && !deleted && set.Spec.Replicas != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.scales[set.UID] = int(*set.Spec.Replicas)
	}
}

// podChanged judges a pod when it begins to be deleted. Deletions by a ReplicaSet or by a person do not count.
func (g *guard) podChanged(object any, deleted bool) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	key := client.ObjectKeyFromObject(pod)
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.pods[key]
	g.pods[key] = pod
	if deleted {
		delete(g.pods, key)
	}
	goes := deleted || pod.DeletionTimestamp != nil
	if before == nil || before.UID != pod.UID || before.DeletionTimestamp != nil || !goes || g.closed[pod.Namespace] {
		return
	}
	how := takenBy(pod)
	if how == "" {
		return
	}
	for name, budget := range g.budgets {
		if !protects(budget, before) {
			continue
		}
		g.checked++
		others, expected := g.healthy(before, budget)
		if needed := demanded(budget, expected); others < needed {
			g.confirm(before, budget, others, expected, fmt.Sprintf("%s %s: PodDisruptionBudget %s needs %d healthy pods, and %d are left", how, key, name.Name, needed, others))
		}
	}
}

// takenBy returns how a pod was removed with its node, or an empty string for any other reason. Kubernetes itself notes the
// reason on the pod, except if the pod is deleted outright: apart from a drain, only its ReplicaSet does that, when it wants
// fewer.
func takenBy(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type != corev1.DisruptionTarget || c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Reason {
		case "EvictionByEvictionAPI":
			return "evicted"
		case "DeletionByTaintManager", "DeletionByPodGC":
			return "lost its node"
		}
		return ""
	}
	if pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds != *orZero(pod.Spec.TerminationGracePeriodSeconds) {
		return "deleted by force" // only a drain shortens a pod's grace period
	}
	return ""
}

func orZero(seconds *int64) *int64 {
	if seconds == nil {
		return new(int64)
	}
	return seconds
}

// protects reports whether a budget restricts the deletion of a pod. A pod that is not running is not restricted.
func protects(budget *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	policy := budget.Spec.UnhealthyPodEvictionPolicy
	always := !readyPod(pod) && policy != nil && *policy == policyv1.AlwaysAllow
	return selects(budget, pod) && pod.Status.Phase == corev1.PodRunning && !always
}

// healthy returns the number of healthy pods under a budget apart from one, and how many the controllers of them all want.
func (g *guard) healthy(pod *corev1.Pod, budget *policyv1.PodDisruptionBudget) (others, expected int) {
	owners := map[types.UID]bool{}
	own := func(pod *corev1.Pod) {
		if owner := metav1.GetControllerOf(pod); owner != nil {
			owners[owner.UID] = true
		}
	}
	own(pod)
	for key, other := range g.pods {
		if !selects(budget, other) || other.DeletionTimestamp != nil || key == client.ObjectKeyFromObject(pod) {
			continue
		}
		own(other)
		if readyPod(other) {
			others++
		}
	}
	for owner := range owners {
		expected += g.scales[owner]
	}
	return others, expected
}

func selects(budget *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	return err == nil && budget.Namespace == pod.Namespace && selector.Matches(setOf(pod.Labels))
}

// setOf implements the labels interface of selectors.
type setOf map[string]string

func (s setOf) Has(key string) bool              { _, ok := s[key]; return ok }
func (s setOf) Get(key string) string            { return s[key] }
func (s setOf) Lookup(key string) (string, bool) { v, ok := s[key]; return v, ok }

// demanded returns how many healthy pods a budget demands, given the number that its controllers want.
func demanded(budget *policyv1.PodDisruptionBudget, expected int) int {
	share := func(value intstr.IntOrString) int {
		n, err := intstr.GetScaledValueFromIntOrPercent(&value, expected, true)
		if err != nil {
			return expected
		}
		return n
	}
	switch {
	case budget.Spec.MinAvailable != nil:
		return share(*budget.Spec.MinAvailable)
	case budget.Spec.MaxUnavailable != nil:
		return max(0, expected-share(*budget.Spec.MaxUnavailable))
	}
	return 0
}

// confirm reads the budget once more, because the watches of pods and budgets are not synchronized: a budget relaxed or
// deleted just now may become known here only after the pod that it allowed to go.
func (g *guard) confirm(pod *corev1.Pod, judged *policyv1.PodDisruptionBudget, others, expected int, broken string) {
	g.pending.Add(1)
	go func() {
		defer g.pending.Done()
		var now policyv1.PodDisruptionBudget
		err := g.kube.Get(context.Background(), client.ObjectKeyFromObject(judged), &now)
		relaxed := apierrors.IsNotFound(err) || err == nil && now.Generation != judged.Generation && (!protects(&now, pod) || others >= demanded(&now, expected))
		g.mu.Lock()
		defer g.mu.Unlock()
		if !relaxed {
			g.found[pod.Namespace] = append(g.found[pod.Namespace], broken)
		}
	}()
}

// violations returns how PodDisruptionBudgets of a namespace were broken so far.
func (g *guard) violations(namespace string) []string {
	g.pending.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.found[namespace])
}

// forget stops checking a namespace: its contents are being deleted.
func (g *guard) forget(namespace string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed[namespace] = true
}

// summary describes what was checked.
func (g *guard) summary() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var broken []string
	for namespace, found := range g.found {
		broken = append(broken, fmt.Sprintf("%s: %d", namespace, len(found)))
	}
	slices.Sort(broken)
	return fmt.Sprintf("%d pods went that a PodDisruptionBudget selects; violations by namespace: %s", g.checked, strings.Join(broken, ", "))
}
