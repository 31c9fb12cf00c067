package model

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

// Siblings returns what the pod has in common with its siblings. Pods without an owner have none, and neither have those
// with volumes, whose nodes depend on volumes of their own.
func (p *Pod) Siblings() Siblings {
	if p.OwnerName == "" || len(p.Mounts.Names()) > 0 {
		return Siblings{}
	}
	return Siblings{namespace: p.Namespace, kind: p.OwnerKind, owner: p.OwnerName, class: p.Class, labels: p.Labels, priority: p.Priority}
}

// Any says that it names somebody.
func (s Siblings) Any() bool { return s != Siblings{} }

// hopeless are the siblings one of which the kube-scheduler found no node for, and makes no room for.
func hopeless(pending []*Pod, made preempting) map[Siblings]bool {
	found := map[Siblings]bool{}
	for _, pod := range pending {
		if pod.Provisionable() && !pod.Virtual && !made.waits(pod) {
			if siblings := pod.Siblings(); siblings.Any() {
				found[siblings] = true
			}
		}
	}
	return found
}
