package model

import (
	"slices"
	"strings"
	"time"
)

// Siblings names the pods of one owner that are all the same to the kube-scheduler. It looks at one pod after the other,
// and writes down what it found at a limited rate: the last of a thousand pods are found to need a node many seconds after
// the first. Where it has found no node for one, it finds none for a sibling either, so a plan need not wait for it to say
// so, and can buy for all of them together. The zero value names nobody.
type Siblings struct {
	namespace, kind, owner string
	class                  *Class
	labels                 *Labels
	priority               int32
}

// Siblings returns what the pod has in common with its siblings. Pods without an owner have none. Those of a StatefulSet
// or a Job have labels of their own, their number and name, and claims made from one template: what a sibling was found to
// need goes for them wherever their own volume is, as the plan puts those on nodes which have room in its zone. Other pods
// with claims have no siblings: they share the claim, and often only one of them can have it.
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

// Any says that it names somebody.
func (s Siblings) Any() bool { return s != Siblings{} }

// Leaving says that the node's pods will have to go elsewhere.
func (n *Node) Leaving() bool { return n.Deleting || n.Disrupted || n.Terminating }

// preempting finds, among a snapshot's pending pods, those the kube-scheduler is making room for. They need no node. A pod
// carries a node's name also where somebody who planned it, as Tenon does, expects it there (Pod.NominatedNode). The node
// tells them apart: the first do not fit there as things are, and there are pods of lower priority to make room.
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

// preemptsFor says whether a pod has no room beside the others, of which some are of lower priority, on a node that stays.
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

// maxUnseen is how long the kube-scheduler may take to look at a pod. Where it takes longer, and has found no node for
// others, what it has seen so far is a sample: plans of one sample after the other would buy more than one of all.
const maxUnseen = 10 * time.Second

// WaitingForNode returns the pending pods that wait for a node which does not exist: those the kube-scheduler found none
// for, their siblings, and those it should have looked at by now, which may find room where they are. It says whether there are others that may come to do so without any further change of their
// own, because the kube-scheduler means to preempt for them on a node that may be gone before it has.
func (s *Snapshot) WaitingForNode() (pods []*Pod, others bool) {
	preempting := s.preempting()
	// One of these siblings the kube-scheduler found no node for, and makes no room for.
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

// succeedsWithin is how long after its eviction a pod's controller is given to make its successor. It takes milliseconds,
// and seconds where a controller has hundreds to make (--kube-api-qps of the kube-controller-manager).
const succeedsWithin = 15 * time.Second

// Arriving returns the pods that wait for no node yet and will take room in a moment: those the kube-scheduler has not
// looked at, and those that were evicted and whose controller has made no other since, each of which stands for its
// successor. Until is when the last of these is given up; zero if there are none.
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
