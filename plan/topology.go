package plan

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	operators "k8s.io/apimachinery/pkg/selection"
)

// Topology spread, pod affinity and pod anti-affinity are all about how many pods of some kind are in the domain of a
// node: the nodes that have the same value of a label. A group counts one kind of pods by the domains of one label.
// What an item asks of the groups are its rules.

// group counts pods by the domains of one label.
type group struct {
	// place is the group's among all, host among those whose label is the hostname, or -1.
	place, host int
	key         string
	// crowds have to match a pod all for the group to count it. A group without any counts its owners: the pods
	// that have a certain term of anti-affinity.
	crowds []crowd
	// included says which nodes count; nil means all of them.
	included func(*Node) bool
	// asks are the labels that included looks at.
	asks []string
	// leaving says that pods which are being deleted count.
	leaving bool
	// owners counts the pods that have the term of anti-affinity this group was made for.
	owners *group

	counts map[string]int
	total  int
	// domains are those of the nodes that count. Hostnames are not listed: there can always be another.
	domains map[string]bool
	log     *journal
}

// add counts n pods more, whose domain may be open yet.
func (g *group) add(n int) {
	g.total += n
	g.log.write(entry{group: g, total: true, n: n})
}

// addAt counts n pods more in a domain.
func (g *group) addAt(domain string, n int) {
	g.counts[domain] += n
	g.log.write(entry{group: g, domain: domain, n: n})
}

// crowd is which pods a term is about.
type crowd struct {
	namespaces []string
	// spaces selects further namespaces by their labels; nil selects none.
	spaces   labels.Selector
	selector labels.Selector
}

func (s *crowd) matches(pod *Labels, namespaces map[string]map[string]string) bool {
	if !slices.Contains(s.namespaces, pod.Namespace) &&
		(s.spaces == nil || !s.spaces.Matches(labels.Set(namespaces[pod.Namespace]))) {
		return false
	}
	return s.selector.Matches(labels.Set(pod.Set))
}

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

// hostAllows says how many of n pods may join a node with this tally of the groups over hostnames. A new node is always
// possible, so that the emptiest of all nodes is taken to have none.
func (r *rules) hostAllows(tally []int32, n int) int {
	for i := range r.spread {
		s := &r.spread[i]
		if s.host < 0 {
			continue
		}
		switch {
		case s.self == 1:
			n = min(n, s.maxSkew-int(tally[s.host]))
		case int(tally[s.host]) > s.maxSkew:
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

// topology holds all groups of one Pack.
type topology struct {
	namespaces map[string]map[string]string
	groups     []*group
	byID       map[string]*group
	hosts      int
	// members are the groups that select pods which look alike.
	members map[*Labels][]*group
	log     *journal
}

func newTopology(namespaces map[string]map[string]string) *topology {
	return &topology{namespaces: namespaces, byID: map[string]*group{}, members: map[*Labels][]*group{}, log: &journal{}}
}

// group finds or makes the group with this identity.
func (t *topology) group(id, key string, complete func(*group)) *group {
	id += "\x00" + key
	if g, known := t.byID[id]; known {
		return g
	}
	g := &group{place: len(t.groups), host: -1, key: key, counts: map[string]int{}, domains: map[string]bool{}, log: t.log}
	if key == corev1.LabelHostname {
		g.host = t.hosts
		t.hosts++
	}
	complete(g)
	t.byID[id] = g
	t.groups = append(t.groups, g)
	return g
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
			lacks := func(key string) bool { _, has := n.Labels[key]; return !has && !n.unsettled() }
			return admitted && !slices.ContainsFunc(others, lacks) && (!honorsTaints || repelledBy(lastingTaints(n), class.Tolerations) == nil)
		}
	})
	rule := spreadRule{group: g, maxSkew: int(c.MaxSkew), minDomains: int(valueOr(c.MinDomains, 1))}
	if g.selects(pod, t.namespaces) {
		rule.self = 1
	}
	return rule
}

// admitsNode says whether a node meets every condition. Of a claim without machine only what is settled is asked.
func (t term) admitsNode(n *Node) bool {
	if !n.unsettled() {
		return t.admits(n.Labels)
	}
	return !slices.ContainsFunc(t, func(c condition) bool {
		value, settled := n.Labels[c.key]
		return settled && !c.admits(value, true)
	})
}

// unsettled says that the node is a claim whose machine is not known yet.
func (n *Node) unsettled() bool { return n.Name == "" && !n.Launched }

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

// selects says whether the group counts pods that look like this.
func (g *group) selects(pod *Labels, namespaces map[string]map[string]string) bool {
	if len(g.crowds) == 0 {
		return false
	}
	for i := range g.crowds {
		if !g.crowds[i].matches(pod, namespaces) {
			return false
		}
	}
	return true
}

// membersOf are the groups that count pods that look like this, whatever else they are.
func (t *topology) membersOf(pod *Labels) []*group {
	members, known := t.members[pod]
	if !known {
		for _, g := range t.groups {
			if g.selects(pod, t.namespaces) {
				members = append(members, g)
			}
		}
		t.members[pod] = members
	}
	return members
}

// antiTerms are the required terms of anti-affinity of a class.
func antiTerms(class *Class) []corev1.PodAffinityTerm {
	if class.AntiAffinity == nil {
		return nil
	}
	return class.AntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// avoid makes the groups that pods which run already demand to be apart from.
func (t *topology) avoid(snapshot *Snapshot) {
	type looks struct {
		class  *Class
		labels *Labels
	}
	seen := map[looks]bool{}
	for _, n := range snapshot.Nodes {
		for _, pod := range n.Pods {
			if pod.Class.AntiAffinity == nil || seen[looks{pod.Class, pod.Labels}] {
				continue
			}
			seen[looks{pod.Class, pod.Labels}] = true
			terms := antiTerms(pod.Class)
			for i := range terms {
				t.apartFrom(pod.Labels, &terms[i])
			}
		}
	}
}

// ownersOf are the groups that count a pod because of its own terms of anti-affinity, and those it must not meet because
// of the terms of others.
func (t *topology) ownersOf(class *Class, pod *Labels) (owned, others []*group) {
	terms := antiTerms(class)
	for i := range terms {
		target, owner := t.apartFrom(pod, &terms[i])
		owned, others = append(owned, owner), append(others, target)
	}
	return owned, others
}

// ownersAgainst are the groups of those who demand to be apart from pods that look like this.
func (t *topology) ownersAgainst(pod *Labels) []*group {
	var against []*group
	for _, target := range t.membersOf(pod) {
		if target.owners != nil {
			against = append(against, target.owners)
		}
	}
	return against
}

// survey counts the pods that are bound, all but those that will move, and finds the domains there are.
func (t *topology) survey(snapshot *Snapshot, waiting []*Pod) {
	moving := map[*Pod]bool{}
	for _, pod := range waiting {
		if pod.Node != "" {
			moving[pod] = true
		}
	}
	type looks struct {
		class  *Class
		labels *Labels
	}
	cache := map[looks][]*group{}
	joins := func(pod *Pod) []*group {
		key := looks{nil, pod.Labels}
		if len(antiTerms(pod.Class)) > 0 {
			key.class = pod.Class
		}
		found, known := cache[key]
		if !known {
			found = t.membersOf(pod.Labels)
			if key.class != nil {
				owned, _ := t.ownersOf(pod.Class, pod.Labels)
				found = append(slices.Clone(found), owned...)
			}
			cache[key] = found
		}
		return found
	}
	counted := make([]bool, len(t.groups))
	for _, n := range snapshot.Nodes {
		// A node that goes away stays for as long as pods on it must not be moved.
		leaves := !slices.ContainsFunc(n.Pods, func(p *Pod) bool { return !moving[p] && p.Reschedulable() })
		for i, g := range t.groups {
			value, has := n.domain(g.key)
			counted[i] = has && (g.included == nil || g.included(n))
			if counted[i] && g.host < 0 && !(leaves && (n.Deleting || n.Disrupted)) {
				g.domains[value] = true
			}
		}
		for _, pod := range n.Pods {
			if pod.Terminal || moving[pod] {
				continue
			}
			for _, g := range joins(pod) {
				if counted[g.place] && (g.leaving || !pod.Terminating()) {
					value, _ := n.domain(g.key)
					g.counts[value]++
					g.total++
				}
			}
		}
	}
}

// domain is the value the node has for a label, as far as it is settled.
func (n *Node) domain(key string) (string, bool) {
	if key == corev1.LabelHostname {
		return n.Key(), true
	}
	value, has := n.Labels[key]
	return value, has
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

// tallyOf counts, on one node, the pods of the groups over hostnames.
func (t *topology) tallyOf(n *Node) []int32 {
	if t.hosts == 0 {
		return nil
	}
	tally := make([]int32, t.hosts)
	for _, g := range t.groups {
		if g.host >= 0 {
			tally[g.host] = int32(g.counts[n.Key()])
		}
	}
	return tally
}
