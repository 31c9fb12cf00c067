package plan

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// item is the waiting pods that nothing tells apart: they are of one class, their volumes ask the same, and every group
// counts them alike. It is what Pack distributes.
type item struct {
	class *Class
	// volumes is what the pods' volumes ask.
	volumes volumeNeeds
	virtual bool
	// pods are those without a place, the most important and oldest first.
	pods []*Pod
	// workloads is how many waiting pods the owners of its pods have together, those of other items included.
	workloads int
	// base are the alternatives for the labels of a node that the pods cannot do without.
	base []term
	// required are the rules that hold in any case, preferences those that hold from step on.
	required    rules
	preferences []preference
	step        int
	// shapes are those at the steps that were looked at, shared by all copies of the item.
	shapes []*shape
	// shape is what the pods ask for at this step.
	*shape
	// place is the item's among all, turn when it was placed; zero while it was not.
	place, turn int
	// home is the item that a fork's item is a copy of.
	home *item
	// refusal is why the item cannot be planned anywhere; empty if it can.
	refusal string
	// unmet is the rule that kept the last pod from every domain; empty if none did.
	unmet string
}

// take removes the first n pods.
func (it *item) take(n int) []*Pod {
	taken := it.pods[:n:n]
	it.pods = it.pods[n:]
	return taken
}

// itemsOf groups pods. Real pods come first, then the largest requests. Pods of an item are ordered by age.
func itemsOf(in *Input, book *volumeBook, t *topology, pods []*Pod, byPriority bool) []*item {
	items := homesOf(in, book, t, pods, byPriority)
	for _, it := range items {
		slices.SortFunc(it.pods, firstServed)
		it.alternate()
	}
	return items
}

// homesOf groups pods as itemsOf does, of each item only the first pod comes first.
func homesOf(in *Input, book *volumeBook, t *topology, pods []*Pod, byPriority bool) []*item {
	respect := in.Preferences != PreferencesIgnore
	related := t.matters(in.Snapshot, pods, respect)
	items := gather(book, pods, related, byPriority)
	wary := respect && preferNoSchedule(in)
	for _, it := range items {
		looks := it.pods[0].Labels
		it.required = t.required(it.class, looks)
		if respect {
			it.preferences = t.ladder(it.class, looks, wary)
		}
	}
	if related {
		items = t.merged(in.Snapshot, items, byPriority)
	}
	for _, it := range items {
		it.base = it.volumes.restrict(termsOf(it.class))
		it.refusal = refusalOf(it)
		it.shapes = make([]*shape, len(it.preferences)+1)
		it.shapeUp()
		for i, pod := range it.pods {
			if firstServed(pod, it.pods[0]) < 0 {
				it.pods[0], it.pods[i] = pod, it.pods[0]
			}
		}
	}
	slices.SortFunc(items, func(a, b *item) int {
		x, y := &a.class.Requests, &b.class.Requests
		return cmp.Or(cmp.Compare(flag(a.virtual), flag(b.virtual)), -cmp.Compare(x.CPU, y.CPU), -cmp.Compare(x.Memory, y.Memory),
			strings.Compare(a.class.key, b.class.key), strings.Compare(a.volumes.key, b.volumes.key),
			strings.Compare(a.pods[0].Labels.key, b.pods[0].Labels.key), -cmp.Compare(a.pods[0].Priority, b.pods[0].Priority))
	})
	for i, it := range items {
		it.place = i
	}
	return items
}

// gather puts pods that are planned together into one item each; only where pods matter to each other do their labels
// tell them apart.
func gather(book *volumeBook, pods []*Pod, related, byPriority bool) []*item {
	type kind struct {
		class   *Class
		volumes string
		virtual bool
		looks   *Labels
		// priority matters only where items of different priority are planned one after the other.
		priority int32
	}
	byKind := map[kind]*item{}
	var items []*item
	for _, pod := range pods {
		k := kind{class: pod.Class, virtual: pod.Virtual}
		if related {
			k.looks = pod.Labels
		}
		var volumes volumeNeeds
		if pod.Mounts != nil {
			volumes = book.needs(pod)
			k.volumes = volumes.key
		}
		if byPriority {
			k.priority = pod.Priority
		}
		it := byKind[k]
		if it == nil {
			it = &item{class: pod.Class, volumes: volumes, virtual: pod.Virtual}
			byKind[k] = it
			items = append(items, it)
		}
		it.pods = append(it.pods, pod)
	}
	return items
}

// firstServed orders the pods of an item: the most important first, then the oldest.
func firstServed(a, b *Pod) int {
	return cmp.Or(-cmp.Compare(a.Priority, b.Priority), a.Created.Compare(b.Created), strings.Compare(string(a.UID), string(b.UID)))
}

// countWorkloads adds up the workloads that the item's pods are of. A bare pod is of none.
func (it *item) countWorkloads(sizes map[workload]int) {
	seen := map[workload]bool{}
	for _, pod := range it.pods {
		if w := workloadOf(pod); sizes[w] > 0 && !seen[w] {
			seen[w] = true
			it.workloads += sizes[w]
		}
	}
}

// alternate orders pods of one priority so that those of several owners take turns, each as often as it has pods: what goes
// to one node is then of all of them, and no node carries much of one.
func (it *item) alternate() {
	total, seen := map[workload]int{}, map[workload]int{}
	for _, pod := range it.pods {
		total[workloadOf(pod)]++
	}
	if len(total) < 2 {
		return
	}
	turn := make(map[*Pod]float64, len(it.pods))
	for _, pod := range it.pods {
		turn[pod] = (float64(seen[workloadOf(pod)]) + 0.5) / float64(total[workloadOf(pod)])
		seen[workloadOf(pod)]++
	}
	slices.SortStableFunc(it.pods, func(a, b *Pod) int {
		return cmp.Or(-cmp.Compare(a.Priority, b.Priority), cmp.Compare(turn[a], turn[b]))
	})
}

// matters says whether it matters to any pod which others are near it.
func (t *topology) matters(snapshot *Snapshot, pods []*Pod, respect bool) bool {
	relates := func(c *Class) bool { return len(c.Spread) > 0 || c.Affinity != nil || c.AntiAffinity != nil }
	if slices.ContainsFunc(pods, func(p *Pod) bool { return relates(p.Class) }) {
		return true
	}
	return slices.ContainsFunc(snapshot.Nodes, func(n *Node) bool {
		return slices.ContainsFunc(n.Pods, func(p *Pod) bool { return p.Class.AntiAffinity != nil })
	})
}

// merged completes the rules of items once all groups are known, and brings together those that the groups do not tell
// apart.
func (t *topology) merged(snapshot *Snapshot, items []*item, byPriority bool) []*item {
	t.avoid(snapshot)
	type kind struct {
		class   *Class
		volumes string
		virtual bool
		groups  string
		// priority is that of all the item's pods where items of different priority are kept apart.
		priority int32
	}
	byKind := map[kind]*item{}
	var kept []*item
	for _, it := range items {
		t.impose(&it.required, it.pods[0].Labels)
		k := kind{class: it.class, volumes: it.volumes.key, virtual: it.virtual, groups: it.groupKey()}
		if byPriority {
			k.priority = it.pods[0].Priority
		}
		if other := byKind[k]; other != nil {
			other.pods = append(other.pods, it.pods...)
			continue
		}
		byKind[k] = it
		kept = append(kept, it)
	}
	return kept
}

// groupKey tells items of one class apart by the groups they have to do with.
func (it *item) groupKey() string {
	var key []byte
	add := func(g *group) { key = append(key, byte(g.place), byte(g.place>>8), byte(g.place>>16)) }
	list := func(groups []*group) {
		key = append(key, '/')
		for _, g := range groups {
			add(g)
		}
	}
	list(it.required.joins)
	list(it.required.apart)
	for i := range it.required.spread {
		add(it.required.spread[i].group)
	}
	for i := range it.required.near {
		add(it.required.near[i].group)
	}
	for i := range it.preferences {
		p := &it.preferences[i]
		for j := range p.near {
			add(p.near[j].group)
		}
		if p.spread != nil {
			add(p.spread.group)
		}
		if p.apart != nil {
			add(p.apart)
		}
	}
	return string(key)
}

// refusalOf says why a class cannot be planned, whatever the cluster and the pools are like.
func refusalOf(it *item) string {
	class := it.class
	switch {
	case it.volumes.refusal != "":
		return it.volumes.refusal
	case class.ResourceClaims:
		return "it asks for devices by dynamic resource allocation, which is not planned for"
	}
	if len(it.base) == 0 {
		if slices.ContainsFunc(class.NodeAffinity.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool { return len(t.MatchFields) > 0 }) {
			return "its node affinity uses matchFields, which no NodePool can meet"
		}
		return "its node affinity has no term that a node could match"
	}
	return ""
}

// keys are the labels other than the hostname that matter to where the pods go, ordered: the item's own rules are about
// them, or those of others who count its pods.
func (it *item) keys() []string {
	if it.known.keyed {
		return it.known.keys
	}
	keys := it.rules.keys()
	for _, g := range it.rules.joins {
		if g.host < 0 && !slices.Contains(keys, g.key) {
			keys = append(keys, g.key)
		}
	}
	slices.Sort(keys)
	it.known.keyed, it.known.keys = true, keys
	return keys
}

// tolerated is what the item's pods put up with, for the taints of a node.
func (it *item) tolerated(taints []corev1.Taint) bool {
	return repelledBy(taints, it.class.Tolerations) == nil && !(it.wary && deterredBy(taints, it.class.Tolerations))
}
