package disruption_test

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tenon-sh/tenon/worker"
)

// TestGuard checks that the watcher of PodDisruptionBudgets finds violations.
func TestGuard(t *testing.T) {
	t.Parallel()
	one, half := intstr.FromInt32(1), intstr.FromString("50%")
	for _, row := range []struct {
		name   string
		spec   policyv1.PodDisruptionBudgetSpec
		ready  int // of four pods, counted from the first
		takes  []int
		how    string
		broken int
	}{
		{name: "one of four may be missing, and one is", spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one}, ready: 4,
			takes: []int{0}, how: "EvictionByEvictionAPI", broken: 0},
		{name: "one of four may be missing, and two are", spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one}, ready: 4,
			takes: []int{0, 1}, how: "EvictionByEvictionAPI", broken: 1},
		{name: "half of four have to be there, and one is left", spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &half}, ready: 4,
			takes: []int{0, 1, 2}, how: "EvictionByEvictionAPI", broken: 1},
		{name: "a pod that is not ready counts as missing", spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one}, ready: 3,
			takes: []int{0}, how: "EvictionByEvictionAPI", broken: 1},
		{name: "an unhealthy pod may not go while others are missed", spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one}, ready: 2,
			takes: []int{3}, how: "EvictionByEvictionAPI", broken: 1},
		{name: "an unhealthy pod may always go where that is said",
			spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow)}, ready: 2,
			takes: []int{3}, how: "EvictionByEvictionAPI", broken: 0},
		{name: "pods whose node vanished are missed as well", spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one}, ready: 4,
			takes: []int{0, 1}, how: "DeletionByPodGC", broken: 1},
		{name: "pods that are deleted outright with less grace than they have are",
			spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one}, ready: 4, takes: []int{0, 1}, how: "force", broken: 1},
		{name: "pods that their ReplicaSet deletes are not", spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one}, ready: 4,
			takes: []int{0, 1}, how: "", broken: 0},
		{name: "pods that others preempt are not", spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one}, ready: 4,
			takes: []int{0, 1}, how: "PreemptionByScheduler", broken: 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			row.spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
			budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "b"}, Spec: row.spec}
			g := newGuard()
			g.kube = fake.NewClientBuilder().WithScheme(worker.Scheme()).WithObjects(budget).Build()
			g.budgetChanged(budget, false)
			g.scaleChanged(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{UID: "set"}, Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(4))}}, false)
			pods := make([]*corev1.Pod, 4)
			for i := range pods {
				pods[i] = guardedPod(i, i < row.ready)
				g.podChanged(pods[i], false)
			}
			for _, i := range row.takes {
				going := pods[i].DeepCopy()
				going.DeletionTimestamp = &metav1.Time{Time: time.Now()}
				going.DeletionGracePeriodSeconds = new(int64(30))
				switch row.how {
				case "force":
					going.DeletionGracePeriodSeconds = new(int64(7))
				case "":
				default:
					going.Status.Conditions = append(going.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: row.how})
				}
				g.podChanged(going, false)
				g.podChanged(going, true)
			}
			if got := g.violations("n"); len(got) != row.broken {
				t.Errorf("found %q, want %d violations", got, row.broken)
			}
		})
	}
}

func guardedPod(n int, ready bool) *corev1.Pod {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: fmt.Sprintf("web-%d", n), UID: types.UID(fmt.Sprint(n)), Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{UID: "set", Controller: new(true)}}},
		Spec:   corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(30))},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}},
	}
}
