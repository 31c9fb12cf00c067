package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
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
