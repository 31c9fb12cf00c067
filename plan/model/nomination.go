package model

// preempting finds, among a snapshot's pending pods, those the kube-scheduler is making room for.
//
// A pod may carry the name of a node for two reasons: the kube-scheduler preempts others there for it, or somebody who
// planned it, as Tenon does, told the kube-scheduler where it is expected (Pod.NominatedNode). The field does not say
// which. A pod of the first kind needs no node. A pod of the second kind does once its node is not to be had any more, and
// until then its place is taken. What tells them apart is the node: only where the pod does not fit as things are, and
// where there are pods of lower priority to make room, is it worth waiting for.
type preempting struct {
	nodes map[string]*Node
}

// preemptingIn looks at a snapshot. It costs nothing where no pod is nominated.
func preemptingIn(snapshot *Snapshot) preempting {
	p := preempting{}
	for _, pod := range snapshot.Pending {
		if pod.NominatedNode == "" {
			continue
		}
		if p.nodes == nil {
			p.nodes = make(map[string]*Node, len(snapshot.Nodes))
			for _, n := range snapshot.Nodes {
				if n.Name != "" {
					p.nodes[n.Name] = n
				}
			}
		}
	}
	return p
}

// waits says that the kube-scheduler is making room for the pod on the node it is nominated to. A node that is gone, is
// going or is cordoned will not take it.
func (p preempting) waits(pod *Pod) bool {
	if pod.NominatedNode == "" {
		return false
	}
	n := p.nodes[pod.NominatedNode]
	return n != nil && !n.Leaving() && !n.Cordoned && !n.roomFor(pod) && n.outranked(pod)
}

// Leaving says that the node's pods will have to go elsewhere.
func (n *Node) Leaving() bool { return n.Deleting || n.Disrupted || n.Terminating }

// roomFor says whether the pod's requests fit beside those of the pods that are there.
func (n *Node) roomFor(pod *Pod) bool {
	var used Resources
	for _, other := range n.Pods {
		if !other.Terminal {
			used = used.Add(other.Class.Requests)
		}
	}
	return n.Allocatable.holds(pod.Class.Requests, used)
}

// outranked says whether a pod of a lower priority runs on the node.
func (n *Node) outranked(pod *Pod) bool {
	for _, other := range n.Pods {
		if !other.Terminal && other.Priority < pod.Priority {
			return true
		}
	}
	return false
}

// WaitingForNode returns the pending pods that wait for a node which does not exist: those the kube-scheduler found none
// for, and their siblings. It says whether there are others that may come to do so without any further change of their
// own, because the kube-scheduler means to preempt for them on a node that may be gone before it has.
func (s *Snapshot) WaitingForNode() (pods []*Pod, others bool) {
	made := preemptingIn(s)
	without := hopeless(s.Pending, made)
	for _, pod := range s.Pending {
		switch {
		case !pod.Placeable() || !pod.Unschedulable && !without[pod.Siblings()]:
		case made.waits(pod):
			others = true
		default:
			pods = append(pods, pod)
		}
	}
	return pods, others
}
