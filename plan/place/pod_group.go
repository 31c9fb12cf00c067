package place

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
)

// PodGroup is the waiting pods that nothing tells apart: they are of one class, their volumes ask the same, and every
// group counts them alike. It is what Pack distributes.
type PodGroup struct {
	Class *model.Class
	// Volumes is what the pods' volumes ask.
	Volumes rules.VolumeNeeds
	virtual bool
	// Pods are those without a place, the most important and oldest first.
	Pods []*model.Pod
	// workloads is how many waiting pods the owners of its pods have together, those of other pod groups included. A bare
	// pod is of no workload.
	workloads int
	// lacked is what nodes for its pods cost in an earlier pass, in dollars per hour; zero if it needs none.
	lacked float64
	// base are the alternatives for the labels of a node that the pods cannot do without.
	base []model.Term
	// Required are the rules that hold in any case, preferences those that hold from step on.
	Required    rules.Rules
	Preferences []rules.Preference
	Step        int
	// shapes are those at the steps that were looked at, shared by all copies of the pod group.
	shapes []*shape
	// shape is what the pods ask for at this step, and barred are choices of domains in which nothing more can be bought.
	*shape
	barred []map[string]string
	// Place is the pod group's among all, turn when it was placed; zero while it was not.
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

// podGroupsOf groups pods. Real pods come first, then the largest requests. Of each pod group only the first pod comes
// first.
func podGroupsOf(in *model.Input, book *rules.VolumeIndex, t *rules.Topology, pods []*model.Pod, byPriority bool) []*PodGroup {
	podGroups := gatherGroups(book, pods, relationsOf(in, t, pods), byPriority)
	for _, it := range podGroups {
		it.base = it.Volumes.Restrict(model.TermsOf(it.Class))
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
			strings.Compare(a.Class.ID, b.Class.ID), strings.Compare(a.Volumes.Key, b.Volumes.Key),
			strings.Compare(a.Pods[0].Labels.Key, b.Pods[0].Labels.Key), -cmp.Compare(a.Pods[0].Priority, b.Pods[0].Priority))
	})
	for i, it := range podGroups {
		it.Place = i
	}
	return podGroups
}

// relationsKey is all of a pod that its relations depend on.
type relationsKey struct {
	class  *model.Class
	labels *model.Labels
}

// relations is what pods of one class that look alike have to do with other pods.
type relations struct {
	required    rules.Rules
	preferences []rules.Preference
	// key is the same for those that the groups do not tell apart.
	key string
}

// relationsOf finds the relations of pods.
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

// placesOf are the places of groups.
func placesOf(groups []*rules.Group) (places []int) {
	for _, g := range groups {
		places = append(places, g.Place)
	}
	return places
}

// gatherGroups puts pods that are planned together into one pod group each.
func gatherGroups(book *rules.VolumeIndex, pods []*model.Pod, known map[relationsKey]*relations, byPriority bool) []*PodGroup {
	type kind struct {
		class           *model.Class
		volumes, groups string
		virtual         bool
		// priority matters only where pod groups of different priority are planned one after the other.
		priority int32
	}
	byKind := map[kind]*PodGroup{}
	var podGroups []*PodGroup
	for _, pod := range pods {
		needs, relations := book.Needs(pod), known[relationsKey{pod.Class, pod.Labels}]
		k := kind{class: pod.Class, volumes: needs.Key, groups: relations.key, virtual: pod.Virtual}
		if byPriority {
			k.priority = pod.Priority
		}
		it := byKind[k]
		if it == nil {
			it = &PodGroup{Class: pod.Class, Volumes: needs, virtual: pod.Virtual, Required: relations.required, Preferences: relations.preferences}
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

// alternate orders pods of one priority so that those of several owners take turns, each as often as it has pods: what goes
// to one node is then of all of them, and no node carries much of one. sizes is how many pods of each workload wait.
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

// refusalOf says why a class cannot be planned, whatever the cluster and the pools are like.
func refusalOf(it *PodGroup) string {
	class := it.Class
	switch {
	case it.Volumes.Refusal != "":
		return it.Volumes.Refusal
	case class.ResourceClaims:
		return "it asks for devices by dynamic resource allocation, which is not planned for"
	case len(it.base) > 0:
		return ""
	case slices.ContainsFunc(class.NodeAffinity.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool { return len(t.MatchFields) > 0 }):
		return "its node affinity uses matchFields, which no NodePool can meet"
	}
	return "its node affinity has no term that a node could match"
}

// keys are the labels other than the hostname that matter to where the pods go, ordered: the pod group's own rules are
// about them, or those of others who count its pods.
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

// tolerated is what the pod group's pods put up with, for the taints of a node.
func (it *PodGroup) tolerated(taints []corev1.Taint) bool {
	return market.Tolerated(taints, it.Class.Tolerations, it.wary)
}

// tied says that not every node with room will do for the pod group's pods.
func (it *PodGroup) tied() bool { return it.Volumes.Key != "" || it.Class.Tied() }
