package plan

// Pack decides where the pods that wait for a node go: onto nodes that exist, onto claims in flight, or onto new
// claims. Pods that will have to leave a node which is going away wait as well.
func Pack(in Input) Plan {
	book := in.Snapshot.volumes()
	items := itemsOf(book, waiting(in.Snapshot))
	m := marketFor(&in, items)
	for _, it := range items {
		m.weigh(it)
	}
	result := Plan{Placements: fillExisting(items, m.slotsOf(book))}
	result.Claims = m.claims(m.buy(nil, items))
	for _, it := range items {
		if it.left == 0 {
			continue
		}
		reasons := m.explain(it)
		for _, pod := range it.next(it.left) {
			result.Unplaced = append(result.Unplaced, Unplaced{Pod: pod, Reasons: reasons})
		}
	}
	return result
}

func marketFor(in *Input, items []*item) *market {
	var classes []*Class
	for _, it := range items {
		classes = append(classes, it.class)
	}
	for _, set := range in.Snapshot.DaemonSets {
		classes = append(classes, set.Class)
	}
	return newMarket(in, newDimensions(classes))
}

// waiting are the pods that need a place: those the kube-scheduler found none for, and those on nodes that are going
// away and may be moved now.
func waiting(snapshot *Snapshot) []*Pod {
	var pods []*Pod
	for _, pod := range snapshot.Pending {
		if pod.Provisionable() {
			pods = append(pods, pod)
		}
	}
	for _, n := range snapshot.Nodes {
		if !n.Deleting && !n.Disrupted {
			continue
		}
		for _, pod := range n.Pods {
			if pod.Reschedulable() && !pod.Undisruptable(snapshot.Time) {
				pods = append(pods, pod)
			}
		}
	}
	return pods
}
