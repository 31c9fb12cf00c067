package day

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/bench/duel"
	"github.com/tenon-sh/tenon/bench/workload"
)

type condition = metav1.Condition

// bind gives pods that wait the nodes the kube-scheduler would give them: of those they fit on, the one which has the largest
// share of its cores and memory left. The largest pods go first, so that the answer does not depend on who came when.
func (w *world) bind() {
	names := slices.Sorted(maps.Keys(w.nodes))
	slices.SortStableFunc(w.waiting, func(a, b *corev1.Pod) int {
		return cmp.Or(-cmp.Compare(cpuOf(a), cpuOf(b)), -cmp.Compare(memoryOf(a), memoryOf(b)), cmp.Compare(a.Name, b.Name))
	})
	var left []*corev1.Pod
	for _, p := range w.waiting {
		var best *machine
		for _, name := range names {
			if m := w.nodes[name]; m.fits(p) && (best == nil || m.free(p) > best.free(p)) {
				best = m
			}
		}
		if best == nil {
			left = append(left, p)
			continue
		}
		best.take(p, w.now)
	}
	w.waiting = left
}

func cpuOf(p *corev1.Pod) int64 { return p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue() }

func memoryOf(p *corev1.Pod) int64 { return p.Spec.Containers[0].Resources.Requests.Memory().Value() }

func (m *machine) fits(p *corev1.Pod) bool {
	return cpuOf(p) <= m.cpuLeft && memoryOf(p) <= m.memLeft && int64(len(m.pods)) < m.kind.Allocatable.Pods().Value()
}

// free is the mean of the shares of cores and memory that are left beside a pod.
func (m *machine) free(p *corev1.Pod) float64 {
	return float64(m.cpuLeft-cpuOf(p))/float64(m.kind.Allocatable.Cpu().MilliValue()) +
		float64(m.memLeft-memoryOf(p))/float64(m.kind.Allocatable.Memory().Value())
}

func (m *machine) take(p *corev1.Pod, now time.Time) {
	m.pods = append(m.pods, p)
	m.cpuLeft -= cpuOf(p)
	m.memLeft -= memoryOf(p)
	m.lastEvent = now
	started := metav1.NewTime(now)
	p.Spec.NodeName = m.name
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &started, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: started},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: started}}}
}

// asNode is the machine in Kubernetes' form.
func (m *machine) asNode(now time.Time, consolidateAfter time.Duration) duel.Node {
	n := workload.Joined(m.name, "default", m.kind, m.offering, m.born)
	n.Claim.Status.LastPodEventTime = metav1.NewTime(m.lastEvent)
	quiet := condition{Type: karpv1.ConditionTypeConsolidatable, Status: metav1.ConditionFalse, Reason: "Quiet", LastTransitionTime: metav1.NewTime(m.lastEvent)}
	if now.Sub(m.lastEvent) >= consolidateAfter {
		quiet.Status = metav1.ConditionTrue
	}
	n.Claim.Status.Conditions = append(n.Claim.Status.Conditions, quiet)
	for _, p := range m.pods {
		n.Pods = append(n.Pods, p.DeepCopy())
	}
	return n
}
