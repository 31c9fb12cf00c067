package plan

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	operators "k8s.io/apimachinery/pkg/selection"
)

// rules are what an item asks of the groups.
type rules struct {
	spread []spreadRule
	near   []nearRule
	// apart are the groups of which none may be in the domain.
	apart []*group
	// joins are the groups that count the item's own pods.
	joins []*group
}

// spreadRule bounds by how much a domain may hold more pods of the group than the emptiest domain.
type spreadRule struct {
	*group
	maxSkew, minDomains int
	// self is one if the item's pods are of the group, else zero.
	self int
}

// nearRule demands that pods of the group are in the domain; the first of them may go anywhere.
type nearRule struct {
	*group
	self bool
}

func (r *rules) empty() bool { return len(r.spread)+len(r.near)+len(r.apart) == 0 }

// ruledByHost says that it matters to the item which pods run on the same node.
func (r *rules) ruledByHost() bool {
	for i := range r.spread {
		if r.spread[i].host >= 0 {
			return true
		}
	}
	return r.nearHost() != nil || slices.ContainsFunc(r.apart, func(g *group) bool { return g.host >= 0 })
}

// spreadsHosts says that the pods are spread over hosts.
func (r *rules) spreadsHosts() bool {
	return slices.ContainsFunc(r.spread, func(s spreadRule) bool { return s.host >= 0 })
}

// floors are those of all rules of spread over hosts together.
func (r *rules) floors() int {
	sum := 0
	for i := range r.spread {
		if r.spread[i].host >= 0 {
			sum += r.spread[i].floor()
		}
	}
	return sum
}

// nearHost is the rule to be on one node with other pods, if there is one.
func (r *rules) nearHost() *nearRule {
	for i := range r.near {
		if r.near[i].host >= 0 {
			return &r.near[i]
		}
	}
	return nil
}

// keys are the labels other than the hostname that the rules are about, ordered.
func (r *rules) keys() []string {
	found := map[string]bool{}
	for i := range r.spread {
		found[r.spread[i].key] = true
	}
	for i := range r.near {
		found[r.near[i].key] = true
	}
	for _, g := range r.apart {
		found[g.key] = true
	}
	delete(found, corev1.LabelHostname)
	return slices.Sorted(maps.Keys(found))
}

// hostAllows says how many of n pods may join a new node with this tally of the groups over hostnames. While it is new,
// the emptiest of all nodes has none.
func (r *rules) hostAllows(tally []int32, n int) int {
	return r.hostAllowsAbove(tally, n, func(*spreadRule) int { return 0 })
}

// slotAllows says the same of a node that is there, or on its way. Of those all have as many pods as the emptiest has.
func (r *rules) slotAllows(tally []int32, n int, t *topology) int {
	most := r.hostAllows(tally, n)
	if most == n || t == nil || !t.alone {
		return most
	}
	above := r.hostAllowsAbove(tally, n, (*spreadRule).floor)
	t.leans = t.leans || above > most
	return above
}

// floor is the number of pods that each host has.
func (r *spreadRule) floor() int {
	pods, hosts := r.group.floor()
	if hosts < r.minDomains {
		return 0
	}
	return pods
}

func (r *rules) hostAllowsAbove(tally []int32, n int, floor func(*spreadRule) int) int {
	for i := range r.spread {
		s := &r.spread[i]
		if s.host < 0 {
			continue
		}
		switch most := s.maxSkew + floor(s); {
		case s.self == 1:
			n = min(n, most-int(tally[s.host]))
		case int(tally[s.host]) > most:
			return 0
		}
	}
	for _, g := range r.apart {
		if g.host < 0 {
			continue
		}
		if tally[g.host] > 0 {
			return 0
		}
		if slices.Contains(r.joins, g) {
			n = min(n, 1)
		}
	}
	return max(0, n)
}

// count writes down n pods of the item on a node with this tally.
func (r *rules) count(tally []int32, n int) {
	for _, g := range r.joins {
		if g.host >= 0 {
			tally[g.host] += int32(n)
		}
	}
}

// first says that no pod is there yet that the item's pods have to be near, and that they may be the first themselves.
func (r *rules) first() bool {
	for i := range r.near {
		if !r.near[i].self || r.near[i].total > 0 {
			return false
		}
	}
	return true
}

// spreadRule compiles a constraint of a pod.
func (t *topology) spreadRule(class *Class, pod *Labels, c *corev1.TopologySpreadConstraint) spreadRule {
	selector, text := selectorFor(c.LabelSelector, pod.Set, c.MatchLabelKeys, nil)
	honorsNodes := c.NodeAffinityPolicy == nil || *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor
	honorsTaints := c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor
	id := "spread\x00" + pod.Namespace + "\x00" + text
	if honorsNodes = honorsNodes && (len(class.NodeSelector) > 0 || class.NodeAffinity != nil); honorsNodes {
		id += "\x00" + selectionKey(class)
	}
	if honorsTaints {
		id += "\x00" + tolerationKey(class.Tolerations)
	}
	// Only nodes that have the labels of all constraints count for any of them.
	var others []string
	for i := range class.Spread {
		if other := &class.Spread[i]; other.WhenUnsatisfiable == c.WhenUnsatisfiable && other.TopologyKey != c.TopologyKey && other.TopologyKey != corev1.LabelHostname {
			others = append(others, other.TopologyKey)
		}
	}
	if len(others) > 0 {
		slices.Sort(others)
		id += "\x00" + strings.Join(others, ",")
	}
	g := t.group(id, c.TopologyKey, func(g *group) {
		g.crowds = []crowd{{namespaces: []string{pod.Namespace}, selector: selector}}
		if !honorsNodes && !honorsTaints && len(others) == 0 {
			return
		}
		terms := termsOf(class)
		for _, t := range terms {
			for i := range t {
				g.asks = append(g.asks, t[i].key)
			}
		}
		g.included = func(n *Node) bool {
			admitted := !honorsNodes || slices.ContainsFunc(terms, func(t term) bool { return t.admitsNode(n) })
			lacks := func(key string) bool { _, has := n.label(key); return !has && !n.unsettled() }
			return admitted && !slices.ContainsFunc(others, lacks) && (!honorsTaints || repelledBy(lastingTaints(n), class.Tolerations) == nil)
		}
	})
	if g.host >= 0 && g.levels == nil {
		g.levels = []int{}
		t.levelled = append(t.levelled, g)
	}
	rule := spreadRule{group: g, maxSkew: int(c.MaxSkew), minDomains: int(valueOr(c.MinDomains, 1))}
	if g.selects(pod, t.namespaces) {
		rule.self = 1
	}
	return rule
}

// least is the number of pods in the emptiest domain of a rule.
func (r *spreadRule) least(domains []string) int {
	if len(domains) < r.minDomains || len(domains) == 0 {
		return 0
	}
	least := math.MaxInt
	for _, domain := range domains {
		least = min(least, r.counts[domain])
	}
	return least
}

// admitsNode says whether a node meets every condition. Of a claim without machine only what is settled is asked.
func (t term) admitsNode(n *Node) bool {
	if !n.unsettled() {
		return t.admits(n.Labels) || !n.Initialized && t.normalized().admits(n.Labels)
	}
	return !slices.ContainsFunc(t, func(c condition) bool {
		value, settled := n.Labels[c.key]
		return settled && !c.admits(value, true)
	})
}

// selectionKey tells apart what classes ask of the labels of a node.
func selectionKey(class *Class) string {
	key := appendMap(nil, class.NodeSelector)
	if class.NodeAffinity != nil {
		key = appendMessage(key, class.NodeAffinity)
	}
	return string(key)
}

func tolerationKey(tolerations []corev1.Toleration) string {
	var key []byte
	for i := range tolerations {
		key = appendToleration(key, &tolerations[i])
	}
	return strconv.Itoa(len(tolerations)) + string(key)
}

// nearRules compiles terms of pod affinity that hold together: only pods that match all of them count.
func (t *topology) nearRules(pod *Labels, terms []corev1.PodAffinityTerm) []nearRule {
	var crowds []crowd
	id := "near"
	for i := range terms {
		s, text := crowdOf(pod, &terms[i])
		crowds = append(crowds, s)
		id += "\x00" + text
	}
	var result []nearRule
	for i := range terms {
		g := t.group(id, terms[i].TopologyKey, func(g *group) { g.crowds = crowds })
		result = append(result, nearRule{group: g, self: g.selects(pod, t.namespaces)})
	}
	return result
}

// apartFrom compiles a term of anti-affinity: the group of those it is about, and the group of those who have it.
func (t *topology) apartFrom(pod *Labels, term *corev1.PodAffinityTerm) (others, owners *group) {
	s, text := crowdOf(pod, term)
	others = t.group("apart\x00"+text, term.TopologyKey, func(g *group) {
		g.crowds, g.leaving = []crowd{s}, true
	})
	if others.owners == nil {
		others.owners = t.group("owners\x00"+text, term.TopologyKey, func(g *group) { g.leaving = true })
	}
	return others, others.owners
}

// antiTerms are the required terms of anti-affinity of a class.
func antiTerms(class *Class) []corev1.PodAffinityTerm {
	if class.AntiAffinity == nil {
		return nil
	}
	return class.AntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// crowdOf compiles whom a term of pod affinity is about.
func crowdOf(pod *Labels, term *corev1.PodAffinityTerm) (crowd, string) {
	selector, text := selectorFor(term.LabelSelector, pod.Set, term.MatchLabelKeys, term.MismatchLabelKeys)
	s := crowd{namespaces: slices.Sorted(slices.Values(term.Namespaces)), selector: selector}
	if term.NamespaceSelector != nil {
		compiled, err := metav1.LabelSelectorAsSelector(term.NamespaceSelector)
		if err != nil {
			compiled = labels.Nothing()
		}
		s.spaces = compiled
		text += "\x00" + compiled.String()
	}
	if len(s.namespaces) == 0 && s.spaces == nil {
		s.namespaces = []string{pod.Namespace}
	}
	return s, text + "\x00" + strings.Join(s.namespaces, ",")
}

// selectorFor compiles a label selector with the values that the pod itself has for some keys. A selector that is not
// there, or cannot be read, selects nothing.
func selectorFor(selector *metav1.LabelSelector, own map[string]string, match, mismatch []string) (labels.Selector, string) {
	if selector == nil {
		return labels.Nothing(), "-"
	}
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return labels.Nothing(), "-"
	}
	for i, key := range slices.Concat(match, mismatch) {
		value, present := own[key]
		if !present {
			continue
		}
		operator := operators.In
		if i >= len(match) {
			operator = operators.NotIn
		}
		requirement, err := labels.NewRequirement(key, operator, []string{value})
		if err != nil {
			return labels.Nothing(), "-"
		}
		compiled = compiled.Add(*requirement)
	}
	return compiled, compiled.String()
}
