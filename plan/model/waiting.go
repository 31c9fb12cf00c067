package model

import (
	"slices"
	"strings"
	"time"
)

// Siblings identifies the pods of one owner that are all the same to the kube-scheduler. The kube-scheduler looks at one
// pod after another, and writes its findings at a limited rate: it reports the last of a thousand pods many seconds after
// the first. If it has found no node for one pod, it finds none for a sibling either, so a plan need not wait for that
// finding, and can buy for all of them together. The zero value identifies no pods.
type Siblings struct {
	namespace, kind, owner string
	class                  *Class
	labels                 *Labels
	priority               int32
}

// Siblings returns what the pod has in common with its siblings. Pods without an owner have none. Labels do not count for a
// StatefulSet or a Job, whose pods have labels of their own (number and name). The pods of a StatefulSet have claims made
// from one template: a finding about a sibling applies to them wherever their own volume is, because the plan puts them on
// nodes with room in its zone. Other pods with claims have no siblings: they share the claim, and often only one of them
// can have it.
func (p *Pod) Siblings() Siblings {
	if p.OwnerName == "" || p.OwnerKind != "StatefulSet" && len(p.Mounts.Names()) > 0 {
		return Siblings{}
	}
	s := Siblings{namespace: p.Namespace, kind: p.OwnerKind, owner: p.OwnerName, class: p.Class, labels: p.Labels, priority: p.Priority}
	if p.OwnerKind == "StatefulSet" || p.OwnerKind == "Job" {
		s.labels = nil
	}
	return s
}

// Any says that s identifies any pods.
func (s Siblings) Any() bool { return s != Siblings{} }

// Leaving says that the node's pods will have to go elsewhere.
func (n *Node) Leaving() bool { return n.Deleting || n.Disrupted || n.Terminating }

// preempting finds the pending pods for which the kube-scheduler is making room. They need no node. A pod also carries a
// node's name if a planner, such as Tenon, expects it there (Pod.NominatedNode). The node tells the two apart: a preempting
// pod does not fit there at present, and the node has pods of lower priority that can make room.
func (s *Snapshot) preempting() map[*Pod]bool {
	nominated := map[string][]*Pod{}
	for _, pod := range s.Pending {
		if pod.NominatedNode != "" {
			nominated[pod.NominatedNode] = append(nominated[pod.NominatedNode], pod)
		}
	}
	found := map[*Pod]bool{}
	for _, n := range s.Nodes {
		for _, pod := range nominated[n.Name] {
			found[pod] = n.preemptsFor(pod)
		}
	}
	return found
}

// preemptsFor says whether the node stays, is not cordoned, has no room for the pod beside its other pods, and has some of
// lower priority.
func (n *Node) preemptsFor(pod *Pod) bool {
	var used Resources
	outranks := false
	for _, other := range n.Pods {
		if !other.Terminal {
			used = used.Add(other.Class.Requests)
			outranks = outranks || other.Priority < pod.Priority
		}
	}
	return outranks && !n.Leaving() && !n.Cordoned && !n.Allocatable.holds(pod.Class.Requests, used)
}

// maxUnseen is how long the kube-scheduler may take to look at a pod. If it takes longer, and has found no node for others,
// the pods it has looked at are only a sample: planning one sample after another would buy more than planning for all pods.
const maxUnseen = 10 * time.Second

// WaitingForNode returns the pending pods that wait for a node that does not exist: those for which the kube-scheduler
// found none, their siblings, and those it should have looked at by now, which may still find room on existing nodes.
// others says that further pods may come to wait without any change of their own, because the kube-scheduler means to
// preempt for them on a node that may be gone before it has done so.
func (s *Snapshot) WaitingForNode() (pods []*Pod, others bool) {
	preempting := s.preempting()
	// Siblings with a pod for which the kube-scheduler found no node and makes no room.
	hopeless := map[Siblings]bool{}
	for _, pod := range s.Pending {
		if pod.Provisionable() && !pod.Virtual && !preempting[pod] {
			hopeless[pod.Siblings()] = true
		}
	}
	behind := len(hopeless) > 0
	delete(hopeless, Siblings{})
	for _, pod := range s.Pending {
		switch {
		case !pod.Placeable():
		case !pod.Unschedulable && !hopeless[pod.Siblings()] && !(behind && pod.Unseen && s.Time.Sub(pod.Created) >= maxUnseen):
		case preempting[pod]:
			others = true
		default:
			pods = append(pods, pod)
		}
	}
	return pods, others
}

// succeedsWithin is how long after a pod's eviction its controller is given to create the successor. That takes
// milliseconds, or seconds if a controller has hundreds to create (--kube-api-qps of the kube-controller-manager).
const succeedsWithin = 15 * time.Second

// Arriving returns the pods that do not wait for a node yet but are about to take room: those that the kube-scheduler has
// not looked at, and evicted pods whose controller has not created another since, each of which stands for its successor.
// until is when the last of the evicted pods is given up; zero if there are none.
func (s *Snapshot) Arriving() (pods []*Pod, until time.Time) {
	waits := map[*Pod]bool{}
	waiting, _ := s.WaitingForNode()
	for _, pod := range waiting {
		waits[pod] = true
	}
	for _, pod := range s.Pending {
		if pod.Placeable() && !pod.Unschedulable && !waits[pod] {
			pods = append(pods, pod)
		}
	}
	at := func(pod *Pod) time.Time { return pod.Deletion.Add(-pod.GracePeriod) }
	evicted := map[Workload][]*Pod{}
	for _, n := range s.Nodes {
		for _, pod := range n.Pods {
			// The pod of a StatefulSet is its own successor.
			replaced := pod.Terminating() && pod.OwnerName != "" && !pod.Daemon && !pod.Static && !pod.Terminal && !pod.Reschedulable()
			if n.Leaving() && replaced && s.Time.Before(at(pod).Add(succeedsWithin)) {
				evicted[pod.Workload()] = append(evicted[pod.Workload()], pod)
			}
		}
	}
	if len(evicted) == 0 {
		return pods, time.Time{}
	}
	for _, n := range append(slices.Clip(s.Nodes), &Node{Pods: s.Pending}) {
		for _, pod := range n.Pods {
			if gone := evicted[pod.Workload()]; len(gone) > 0 && !pod.Terminating() && !pod.Created.Before(at(gone[0])) {
				evicted[pod.Workload()] = gone[1:]
			}
		}
	}
	for _, gone := range evicted {
		for _, pod := range gone {
			pods, until = append(pods, pod), Later(until, at(pod).Add(succeedsWithin))
		}
	}
	slices.SortFunc(pods, func(a, b *Pod) int { return strings.Compare(string(a.UID), string(b.UID)) })
	return pods, until
}
