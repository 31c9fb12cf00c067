package rules

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tenon-sh/tenon/plan/model"
)

// journal records how to undo changes to groups and existing nodes, at a cost in proportion to the changes. It records only
// during a trial of a simulation (disrupt/simulation.go).
type journal struct {
	Keeps   bool
	Entries []func()
}

// Write records how to undo a change, once all later changes have been undone.
func (j *journal) Write(undo func()) {
	if j.Keeps {
		j.Entries = append(j.Entries, undo)
	}
}

// Undo undoes and drops the entries from index after on.
func (j *journal) Undo(after int) {
	for _, undo := range slices.Backward(j.Entries[after:]) {
		undo()
	}
	clear(j.Entries[after:])
	j.Entries = j.Entries[:after]
}

// SelectionKey is equal for classes that ask the same of a node's labels.
func SelectionKey(class *model.Class) string {
	affinity := &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: class.NodeAffinity}}
	return string(model.AppendMessage(nil, &corev1.PodSpec{NodeSelector: class.NodeSelector, Affinity: affinity}))
}

// TolerationKey is equal for equal tolerations.
func TolerationKey(tolerations []corev1.Toleration) string {
	return string(model.AppendTolerations(nil, tolerations))
}

// apartFrom compiles a term of anti-affinity: others is the group of the pods that it selects, owners the group of the pods
// that have it.
func (t *Topology) apartFrom(pod *model.Labels, term *corev1.PodAffinityTerm) (others, owners *Group) {
	s, text := podSelectorOf(pod, term)
	others = t.group("apart\x00"+text, term.TopologyKey, func(g *Group) {
		g.Selectors, g.Leaving = []podSelector{s}, true
	})
	if others.owners == nil {
		others.owners = t.group("owners\x00"+text, term.TopologyKey, func(g *Group) { g.Leaving = true })
	}
	return others, others.owners
}

// podSelectorOf compiles which pods a term of pod affinity selects, and a text that identifies the selection.
func podSelectorOf(pod *model.Labels, term *corev1.PodAffinityTerm) (podSelector, string) {
	selector, text := selectorFor(term.LabelSelector, pod.Set, term.MatchLabelKeys, term.MismatchLabelKeys)
	s := podSelector{namespaces: slices.Sorted(slices.Values(term.Namespaces)), selector: selector}
	if term.NamespaceSelector != nil {
		s.spaces = model.Selector(term.NamespaceSelector)
		text += "\x00" + s.spaces.String()
	}
	if len(s.namespaces) == 0 && s.spaces == nil {
		s.namespaces = []string{pod.Namespace}
	}
	return s, text + "\x00" + strings.Join(s.namespaces, ",")
}

// selectorFor compiles a label selector with the values that the pod itself has for some keys.
func selectorFor(selector *metav1.LabelSelector, own map[string]string, match, mismatch []string) (labels.Selector, string) {
	if selector == nil {
		return labels.Nothing(), "-"
	}
	selector = selector.DeepCopy()
	add := func(keys []string, operator metav1.LabelSelectorOperator) {
		for _, key := range keys {
			if value, present := own[key]; present {
				selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: []string{value}})
			}
		}
	}
	add(match, metav1.LabelSelectorOpIn)
	add(mismatch, metav1.LabelSelectorOpNotIn)
	compiled := model.Selector(selector)
	return compiled, compiled.String()
}

// Topology spread, pod affinity and pod anti-affinity are all about how many pods of some kind are in the domain of a
// node: the nodes that have the same value of a label. A group counts one kind of pods by the domains of one label.
// What a pod group asks of the groups are its rules.

// Group counts pods by the domains of one label.
type Group struct {
	// Place is the group's index among all groups, Host its index among those whose label is the hostname, or -1.
	Place, Host int
	// Key is the label.
	Key string
	// Selectors all have to match a pod for the group to count it. A group without selectors counts its owners: the pods
	// that have a certain term of anti-affinity.
	Selectors []podSelector
	// Included says which nodes count; nil means all of them.
	Included func(*model.Node) bool
	// Asks are the labels that included looks at.
	Asks []string
	// Leaving says that pods which are being deleted count.
	Leaving bool
	// owners counts the pods that have the term of anti-affinity this group was made for.
	owners *Group

	Counts map[string]int
	Total  int
	// levels are, by number of pods, how many of the hosts that count have that many, where pods are spread over hosts; nil
	// elsewhere.
	levels []int
	// Domains are those of the nodes that count. Hostnames are not listed: there can always be another.
	Domains map[string]bool
	journal *journal
}

// Includes says whether a node counts.
func (g *Group) Includes(n *model.Node) bool { return g.Included == nil || g.Included(n) }

// Add counts n more pods, whose domain may not be known yet.
func (g *Group) Add(n int) {
	g.Total += n
	g.journal.Write(func() { g.Total -= n })
}

// AddAt counts n more pods in a domain.
func (g *Group) AddAt(domain string, n int) {
	g.addAt(domain, n)
	g.journal.Write(func() {
		if g.addAt(domain, -n); g.Counts[domain] == 0 {
			delete(g.Counts, domain)
		}
	})
}

func (g *Group) addAt(domain string, n int) {
	if g.levels != nil {
		g.level(g.Counts[domain], -1)
		g.level(g.Counts[domain]+n, 1)
	}
	g.Counts[domain] += n
}

// level records n more hosts with this many pods.
func (g *Group) level(pods, n int) {
	for len(g.levels) <= pods {
		g.levels = append(g.levels, 0)
	}
	g.levels[pods] += n
}

// podSelector selects the pods of a term.
type podSelector struct {
	namespaces []string
	// spaces selects further namespaces by their labels; nil selects none.
	spaces   labels.Selector
	selector labels.Selector
}

func (s *podSelector) matches(pod *model.Labels, namespaces map[string]map[string]string) bool {
	if !slices.Contains(s.namespaces, pod.Namespace) &&
		(s.spaces == nil || !s.spaces.Matches(labels.Set(namespaces[pod.Namespace]))) {
		return false
	}
	return s.selector.Matches(labels.Set(pod.Set))
}

// Topology holds all groups of one Pack.
type Topology struct {
	namespaces map[string]map[string]string
	Groups     []*Group
	// Keys are the labels that groups are about.
	Keys []string
	// Alone says that no host is added to the existing ones, and Leans that this made a difference.
	Alone, Leans bool
	byID         map[string]*Group
	Hosts        int
	// members caches the groups that select pods with the same labels. Only groups anchored at one of the pod's labels, by
	// key and value, and groups without an anchor have to be checked.
	members  map[*model.Labels][]*Group
	anchored map[[2]string][]*Group
	Journal  *journal
}

// NewTopology returns a topology without groups.
func NewTopology(namespaces map[string]map[string]string) *Topology {
	return &Topology{
		namespaces: namespaces, byID: map[string]*Group{}, members: map[*model.Labels][]*Group{}, anchored: map[[2]string][]*Group{}, Journal: &journal{},
	}
}

// group finds or makes the group with this identity.
func (t *Topology) group(id, key string, complete func(*Group)) *Group {
	id += "\x00" + key
	if g, known := t.byID[id]; known {
		return g
	}
	if !slices.Contains(t.Keys, key) {
		t.Keys = append(t.Keys, key)
	}
	g := &Group{Place: len(t.Groups), Host: -1, Key: key, Counts: map[string]int{}, Domains: map[string]bool{}, journal: t.Journal}
	if key == corev1.LabelHostname {
		g.Host = t.Hosts
		t.Hosts++
	}
	complete(g)
	if len(g.Selectors) > 0 {
		anchor := model.Anchor(g.Selectors[0].selector)
		t.anchored[anchor] = append(t.anchored[anchor], g)
	}
	t.byID[id] = g
	t.Groups = append(t.Groups, g)
	return g
}

// selects says whether the group counts pods that look like this.
func (g *Group) selects(pod *model.Labels, namespaces map[string]map[string]string) bool {
	misses := func(s podSelector) bool { return !s.matches(pod, namespaces) }
	return len(g.Selectors) > 0 && !slices.ContainsFunc(g.Selectors, misses)
}

// membersOf returns the groups that count pods with these labels, whatever else the pods are.
func (t *Topology) membersOf(pod *model.Labels) []*Group {
	members, known := t.members[pod]
	if !known {
		ask := func(groups []*Group) {
			for _, g := range groups {
				if g.selects(pod, t.namespaces) {
					members = append(members, g)
				}
			}
		}
		ask(t.anchored[[2]string{}])
		for key, value := range pod.Set {
			ask(t.anchored[[2]string{key, value}])
		}
		slices.SortFunc(members, func(a, b *Group) int { return cmp.Compare(a.Place, b.Place) })
		t.members[pod] = members
	}
	return members
}

// groupKey is everything about a pod that matters to groups.
type groupKey struct {
	class  *model.Class
	labels *model.Labels
}

// Avoid creates the groups for the terms of anti-affinity of pods that already have a node.
func (t *Topology) Avoid(snapshot *model.Snapshot) {
	seen := map[groupKey]bool{}
	for _, n := range snapshot.Nodes {
		for _, pod := range n.Pods {
			if key := (groupKey{pod.Class, pod.Labels}); pod.Class.AntiAffinity != nil && !seen[key] {
				seen[key] = true
				t.ownersOf(pod.Class, pod.Labels)
			}
		}
	}
}

// ownersOf returns, for a pod's own terms of anti-affinity, the groups that count the pod because it has them, and the
// groups of the pods it must not meet.
func (t *Topology) ownersOf(class *model.Class, pod *model.Labels) (owned, others []*Group) {
	terms := model.AntiTerms(class)
	for i := range terms {
		target, owner := t.apartFrom(pod, &terms[i])
		owned, others = append(owned, owner), append(others, target)
	}
	return owned, others
}

// Survey counts the bound pods, except those that will move, and finds the existing domains.
func (t *Topology) Survey(snapshot *model.Snapshot, waiting []*model.Pod) {
	moving := map[*model.Pod]bool{}
	for _, pod := range waiting {
		if pod.Node != "" {
			moving[pod] = true
		}
	}
	t.findDomains(snapshot.Nodes, moving)
	joins := map[groupKey][]*Group{}
	for _, n := range snapshot.Nodes {
		for _, pod := range n.Pods {
			if pod.Terminal || moving[pod] {
				continue
			}
			groups, known := joins[groupKey{pod.Class, pod.Labels}]
			if !known {
				owned, _ := t.ownersOf(pod.Class, pod.Labels)
				groups = slices.Concat(t.membersOf(pod.Labels), owned)
				joins[groupKey{pod.Class, pod.Labels}] = groups
			}
			for _, g := range groups {
				if value, has := Domain(n, g.Key); has && (g.Leaving || !pod.Terminating()) && g.Includes(n) {
					g.Counts[value]++
					g.Total++
				}
			}
		}
	}
	for _, g := range t.Groups {
		if g.levels == nil {
			continue
		}
		g.levels = g.levels[:0]
		for _, n := range snapshot.Nodes {
			if g.Includes(n) {
				g.level(g.Counts[n.Key()], 1) // a leaving node is a host until it is gone
			}
		}
	}
}

// findDomains finds the domains of nodes. A leaving node counts as long as it has pods that do not move with the others.
func (t *Topology) findDomains(nodes []*model.Node, moving map[*model.Pod]bool) {
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(n *model.Node) bool {
		return (n.Deleting || n.Disrupted) && !slices.ContainsFunc(n.Pods, func(p *model.Pod) bool { return !moving[p] && p.Reschedulable() })
	})
	find := func(g *Group) map[string]bool {
		domains := map[string]bool{}
		for _, n := range nodes {
			if value, has := Domain(n, g.Key); has && g.Includes(n) {
				domains[value] = true
			}
		}
		return domains
	}
	// Most groups over one label count all nodes.
	all := map[string]map[string]bool{}
	for _, g := range t.Groups {
		if g.Host >= 0 {
			continue
		}
		if g.Included != nil {
			g.Domains = find(g)
			continue
		}
		if all[g.Key] == nil {
			all[g.Key] = find(g)
		}
		g.Domains = maps.Clone(all[g.Key])
	}
}

// Domain is the value the node has for a label, as far as it is settled.
func Domain(n *model.Node, key string) (string, bool) {
	if key == corev1.LabelHostname {
		return n.Key(), true
	}
	return Label(n, key)
}

// Label returns the value of a label that the node has or is about to have: while it is not initialized, the current key of
// a label stands for the deprecated one.
func Label(n *model.Node, key string) (string, bool) {
	value, has := n.Labels[key]
	if !has && !n.Initialized {
		value, has = n.Labels[model.NormalizedKey(key)]
	}
	return value, has
}
