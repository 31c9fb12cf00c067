package cluster

import (
	"slices"
	"time"

	"github.com/tenon-sh/tenon/plan"
)

// residents are the pods of one node, kept whether or not the Node itself has been seen yet.
type residents struct {
	pods map[string]*Pod
	// movable counts the pods that would need another place if the node went away.
	movable int
	// event is the latest pod event of the node's present pods; gone is when a pod was last seen to leave.
	event, gone time.Time
	// ordered are the pods by UID; nil when they have changed.
	ordered []*plan.Pod
}

// set replaces the pod with this key; nil removes it.
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

// boundPods are the pods that are bound to nodes.
type boundPods struct {
	*shared
	nodes  *feed[*machine]
	pods   *feed[*Pod]
	places *places
	// byNode are the residents by the Node's name.
	byNode map[string]*residents
}

func newBoundPods(s *shared, pods *feed[*Pod], nodes *feed[*machine], places *places) *boundPods {
	return &boundPods{shared: s, nodes: nodes, pods: pods, places: places, byNode: map[string]*residents{}}
}

// arrive adds a pod, or a new version of it, to its node. The lock is held.
func (b *boundPods) arrive(pod *Pod) {
	here := b.byNode[pod.Node]
	if here == nil {
		here = &residents{pods: map[string]*Pod{}}
		b.byNode[pod.Node] = here
	}
	b.settle(pod.Node, here, pod.Key(), pod)
}

// depart removes a pod from its node. The lock is held.
func (b *boundPods) depart(pod *Pod) {
	here := b.byNode[pod.Node]
	if here == nil {
		return
	}
	if pod.counts() {
		here.gone = b.clock.Now()
	}
	b.settle(pod.Node, here, pod.Key(), nil)
	if len(here.pods) == 0 && b.nodes.items[pod.Node] == nil {
		delete(b.byNode, pod.Node)
	}
}

// settle replaces the pod with this key, or removes it for nil, and publishes the events for that. The lock is held.
func (b *boundPods) settle(node string, here *residents, key string, pod *Pod) {
	movable := here.movable
	here.set(key, pod)
	b.places.touchNode(node)
	b.publish(Event{Kind: PodsChanged, Name: node})
	if movable > 0 && here.movable == 0 {
		b.publish(Event{Kind: NodeEmptied, Name: node})
	}
}

// nodeGone forgets a Node that is gone and has no pods left. The lock is held.
func (b *boundPods) nodeGone(name string) {
	if here := b.byNode[name]; here != nil && len(here.pods) == 0 {
		delete(b.byNode, name)
	}
}

// lastPodEvent is when a pod last came to a node or left it. Pods that left before the mirror started are unknown: a
// node without pods then counts as emptied at that time.
func (b *boundPods) lastPodEvent(here *residents) time.Time {
	if here == nil {
		return b.pods.pulse.first
	}
	event := later(here.event, here.gone)
	if event.IsZero() {
		return b.pods.pulse.first
	}
	return event
}

// later is the later one of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
