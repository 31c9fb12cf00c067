package cluster

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/plan"
)

// Pod is what the mirror keeps of a pod: what planning needs, and what a drain needs besides. It is immutable.
type Pod struct {
	*plan.Pod
	// judged says that the kube-scheduler has looked at the pod.
	judged bool
	// moved is when the pod was bound, or later when it was deleted: the times of its pod events.
	moved time.Time
	// preempted says that the kube-scheduler has chosen the pod to make room for another.
	preempted bool
}

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (p *Pod) GetObjectMeta() metav1.Object { return named(p.Namespace, p.Name) }

// counts says that the pod's coming and going are pod events: those of daemons and of the kubelet's own pods are not.
func (p *Pod) counts() bool { return !p.Daemon && !p.Static }

// waits says that the pod is one the cluster has to find a place for.
func (p *Pod) waits() bool {
	return p.Node == "" && !p.Daemon && !p.Static && !p.Gated && !p.Terminal && !p.Terminating()
}

// same says that nothing has changed that anybody reading the mirror could see.
func (p *Pod) same(other *Pod) bool {
	return *p.Pod == *other.Pod && p.judged == other.judged && p.moved.Equal(other.moved) && p.preempted == other.preempted
}

func reducePod(interner *plan.Interner, obj any) (*Pod, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, unexpected(pod, obj)
	}
	reduced := &Pod{Pod: interner.Pod(pod)}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget && condition.Reason == corev1.PodReasonPreemptionByScheduler {
			reduced.preempted = condition.Status == corev1.ConditionTrue
		}
		if condition.Type != corev1.PodScheduled {
			continue
		}
		reduced.judged = condition.Reason != corev1.PodReasonSchedulingGated
		if condition.Status == corev1.ConditionTrue {
			reduced.moved = condition.LastTransitionTime.Time
		}
	}
	if pod.DeletionTimestamp != nil {
		asked := pod.DeletionTimestamp.Time
		if grace := pod.DeletionGracePeriodSeconds; grace != nil {
			asked = asked.Add(-time.Duration(*grace) * time.Second)
		}
		if asked.After(reduced.moved) {
			reduced.moved = asked
		}
	}
	return reduced, nil
}

// residents are the pods of one node, kept whether or not the Node itself has been seen yet.
type residents struct {
	pods map[string]*Pod
	// movable counts the pods that would need another place if the node went away.
	movable int
	// event is the last pod event that the node's present pods tell of, gone when a pod was last seen to leave.
	event, gone time.Time
	// ordered are the pods by UID; nil when they have changed.
	ordered []*plan.Pod
}

// set puts a pod, or nil, in the place of the one with this key.
func (r *residents) set(key string, pod *Pod) {
	if old := r.pods[key]; old != nil && old.Reschedulable() {
		r.movable--
	}
	r.ordered = nil
	if pod == nil {
		delete(r.pods, key)
		return
	}
	r.pods[key] = pod
	if pod.Reschedulable() {
		r.movable++
	}
	if pod.counts() {
		r.event = later(r.event, pod.moved)
	}
}

// byUID returns the pods as plan.Node wants them.
func (r *residents) byUID() []*plan.Pod {
	if r == nil || len(r.pods) == 0 {
		return nil
	}
	if r.ordered == nil {
		r.ordered = make([]*plan.Pod, 0, len(r.pods))
		for _, pod := range r.pods {
			r.ordered = append(r.ordered, pod.Pod)
		}
		slices.SortFunc(r.ordered, byUID)
	}
	return r.ordered
}

func byUID(a, b *plan.Pod) int { return strings.Compare(string(a.UID), string(b.UID)) }

// podChanged keeps the pods' indexes and tells who waits for pods. The lock is held.
func (m *Mirror) podChanged(old, now *Pod, existed, exists bool) {
	if exists && now.NominatedNode != "" {
		now.Pod.NominatedAt = m.clock.Now()
		if existed && old.UID == now.UID && old.NominatedNode == now.NominatedNode {
			now.Pod.NominatedAt = old.NominatedAt
		}
	}
	if existed && exists && old.same(now) {
		// Keeping the older value keeps every node and snapshot built from it valid.
		m.pods.items[now.Key()] = old
		return
	}
	m.growthChanged(old, now, existed, exists)
	m.daemonPodChanged(old, now)
	from, to := "", ""
	if existed {
		from = old.Node
	}
	if exists {
		to = now.Node
	}
	if from != "" && (from != to || old.UID != now.UID) {
		m.depart(old)
	}
	if to != "" {
		m.arrive(now)
	}
	if existed && from == "" || exists && to == "" {
		m.pendingChanged(old, now)
	}
}

// depart takes a pod off its node. The lock is held.
func (m *Mirror) depart(pod *Pod) {
	here := m.places.residents[pod.Node]
	if here == nil {
		return
	}
	if pod.counts() {
		here.gone = m.clock.Now()
	}
	m.settle(pod.Node, here, pod.Key(), nil)
	if len(here.pods) == 0 && m.nodes.items[pod.Node] == nil {
		delete(m.places.residents, pod.Node)
	}
}

// arrive puts a pod on its node, or a new version of it. The lock is held.
func (m *Mirror) arrive(pod *Pod) {
	here := m.places.residents[pod.Node]
	if here == nil {
		here = &residents{pods: map[string]*Pod{}}
		m.places.residents[pod.Node] = here
	}
	m.settle(pod.Node, here, pod.Key(), pod)
}

func (m *Mirror) settle(node string, here *residents, key string, pod *Pod) {
	movable := here.movable
	here.set(key, pod)
	m.touchNode(node)
	m.events.publish(Event{Kind: PodsChanged, Name: node})
	if movable > 0 && here.movable == 0 {
		m.events.publish(Event{Kind: NodeEmptied, Name: node})
	}
}

// pendingChanged follows a pod that has or had no node. Either version may be nil. The lock is held.
func (m *Mirror) pendingChanged(old, now *Pod) {
	at := m.clock.Now()
	asked, settled := m.waiting.update(at, old, now)
	if old != nil && !m.waiting.has(old.UID) {
		m.keepPromise(old.UID)
	}
	m.changed()
	if asked {
		m.events.publish(Event{Kind: PodsPending})
	}
	if _, open := m.waiting.oldestUnjudged(at); settled && !open {
		m.events.publish(Event{Kind: judged})
	}
}
