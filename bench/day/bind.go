package day

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/bench/compare"
	"github.com/tenon-sh/tenon/bench/workload"
)

type condition = metav1.Condition

// bind binds waiting pods to the nodes that the kube-scheduler would choose. Pods come in arbitrary order, except that those
// marked as evicted later come after the others.
func (w *world) bind() {
	names := slices.Sorted(maps.Keys(w.nodes))
	slices.SortFunc(w.waiting, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(w.turnOf(a), w.turnOf(b)), cmp.Compare(a.UID, b.UID))
	})
	var left []*corev1.Pod
	for _, p := range w.waiting {
		if best := w.choose(p, names); best != nil {
			best.take(p, w.now)
			continue
		}
		left = append(left, p)
	}
	w.waiting = left
}

// turnOf returns a pod's turn among the waiting ones.
func (w *world) turnOf(p *corev1.Pod) int {
	if w.later[p.UID] {
		return 1
	}
	return 0
}

// choose returns the node that the kube-scheduler would take with its default plugins. It compares as many nodes with room
// as the kube-scheduler does, continuing where it stopped the last time, and takes the one with the best sum of scores: half
// the shares of cores and memory left (NodeResourcesFit), how equal they are (NodeResourcesBalancedAllocation), and, twice,
// how few pods of the same ReplicaSet it has (PodTopologySpread with the default constraint on hostnames).
func (w *world) choose(p *corev1.Pod, names []string) *machine {
	enough := len(names)
	if enough > 100 {
		enough = max(100, enough*max(5, 50-enough/125)/100)
	}
	var feasible []*machine
	for range names {
		w.turn++
		if m := w.nodes[names[w.turn%len(names)]]; m.fits(p) {
			feasible = append(feasible, m)
			if len(feasible) == enough {
				break
			}
		}
	}
	spread := make([]float64, len(feasible))
	for i, m := range feasible {
		same := 0
		for _, other := range m.pods {
			if other.Labels["app"] == p.Labels["app"] {
				same++
			}
		}
		spread[i] = float64(same)*math.Log(float64(len(feasible)+2)) + 2
	}
	if len(feasible) == 0 {
		return nil
	}
	var best *machine
	most, widest, narrowest := 0.0, slices.Max(spread), slices.Min(spread)
	for i, m := range feasible {
		least, balanced := m.scores(p)
		if score := least + balanced + 2*100*(widest+narrowest-spread[i])/widest; best == nil || score > most {
			best, most = m, score
		}
	}
	return best
}

func cpuOf(p *corev1.Pod) int64 { return p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue() }

func memoryOf(p *corev1.Pod) int64 { return p.Spec.Containers[0].Resources.Requests.Memory().Value() }

func (m *machine) fits(p *corev1.Pod) bool {
	return cpuOf(p) <= m.cpuLeft && memoryOf(p) <= m.memLeft && int64(len(m.pods)) < m.kind.Allocatable.Pods().Value()
}

// scores returns, out of a hundred, how much is left beside a pod, and how equal the shares in use are.
func (m *machine) scores(p *corev1.Pod) (least, balanced float64) {
	cpu := float64(m.cpuLeft-cpuOf(p)) / float64(m.kind.Allocatable.Cpu().MilliValue())
	memory := float64(m.memLeft-memoryOf(p)) / float64(m.kind.Allocatable.Memory().Value())
	return 50 * (cpu + memory), 100 * (1 - math.Abs(cpu-memory)/2)
}

// large reports whether a pod takes a large part of the machine, by the measure of plan.Drain.
func (m *machine) large(p *corev1.Pod) bool {
	return 4*cpuOf(p) >= m.kind.Allocatable.Cpu().MilliValue() || 4*memoryOf(p) >= m.kind.Allocatable.Memory().Value()
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

// asNode returns the machine as Kubernetes objects.
func (m *machine) asNode(now time.Time, consolidateAfter time.Duration) compare.Node {
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
