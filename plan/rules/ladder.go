package rules

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan/model"
)

// Preference is one preference: what it adds to the requirements.
type Preference struct {
	Rules
	// Node is a conjunction that the node's labels should meet. Of the preferences that still hold, only the first with a
	// Node counts.
	Node model.Term
	// Wary avoids taints with PreferNoSchedule.
	Wary bool
}

// Ladder compiles a pod's preferences in the order in which they are given up: pod affinity, pod anti-affinity and node
// affinity, each the heaviest first, then spread, then taints.
func (t *Topology) Ladder(class *model.Class, pod *model.Labels, wary bool) []Preference {
	var preferences []Preference
	if class.Affinity != nil {
		for _, w := range heaviest(class.Affinity.PreferredDuringSchedulingIgnoredDuringExecution, weightOfPods) {
			preferences = append(preferences, Preference{Rules: Rules{Near: t.nearRules(pod, []corev1.PodAffinityTerm{w.PodAffinityTerm})}})
		}
	}
	if class.AntiAffinity != nil {
		for _, w := range heaviest(class.AntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution, weightOfPods) {
			others, _ := t.apartFrom(pod, &w.PodAffinityTerm)
			preferences = append(preferences, Preference{Rules: Rules{Apart: []*Group{others}}})
		}
	}
	for _, w := range heaviest(class.PreferredNodes, func(term corev1.PreferredSchedulingTerm) int32 { return term.Weight }) {
		if len(w.Preference.MatchExpressions) > 0 {
			preferences = append(preferences, Preference{Node: model.Expressions(w.Preference.MatchExpressions)})
		}
	}
	for i := range class.Spread {
		if class.Spread[i].WhenUnsatisfiable == corev1.ScheduleAnyway {
			preferences = append(preferences, Preference{Rules: Rules{Spread: []SpreadRule{t.spreadRule(class, pod, &class.Spread[i])}}})
		}
	}
	if wary {
		preferences = append(preferences, Preference{Wary: true})
	}
	return preferences
}

// heaviest orders preferred terms by falling weight.
func heaviest[T any](terms []T, weight func(T) int32) []T {
	return slices.SortedStableFunc(slices.Values(terms), func(a, b T) int { return -cmp.Compare(weight(a), weight(b)) })
}

func weightOfPods(term corev1.WeightedPodAffinityTerm) int32 { return term.Weight }

// Required compiles a pod's required rules, without those that other pods impose on it.
func (t *Topology) Required(class *model.Class, pod *model.Labels) Rules {
	var r Rules
	for i := range class.Spread {
		if class.Spread[i].WhenUnsatisfiable != corev1.ScheduleAnyway {
			r.Spread = append(r.Spread, t.spreadRule(class, pod, &class.Spread[i]))
		}
	}
	if class.Affinity != nil {
		r.Near = t.nearRules(pod, class.Affinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	r.Joins, r.Apart = t.ownersOf(class, pod)
	return r
}

// Impose adds the rules that follow from the terms of other pods, and the groups that count the pod. All groups have to
// exist.
func (t *Topology) Impose(r *Rules, pod *model.Labels) {
	for _, g := range t.membersOf(pod) {
		r.Joins = append(r.Joins, g)
		if g.owners != nil && !slices.Contains(r.Apart, g.owners) {
			r.Apart = append(r.Apart, g.owners)
		}
	}
}

// PreferNoSchedule says whether any pool or node has a taint with that effect.
func PreferNoSchedule(in *model.Input) bool {
	polite := func(taints []corev1.Taint) bool {
		return slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectPreferNoSchedule })
	}
	return slices.ContainsFunc(in.Pools, func(p model.Pool) bool { return polite(p.NodePool.Spec.Template.Spec.Taints) }) ||
		slices.ContainsFunc(in.Snapshot.Nodes, func(n *model.Node) bool { return polite(n.Taints) })
}
