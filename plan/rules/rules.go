package rules

import (
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tenon-sh/tenon/plan/model"
)

// Rules are what a pod group asks of the groups.
type Rules struct {
	Spread []SpreadRule
	Near   []NearRule
	// Apart are the groups none of whose pods may be in the domain.
	Apart []*Group
	// Joins are the groups that count the pod group's own pods.
	Joins []*Group
}

// SpreadRule limits how many more pods of the group a domain may hold than the emptiest domain.
type SpreadRule struct {
	*Group
	MaxSkew, MinDomains int
	// Self is one if the pod group's pods are of the group, else zero.
	Self int
}

// NearRule demands that pods of the group are in the domain; the first of them may go anywhere.
type NearRule struct {
	*Group
	Self bool
}

// Empty says that nothing is asked of other pods.
func (r *Rules) Empty() bool { return len(r.Spread)+len(r.Near)+len(r.Apart) == 0 }

// Floors returns the sum of the floors of all rules that spread over hosts.
func (r *Rules) Floors() int {
	sum := 0
	for i := range r.Spread {
		if r.Spread[i].Host >= 0 {
			sum += r.Spread[i].floor()
		}
	}
	return sum
}

// NearHost returns the rule to be on one node with other pods; nil if there is none.
func (r *Rules) NearHost() *NearRule {
	if i := slices.IndexFunc(r.Near, func(n NearRule) bool { return n.Host >= 0 }); i >= 0 {
		return &r.Near[i]
	}
	return nil
}

// HostCap limits the pods of a group on one new node, counting those that have this bound or a lower one.
type HostCap struct {
	Group *Group
	Most  int
}

// Caps returns the bounds that the rules set for the pod group's own pods.
func (r *Rules) Caps() []HostCap {
	var caps []HostCap
	for i := range r.Spread {
		if s := &r.Spread[i]; s.Host >= 0 && s.Self == 1 {
			caps = append(caps, HostCap{s.Group, s.MaxSkew})
		}
	}
	for _, g := range r.Apart {
		if g.Host >= 0 && slices.Contains(r.Joins, g) {
			caps = append(caps, HostCap{g, 1})
		}
	}
	return caps
}

// Keys are the labels other than the hostname that the rules are about, ordered.
func (r *Rules) Keys() []string {
	found := map[string]bool{}
	for i := range r.Spread {
		found[r.Spread[i].Key] = true
	}
	for i := range r.Near {
		found[r.Near[i].Key] = true
	}
	for _, g := range r.Apart {
		found[g.Key] = true
	}
	delete(found, corev1.LabelHostname)
	return slices.Sorted(maps.Keys(found))
}

// HostAllows says how many of n pods may join a new node with this tally of the groups over hostnames. While that node is
// new, the emptiest of all nodes has no pods.
func (r *Rules) HostAllows(tally []int32, n int) int {
	return r.hostAllowsAbove(tally, n, func(*SpreadRule) int { return 0 })
}

// SlotAllows says the same of a node that exists or is on its way. If no host is added to the existing ones
// (Topology.Alone), every host has at least as many pods as the emptiest, so that more are allowed.
func (r *Rules) SlotAllows(tally []int32, n int, t *Topology) int {
	most := r.HostAllows(tally, n)
	if most == n || t == nil || !t.Alone {
		return most
	}
	above := r.hostAllowsAbove(tally, n, (*SpreadRule).floor)
	t.Leans = t.Leans || above > most
	return above
}

// floor is the number of pods that each host has at least.
func (r *SpreadRule) floor() int {
	least, hosts := 0, 0
	for pods, n := range slices.Backward(r.levels) {
		if n > 0 {
			least, hosts = pods, hosts+n
		}
	}
	if hosts < r.MinDomains {
		return 0
	}
	return least
}

func (r *Rules) hostAllowsAbove(tally []int32, n int, floor func(*SpreadRule) int) int {
	for i := range r.Spread {
		s := &r.Spread[i]
		if s.Host < 0 {
			continue
		}
		switch most := s.MaxSkew + floor(s); {
		case s.Self == 1:
			n = min(n, most-int(tally[s.Host]))
		case int(tally[s.Host]) > most:
			return 0
		}
	}
	for _, g := range r.Apart {
		if g.Host < 0 {
			continue
		}
		if tally[g.Host] > 0 {
			return 0
		}
		if slices.Contains(r.Joins, g) {
			n = min(n, 1)
		}
	}
	return max(0, n)
}

// Count adds n pods of the pod group to the tally of a node.
func (r *Rules) Count(tally []int32, n int) {
	for _, g := range r.Joins {
		if g.Host >= 0 {
			tally[g.Host] += int32(n)
		}
	}
}

// First says that none of the pods exist yet that the pod group's pods have to be near, and that the pod group's own pods
// may be the first.
func (r *Rules) First() bool {
	return !slices.ContainsFunc(r.Near, func(n NearRule) bool { return !n.Self || n.Total > 0 })
}

// spreadRule compiles a constraint of a pod.
func (t *Topology) spreadRule(class *model.Class, pod *model.Labels, c *corev1.TopologySpreadConstraint) SpreadRule {
	selector, text := selectorFor(c.LabelSelector, pod.Set, c.MatchLabelKeys, nil)
	honorsNodes := c.NodeAffinityPolicy == nil || *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor
	honorsTaints := c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor
	id := "spread\x00" + pod.Namespace + "\x00" + text
	if honorsNodes = honorsNodes && (len(class.NodeSelector) > 0 || class.NodeAffinity != nil); honorsNodes {
		id += "\x00" + SelectionKey(class)
	}
	if honorsTaints {
		id += "\x00" + TolerationKey(class.Tolerations)
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
	g := t.group(id, c.TopologyKey, func(g *Group) {
		g.Selectors = []podSelector{{namespaces: []string{pod.Namespace}, selector: selector}}
		if !honorsNodes && !honorsTaints && len(others) == 0 {
			return
		}
		terms := model.TermsOf(class)
		for _, t := range terms {
			for i := range t {
				g.Asks = append(g.Asks, t[i].Key)
			}
		}
		g.Included = func(n *model.Node) bool {
			admitted := !honorsNodes || slices.ContainsFunc(terms, func(t model.Term) bool { return admitsNode(t, n) })
			lacks := func(key string) bool { _, has := Label(n, key); return !has && !n.Unsettled() }
			return admitted && !slices.ContainsFunc(others, lacks) && (!honorsTaints || model.RepelledBy(model.LastingTaints(n), class.Tolerations) == nil)
		}
	})
	if g.Host >= 0 && g.levels == nil {
		g.levels = []int{}
	}
	rule := SpreadRule{Group: g, MaxSkew: int(c.MaxSkew), MinDomains: int(ptr.Deref(c.MinDomains, 1))}
	if g.selects(pod, t.namespaces) {
		rule.Self = 1
	}
	return rule
}

// Least is the number of pods in the emptiest domain of a rule.
func (r *SpreadRule) Least(domains []string) int {
	if len(domains) < r.MinDomains || len(domains) == 0 {
		return 0
	}
	least := math.MaxInt
	for _, domain := range domains {
		least = min(least, r.Counts[domain])
	}
	return least
}

// admitsNode says whether a node meets every condition. For a claim without a machine, it checks only labels that are
// settled.
func admitsNode(t model.Term, n *model.Node) bool {
	if !n.Unsettled() {
		return t.Admits(n.Labels) || !n.Initialized && t.Normalized().Admits(n.Labels)
	}
	return !slices.ContainsFunc(t, func(c model.Condition) bool {
		value, settled := n.Labels[c.Key]
		return settled && !c.Admits(value, true)
	})
}

// nearRules compiles terms of pod affinity that hold together: only pods that match all of them count.
func (t *Topology) nearRules(pod *model.Labels, terms []corev1.PodAffinityTerm) []NearRule {
	var crowds []podSelector
	id := "near"
	for i := range terms {
		s, text := podSelectorOf(pod, &terms[i])
		crowds = append(crowds, s)
		id += "\x00" + text
	}
	var result []NearRule
	for i := range terms {
		g := t.group(id, terms[i].TopologyKey, func(g *Group) { g.Selectors = crowds })
		result = append(result, NearRule{Group: g, Self: g.selects(pod, t.namespaces)})
	}
	return result
}
