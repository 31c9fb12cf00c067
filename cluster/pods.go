package cluster

import (
	"maps"
	"slices"
	"strings"
)

// pods are the pods of the cluster that have not ended. They pass each change on to the stores of bound pods, waiting
// pods and DaemonSets.
type pods struct {
	*shared
	feed       *feed[*Pod]
	boundPods  *boundPods
	waiting    *waiting
	promises   *promises
	grown      *grown
	daemonSets *daemonSets
}

// follow subscribes the store to its watch.
func (p *pods) follow() *pods {
	p.feed.changed = p.podChanged
	return p
}

// Pod returns a pod that has not ended, or nil.
func (p *pods) Pod(namespace, name string) *Pod {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.feed.items[namespace+"/"+name]
}

// PodsOnNode returns the pods bound to a node that have not ended, ordered by UID.
func (p *pods) PodsOnNode(name string) []*Pod {
	p.mu.RLock()
	defer p.mu.RUnlock()
	here := p.boundPods.byNode[name]
	if here == nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(here.pods), func(a, b *Pod) int { return strings.Compare(string(a.UID), string(b.UID)) })
}

// PodSeen is a pod that has not ended, and how far it is.
type PodSeen struct {
	*Pod
	PodProgress
}

// PodsSeen returns all pods that have not ended, in no order.
func (p *pods) PodsSeen() []PodSeen {
	p.mu.RLock()
	defer p.mu.RUnlock()
	seen := make([]PodSeen, 0, len(p.feed.items))
	for _, pod := range p.feed.items {
		seen = append(seen, PodSeen{pod, pod.progress})
	}
	return seen
}

// PodsOwnedBy returns the pods of a controller that have not ended and are not terminating, ordered by UID. It looks at
// every pod, so call it only occasionally.
func (p *pods) PodsOwnedBy(namespace, kind, name string) []*Pod {
	p.mu.RLock()
	defer p.mu.RUnlock()
	var pods []*Pod
	for _, pod := range p.feed.items {
		if pod.OwnerName == name && pod.OwnerKind == kind && pod.Namespace == namespace && !pod.Terminal && !pod.Terminating() {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *Pod) int { return byUID(a.Pod, b.Pod) })
	return pods
}

// podChanged updates the pods' indexes and notifies those that wait for pods. The lock is held.
func (p *pods) podChanged(old, now *Pod, existed, exists bool) {
	if exists && now.NominatedNode != "" {
		now.Pod.NominatedAt = p.clock.Now()
		if existed && old.UID == now.UID && old.NominatedNode == now.NominatedNode {
			now.Pod.NominatedAt = old.NominatedAt
		}
	}
	if existed && exists && old.UID == now.UID {
		now.progress.Served = now.progress.Served || old.progress.Served
	}
	if existed && exists && old.same(now) {
		// Keeping the older value keeps every node and snapshot built from it valid.
		old.progress = now.progress
		p.feed.items[now.Key()] = old
		return
	}
	p.grown.podChanged(old, now, existed, exists)
	p.daemonSets.podChanged(old, now)
	from, to := "", ""
	if existed {
		from = old.Node
	}
	if exists {
		to = now.Node
	}
	if from != "" && (from != to || old.UID != now.UID) {
		p.boundPods.depart(old)
	}
	if to != "" {
		p.boundPods.arrive(now)
	}
	if existed && from == "" || exists && to == "" {
		p.pendingChanged(old, now)
	}
}

// pendingChanged handles a change of a pod that has or had no node. Either version may be nil. The lock is held.
func (p *pods) pendingChanged(old, now *Pod) {
	at := p.clock.Now()
	asked, settled := p.waiting.update(at, old, now)
	if old != nil && !p.waiting.has(old.UID) {
		p.promises.keepPromise(old.UID)
	}
	p.changed()
	if asked {
		p.publish(Event{Kind: PodsPending})
	}
	if _, open := p.waiting.oldestUnjudged(at); settled && !open {
		p.publish(Event{Kind: judged})
	}
}
