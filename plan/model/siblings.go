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

// Siblings returns what the pod has in common with its siblings. Pods without an owner have none. Those of a StatefulSet
// or a Job have labels of their own, their number and name, and claims made from one template: what a sibling was found to
// need goes for them wherever their own volume is, as the plan puts those on nodes which have room in its zone. Other pods
// with claims have no siblings: they share the claim, and often only one of them can have it.
func (p *Pod) Siblings() Siblings {
	s := Siblings{namespace: p.Namespace, kind: p.OwnerKind, owner: p.OwnerName, class: p.Class, labels: p.Labels, priority: p.Priority}
	switch {
	case p.OwnerName == "":
		return Siblings{}
	case p.OwnerKind == "StatefulSet" || p.OwnerKind == "Job":
		s.labels = nil
	}
	if p.OwnerKind != "StatefulSet" && len(p.Mounts.Names()) > 0 {
		return Siblings{}
	}
	return s
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
