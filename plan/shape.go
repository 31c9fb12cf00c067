package plan

import (
	"cmp"
	"encoding/binary"
	"slices"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// PreferencePolicy says what the planner makes of preferences: preferred terms of affinity, spread with ScheduleAnyway
// and taints with PreferNoSchedule.
type PreferencePolicy string

// The policies.
const (
	// PreferencesRespect holds to preferences as if they were required, and gives them up one by one, in the order of
	// Karpenter, where a pod would otherwise get no node.
	PreferencesRespect PreferencePolicy = "Respect"
	// PreferencesIgnore leaves preferences to the kube-scheduler.
	PreferencesIgnore PreferencePolicy = "Ignore"
)

// shape is what the pods of an item ask for while some of their preferences hold.
type shape struct {
	// request is what one pod takes.
	request []int64
	// terms are the alternatives for the labels of a node.
	terms []term
	// wary says that taints with PreferNoSchedule keep the pods away.
	wary bool
	// variants are the terms as seen by the market: what each admits. Empty where no machine will do.
	variants []variant
	// allowed is the union of the variants' machines.
	allowed bitset
	rules   rules
	// most is how many of the pods one new node takes for reasons other than room.
	most int
	// barred are choices of domains in which nothing more can be bought.
	barred []map[string]string
	// known is what was found out about the shape.
	known *knowledge
}

// knowledge is what holds for a shape during all of a distribution, and is worth being found out once.
type knowledge struct {
	// weighed says that the market has been asked.
	weighed bool
	// kind tells apart shapes that ask different labels of a node or tolerate different taints.
	kind string
	// takers are the slots that let the pods in whose machine is known.
	takers *row
	keys   []string
	keyed  bool
	// cells are the choices of domains, and reach the domains of each rule of spread that nobody has to be in for them to
	// be there.
	cells []cell
	reach [][]string
}

// preference is one preference, by what it adds to what is required.
type preference struct {
	near   []nearRule
	apart  *group
	spread *spreadRule
	// node is a conjunction that the node's labels shall meet. Only the first of those that hold counts.
	node term
	// wary avoids taints with PreferNoSchedule.
	wary bool
}

// ladder compiles a pod's preferences in the order in which they are given up: pod affinity, pod anti-affinity and node
// affinity, each the heaviest first, then spread, then taints.
func (t *topology) ladder(class *Class, pod *Labels, wary bool) []preference {
	var preferences []preference
	if class.Affinity != nil {
		for _, w := range heaviest(class.Affinity.PreferredDuringSchedulingIgnoredDuringExecution) {
			preferences = append(preferences, preference{near: t.nearRules(pod, []corev1.PodAffinityTerm{w.PodAffinityTerm})})
		}
	}
	if class.AntiAffinity != nil {
		for _, w := range heaviest(class.AntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) {
			others, _ := t.apartFrom(pod, &w.PodAffinityTerm)
			preferences = append(preferences, preference{apart: others})
		}
	}
	nodes := slices.Clone(class.PreferredNodes)
	slices.SortStableFunc(nodes, func(a, b corev1.PreferredSchedulingTerm) int { return -cmp.Compare(a.Weight, b.Weight) })
	for i := range nodes {
		if len(nodes[i].Preference.MatchExpressions) > 0 {
			preferences = append(preferences, preference{node: expressions(nodes[i].Preference.MatchExpressions)})
		}
	}
	for i := range class.Spread {
		if class.Spread[i].WhenUnsatisfiable == corev1.ScheduleAnyway {
			rule := t.spreadRule(class, pod, &class.Spread[i])
			preferences = append(preferences, preference{spread: &rule})
		}
	}
	if wary {
		preferences = append(preferences, preference{wary: true})
	}
	return preferences
}

// heaviest orders preferred terms by falling weight.
func heaviest(terms []corev1.WeightedPodAffinityTerm) []corev1.WeightedPodAffinityTerm {
	sorted := slices.Clone(terms)
	slices.SortStableFunc(sorted, func(a, b corev1.WeightedPodAffinityTerm) int { return -cmp.Compare(a.Weight, b.Weight) })
	return sorted
}

// required compiles the rules a pod cannot do without, but for those that others impose on it.
func (t *topology) required(class *Class, pod *Labels) rules {
	var r rules
	for i := range class.Spread {
		if class.Spread[i].WhenUnsatisfiable != corev1.ScheduleAnyway {
			r.spread = append(r.spread, t.spreadRule(class, pod, &class.Spread[i]))
		}
	}
	if class.Affinity != nil {
		r.near = t.nearRules(pod, class.Affinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	r.joins, r.apart = t.ownersOf(class, pod)
	return r
}

// impose adds what follows from the terms of others, and which groups count the pod. All groups have to be known.
func (t *topology) impose(r *rules, pod *Labels) {
	r.joins = append(r.joins, t.membersOf(pod)...)
	for _, g := range t.ownersAgainst(pod) {
		if !slices.Contains(r.apart, g) {
			r.apart = append(r.apart, g)
		}
	}
}

// shapeUp gives an item the shape that it has at its present step of the ladder, without its variants.
func (it *item) shapeUp() {
	if it.step < len(it.shapes) && it.shapes[it.step] != nil {
		again := *it.shapes[it.step]
		again.barred = nil
		it.shape = &again
		return
	}
	sh := &shape{rules: it.required, known: &knowledge{}}
	sh.rules.near = slices.Clip(sh.rules.near)
	sh.rules.spread = slices.Clip(sh.rules.spread)
	sh.rules.apart = slices.Clip(sh.rules.apart)
	var node term
	for i := range it.preferences[it.step:] {
		w := &it.preferences[it.step+i]
		sh.rules.near = append(sh.rules.near, w.near...)
		if w.apart != nil {
			sh.rules.apart = append(sh.rules.apart, w.apart)
		}
		if w.spread != nil {
			sh.rules.spread = append(sh.rules.spread, *w.spread)
		}
		if node == nil {
			node = w.node
		}
		sh.wary = sh.wary || w.wary
	}
	for _, t := range it.base {
		sh.terms = append(sh.terms, append(slices.Clip(t), node...))
	}
	it.shape = sh
}

// relax gives up the next preference and says whether there was one.
func (it *item) relax() bool {
	if it.step == len(it.preferences) {
		return false
	}
	it.step++
	it.shapeUp()
	return true
}

// weigh prepares an item's shape for the market: its vector, and what may be bought for it.
func (m *market) weigh(it *item) {
	sh := it.shape
	if sh.known.weighed {
		return
	}
	sh.request = m.dims.vector(it.class.Requests)
	sh.most = m.dims.claimCaps(sh.request, &sh.rules)
	m.offer(it)
	if it.refusal != "" {
		return
	}
	m.leastOdd(it)
	m.oneVariant(it)
	sh.known.weighed = true
	if it.step < len(it.shapes) {
		known := *sh
		it.shapes[it.step] = &known
	}
}

// offer finds the machines that would do for an item.
func (m *market) offer(it *item) {
	sh := it.shape
	sh.allowed = newBitset(len(m.machines))
	if it.refusal != "" {
		return
	}
	for _, t := range sh.terms {
		v := m.variant(it.class, t, sh.wary)
		v.machines.intersect(m.fitting(sh.request))
		if !v.machines.empty() {
			sh.variants = append(sh.variants, v)
			sh.allowed.unite(v.machines)
		}
	}
}

// fitting are the machines with room for a request. Many items ask for the same.
func (m *market) fitting(request []int64) bitset {
	key := make([]byte, 0, 64)
	for _, amount := range request {
		key = binary.AppendVarint(key, amount)
	}
	set, known := m.fits[string(key)]
	if !known {
		set = newBitset(len(m.machines))
		for i := range m.machines {
			if fits(request, m.machines[i].usable) {
				set.set(i)
			}
		}
		m.fits[string(key)] = set
	}
	return set
}

// preferNoSchedule says whether some pool or node has a taint that only prefers to be left alone.
func preferNoSchedule(in *Input) bool {
	polite := func(taints []corev1.Taint) bool {
		return slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectPreferNoSchedule })
	}
	return slices.ContainsFunc(in.Pools, func(p Pool) bool { return polite(p.NodePool.Spec.Template.Spec.Taints) }) ||
		slices.ContainsFunc(in.Snapshot.Nodes, func(n *Node) bool { return polite(n.Taints) })
}

// expressions compiles the conditions of a node selector's term.
func expressions(expressions []corev1.NodeSelectorRequirement) term {
	t := make(term, 0, len(expressions))
	for _, e := range expressions {
		t = append(t, newCondition(e.Key, e.Operator, e.Values))
	}
	return t
}

// normalizedKey is the label that machines are described with.
func normalizedKey(key string) string { return karpv1.NormalizedLabelKey(key) }
