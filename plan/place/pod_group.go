package place

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan/devices"
	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
)

// PodGroup is waiting pods that nothing distinguishes: they have one class, their volumes and resource claims ask the
// same, and every group counts them alike. Pack distributes pod groups.
type PodGroup struct {
	Class *model.Class
	// Volumes is what the pods' volumes ask.
	Volumes rules.VolumeNeeds
	// Devices is what the pods' resource claims ask.
	Devices devices.Needs
	virtual bool
	// Pods are those without a place, the most important and oldest first.
	Pods []*model.Pod
	// workloads is the number of waiting pods of its pods' owners together, including those in other pod groups. A bare
	// pod belongs to no workload.
	workloads int
	// lacked is the cost of nodes for its pods in an earlier pass, in dollars per hour; zero if it needs none.
	lacked float64
	// base are the alternatives for a node's labels that the pods require.
	base []model.Term
	// Required are the rules that always hold. Preferences are those that hold from Step on.
	Required    rules.Rules
	Preferences []rules.Preference
	Step        int
	// shapes are the shapes at the steps looked at so far, shared by all copies of the pod group.
	shapes []*shape
	// shape is what the pods ask for at this step. barred are choices of domains in which nothing more can be bought.
	*shape
	barred []map[string]string
	// Place is the pod group's index among all. Turn is its position in the order of placement; zero until it is
	// placed.
	Place, Turn int
	// Refusal is why the pod group cannot be planned anywhere; empty if it can.
	Refusal string
	// Unmet is the rule that kept the last pod from every domain; empty if none did.
	Unmet string
}

// take removes the first n pods.
func (it *PodGroup) take(n int) []*model.Pod {
	taken := it.Pods[:n:n]
	it.Pods = it.Pods[n:]
	return taken
}

// podGroupsOf groups pods. Groups of real pods come first, then those with the largest requests. In each group only the
// first pod is in order: it is the one served first.
func podGroupsOf(in *model.Input, book *rules.VolumeIndex, known *devices.Index, t *rules.Topology, pods []*model.Pod, byPriority bool) []*PodGroup {
	podGroups := gatherGroups(book, known, pods, relationsOf(in, t, pods), byPriority)
	for _, it := range podGroups {
		it.base = it.Devices.Restrict(it.Volumes.Restrict(model.TermsOf(it.Class)))
		it.Refusal = refusalOf(it)
		it.shapes = make([]*shape, len(it.Preferences)+1)
		it.shape = it.shapeAt(0)
		it.shapes[0] = it.shape
		for i, pod := range it.Pods {
			if FirstServed(pod, it.Pods[0]) < 0 {
				it.Pods[0], it.Pods[i] = pod, it.Pods[0]
			}
		}
	}
	slices.SortFunc(podGroups, func(a, b *PodGroup) int {
		x, y := &a.Class.Requests, &b.Class.Requests
		return cmp.Or(cmp.Compare(model.Flag(a.virtual), model.Flag(b.virtual)), -cmp.Compare(x.CPU, y.CPU), -cmp.Compare(x.Memory, y.Memory),
			strings.Compare(a.Class.ID, b.Class.ID), strings.Compare(a.Volumes.Key, b.Volumes.Key), strings.Compare(a.Devices.Key, b.Devices.Key),
			strings.Compare(a.Pods[0].Labels.Key, b.Pods[0].Labels.Key), -cmp.Compare(a.Pods[0].Priority, b.Pods[0].Priority))
	})
	for i, it := range podGroups {
		it.Place = i
	}
	return podGroups
}

// relationsKey is everything about a pod that its relations depend on.
type relationsKey struct {
	class  *model.Class
	labels *model.Labels
}

// relations is how pods of one class with the same labels relate to other pods.
type relations struct {
	required    rules.Rules
	preferences []rules.Preference
	// key is equal for relations that the groups do not distinguish.
	key string
}

// relationsOf returns the relations of pods.
func relationsOf(in *model.Input, t *rules.Topology, pods []*model.Pod) map[relationsKey]*relations {
	respect := in.Preferences != model.PreferencesIgnore
	wary := respect && rules.PreferNoSchedule(in)
	known := map[relationsKey]*relations{}
	for _, pod := range pods {
		if key := (relationsKey{pod.Class, pod.Labels}); known[key] == nil {
			r := &relations{required: t.Required(pod.Class, pod.Labels)}
			if respect {
				r.preferences = t.Ladder(pod.Class, pod.Labels, wary)
			}
			known[key] = r
		}
	}
	if t.Avoid(in.Snapshot); len(t.Groups) == 0 {
		return known
	}
	for key, r := range known {
		t.Impose(&r.required, key.labels)
		all := []*rules.Rules{&r.required}
		for i := range r.preferences {
			all = append(all, &r.preferences[i].Rules)
		}
		for _, own := range all {
			r.key += fmt.Sprint(placesOf(own.Joins), placesOf(own.Apart), placesOf(amongOf(own)))
		}
	}
	return known
}

// placesOf returns the places of groups.
func placesOf(groups []*rules.Group) (places []int) {
	for _, g := range groups {
		places = append(places, g.Place)
	}
	return places
}

// gatherGroups puts pods that are planned together into the same pod group.
func gatherGroups(book *rules.VolumeIndex, claims *devices.Index, pods []*model.Pod, known map[relationsKey]*relations, byPriority bool) []*PodGroup {
	type kind struct {
		class                    *model.Class
		volumes, devices, groups string
		virtual                  bool
		// priority matters only where pod groups of different priority are planned one after the other.
		priority int32
	}
	byKind := map[kind]*PodGroup{}
	var podGroups []*PodGroup
	for _, pod := range pods {
		needs, asks, relations := book.Needs(pod), claims.Needs(pod), known[relationsKey{pod.Class, pod.Labels}]
		k := kind{class: pod.Class, volumes: needs.Key, devices: asks.Key, groups: relations.key, virtual: pod.Virtual}
		if byPriority {
			k.priority = pod.Priority
		}
		it := byKind[k]
		if it == nil {
			it = &PodGroup{Class: pod.Class, Volumes: needs, Devices: asks, virtual: pod.Virtual, Required: relations.required,
				Preferences: relations.preferences}
			byKind[k] = it
			podGroups = append(podGroups, it)
		}
		it.Pods = append(it.Pods, pod)
	}
	return podGroups
}

// FirstServed orders the pods of a pod group: the most important first, then the oldest.
func FirstServed(a, b *model.Pod) int {
	return cmp.Or(-cmp.Compare(a.Priority, b.Priority), a.Created.Compare(b.Created), strings.Compare(string(a.UID), string(b.UID)))
}

// alternate orders pods of one priority so that several owners take turns in proportion to their pods: a node then gets
// pods of all owners, and no node carries much of one. sizes is how many pods of each workload wait.
func (it *PodGroup) alternate(sizes map[model.Workload]int) {
	total, seen := map[model.Workload]int{}, map[model.Workload]int{}
	for _, pod := range it.Pods {
		total[pod.Workload()]++
	}
	for w := range total {
		it.workloads += sizes[w]
	}
	if len(total) < 2 {
		return
	}
	turn := make(map[*model.Pod]float64, len(it.Pods))
	for _, pod := range it.Pods {
		w := pod.Workload()
		turn[pod] = (float64(seen[w]) + 0.5) / float64(total[w])
		seen[w]++
	}
	slices.SortStableFunc(it.Pods, func(a, b *model.Pod) int {
		return cmp.Or(-cmp.Compare(a.Priority, b.Priority), cmp.Compare(turn[a], turn[b]))
	})
}

// refusalOf says why a class can never be planned, whatever the cluster and the pools; empty if it can.
func refusalOf(it *PodGroup) string {
	class := it.Class
	switch {
	case it.Volumes.Refusal != "":
		return it.Volumes.Refusal
	case it.Devices.Refusal != "":
		return it.Devices.Refusal
	case len(it.base) > 0:
		return ""
	case slices.ContainsFunc(class.NodeAffinity.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool { return len(t.MatchFields) > 0 }):
		return "its node affinity uses matchFields, which no NodePool can meet"
	}
	return "its node affinity has no term that a node could match"
}

// keys returns the labels other than the hostname that affect where the pods go, sorted: those in the pod group's own
// rules, and those in the rules of others that count its pods.
func (it *PodGroup) keys() []string {
	keys := it.Rules.Keys()
	for _, g := range it.Rules.Joins {
		if g.Host < 0 && !slices.Contains(keys, g.Key) {
			keys = append(keys, g.Key)
		}
	}
	slices.Sort(keys)
	return keys
}

// tolerated reports whether the pod group's pods tolerate the taints of a node.
func (it *PodGroup) tolerated(taints []corev1.Taint) bool {
	return market.Tolerated(taints, it.Class.Tolerations, it.wary)
}

// tied reports whether some nodes with room will not do for the pod group's pods.
func (it *PodGroup) tied() bool {
	return it.Volumes.Key != "" || it.Devices.Key != "" || it.Class.Tied()
}
