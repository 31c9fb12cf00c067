package plan_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/plan"
)

func diverse(r *rand.Rand, count int) []*corev1.Pod {
	cpus, mems := []string{"100m", "250m", "500m", "1", "1500m"}, []string{"100Mi", "256Mi", "512Mi", "1Gi", "2Gi", "4Gi"}
	label := func() map[string]string { return map[string]string{"my-label": string('a' + rune(r.IntN(7)))} }
	var pods []*corev1.Pod
	for i := range count {
		pod := newPod(fmt.Sprintf("d-%05d", i), cpus[r.IntN(5)], mems[r.IntN(6)])
		pod.Labels = label()
		switch i % 5 {
		case 1, 2:
			key := corev1.LabelTopologyZone
			if i%5 == 2 {
				key = corev1.LabelHostname
			}
			pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: key,
				WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: label()}}}
		case 3:
			pod.Labels = map[string]string{"my-affinity": string('a' + rune(r.IntN(7)))}
			pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelTopologyZone, LabelSelector: &metav1.LabelSelector{MatchLabels: pod.Labels}}}}}
		case 4:
			pod.Labels = map[string]string{"app": "nginx"}
			pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: pod.Labels}}}}}
		}
		pods = append(pods, pod)
	}
	return pods
}

func TestDiverse(t *testing.T) {
	catalogue := realCatalogue(t)
	for _, n := range []int{500, 5000, 20000} {
		w := world{pods: diverse(rand.New(rand.NewPCG(1, 2)), n), pools: []plan.Pool{{NodePool: nodePool("default", onDemand()), Types: catalogue}}}
		in := w.input()
		in.Nominates = true
		began := time.Now()
		p := plan.Pack(in)
		took := time.Since(began)
		t.Logf("%d pods: %v, %d claims, %d unplaced, $%.2f, bound $%.2f", n, took, len(p.Claims), len(p.Unplaced), p.PricePerHour(), plan.LowerBound(in))
		if len(p.Unplaced) > 0 {
			t.Logf("%v", p.Unplaced[0].Reasons)
		}
	}
}
