package rules

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan/model"
)

// Preference is one preference, by what it adds to what is required.
type Preference struct {
	Rules
	// Node is a conjunction that the node's labels shall meet. Only the first of those that hold counts.
	Node model.Term
	// Wary avoids taints with PreferNoSchedule.
	Wary bool
}

// Ladder compiles a pod's preferences in the order in which they are given up: pod affinity, pod anti-affinity and node
// affinity, each the heaviest first, then spread, then taints.
func (t *Topology) Ladder(class *model.Class, pod *model.Labels, wary bool) []Preference {
	var preferences []Preference
	if class.Affinity != nil {
		for _, w := range heaviest(class.Affinity.PreferredDuringSchedulingIgnoredDuringExecution) {
			preferences = append(preferences, Preference{Rules: Rules{Near: t.nearRules(pod, []corev1.PodAffinityTerm{w.PodAffinityTerm})}})
		}
	}
	if class.AntiAffinity != nil {
		for _, w := range heaviest(class.AntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) {
			others, _ := t.apartFrom(pod, &w.PodAffinityTerm)
			preferences = append(preferences, Preference{Rules: Rules{Apart: []*Group{others}}})
		}
	}
	nodes := slices.Clone(class.PreferredNodes)
	slices.SortStableFunc(nodes, func(a, b corev1.PreferredSchedulingTerm) int { return -cmp.Compare(a.Weight, b.Weight) })
	for i := range nodes {
		if len(nodes[i].Preference.MatchExpressions) > 0 {
			preferences = append(preferences, Preference{Node: model.Expressions(nodes[i].Preference.MatchExpressions)})
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
func heaviest(terms []corev1.WeightedPodAffinityTerm) []corev1.WeightedPodAffinityTerm {
	sorted := slices.Clone(terms)
	slices.SortStableFunc(sorted, func(a, b corev1.WeightedPodAffinityTerm) int { return -cmp.Compare(a.Weight, b.Weight) })
	return sorted
}

// Required compiles the rules a pod cannot do without, but for those that others impose on it.
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

// Impose adds what follows from the terms of others, and which groups count the pod. All groups have to be known.
func (t *Topology) Impose(r *Rules, pod *model.Labels) {
	r.Joins = append(r.Joins, t.membersOf(pod)...)
	for _, g := range t.ownersAgainst(pod) {
		if !slices.Contains(r.Apart, g) {
			r.Apart = append(r.Apart, g)
		}
	}
}

// PreferNoSchedule says whether some pool or node has a taint that only prefers to be left alone.
func PreferNoSchedule(in *model.Input) bool {
	polite := func(taints []corev1.Taint) bool {
		return slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectPreferNoSchedule })
	}
	return slices.ContainsFunc(in.Pools, func(p model.Pool) bool { return polite(p.NodePool.Spec.Template.Spec.Taints) }) ||
		slices.ContainsFunc(in.Snapshot.Nodes, func(n *model.Node) bool { return polite(n.Taints) })
}
