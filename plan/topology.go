package plan

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Topology spread, pod affinity and pod anti-affinity are all about how many pods of some kind are in the domain of a
// node: the nodes that have the same value of a label. A group counts one kind of pods by the domains of one label.
// What an item asks of the groups are its rules.

// group counts pods by the domains of one label.
type group struct {
	// id says what the group counts, and where.
	id string
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

	// anchor is a label that every pod has which the group counts, by key and value; both empty where there is none such.
	anchor [2]string
	counts map[string]int
	total  int
	// levels are how many of the hosts that count have so many of the pods, where pods are spread over hosts; nil elsewhere.
	levels []int
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
	g.levelled(g.counts[domain], n)
	g.counts[domain] += n
	g.log.write(entry{group: g, domain: domain, n: n})
}

// levelled notes that a host has n pods more than it had.
func (g *group) levelled(had, n int) {
	if g.levels != nil {
		g.level(had, -1)
		g.level(had+n, 1)
	}
}

// level notes that n hosts more have so many pods.
func (g *group) level(pods, n int) {
	for len(g.levels) <= pods {
		g.levels = append(g.levels, 0)
	}
	g.levels[pods] += n
}

// floor is how many pods the emptiest host has, and how many hosts there are.
func (g *group) floor() (pods, hosts int) {
	pods = -1
	for level, n := range g.levels {
		if n > 0 && pods < 0 {
			pods = level
		}
		hosts += n
	}
	return max(0, pods), hosts
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
	// levelled are the groups of pods that are spread over hosts.
	levelled []*group
	// alone says that no host comes beside those there are, and leans that this has mattered.
	alone, leans bool
	byID         map[string]*group
	hosts        int
	// members are the groups that select pods which look alike. Only those are asked that are anchored at a label of theirs,
	// and the others.
	members  map[*Labels][]*group
	anchored map[[2]string][]*group
	log      *journal
}

func newTopology(namespaces map[string]map[string]string) *topology {
	return &topology{namespaces: namespaces, byID: map[string]*group{}, members: map[*Labels][]*group{}, anchored: map[[2]string][]*group{}, log: &journal{}}
}

// group finds or makes the group with this identity.
func (t *topology) group(id, key string, complete func(*group)) *group {
	id += "\x00" + key
	if g, known := t.byID[id]; known {
		return g
	}
	g := &group{id: id, place: len(t.groups), host: -1, key: key, counts: map[string]int{}, domains: map[string]bool{}, log: t.log}
	if key == corev1.LabelHostname {
		g.host = t.hosts
		t.hosts++
	}
	complete(g)
	if len(g.crowds) > 0 {
		g.anchor = anchorOf(g.crowds[0].selector)
		t.anchored[g.anchor] = append(t.anchored[g.anchor], g)
	}
	t.byID[id] = g
	t.groups = append(t.groups, g)
	return g
}

// keys are the labels that groups are about.
func (t *topology) keys() []string {
	var keys []string
	for _, g := range t.groups {
		if !slices.Contains(keys, g.key) {
			keys = append(keys, g.key)
		}
	}
	return keys
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
		ask := func(groups []*group) {
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
		slices.SortFunc(members, func(a, b *group) int { return cmp.Compare(a.place, b.place) })
		t.members[pod] = members
	}
	return members
}

// anchorOf is a label that every pod has which a selector selects.
func anchorOf(selector labels.Selector) [2]string {
	requirements, _ := selector.Requirements()
	for i := range requirements {
		if value, exact := selector.RequiresExactMatch(requirements[i].Key()); exact && value != "" {
			return [2]string{requirements[i].Key(), value}
		}
	}
	return [2]string{}
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
	s := newSurveyor(t)
	for _, n := range snapshot.Nodes {
		s.visit(n, moving)
		for _, pod := range n.Pods {
			if pod.Terminal || moving[pod] {
				continue
			}
			for _, g := range joins(pod) {
				if value, counts := s.domainOf(g); counts && (g.leaving || !pod.Terminating()) {
					g.counts[value]++
					g.total++
				}
			}
		}
		s.level(n)
	}
	s.done()
}

// surveyor goes from node to node. What groups over one label have in common it looks at once: most of them count all nodes.
type surveyor struct {
	t *topology
	// keys are the labels that groups are about, of which key is that of each group; choosy are those that do not count all
	// nodes.
	keys   []string
	key    []int
	choosy []*group
	// The values of the keys on the node that is visited, and whether it has them; counted says so of choosy groups.
	values  []string
	has     []bool
	counted []bool
	// domains are those of the keys that any node makes.
	domains []map[string]bool
}

func newSurveyor(t *topology) *surveyor {
	for _, g := range t.levelled {
		g.levels = g.levels[:0]
	}
	s := &surveyor{t: t, key: make([]int, len(t.groups)), counted: make([]bool, len(t.groups))}
	for i, g := range t.groups {
		at := slices.Index(s.keys, g.key)
		if at < 0 {
			at = len(s.keys)
			s.keys, s.domains = append(s.keys, g.key), append(s.domains, map[string]bool{})
		}
		s.key[i] = at
		if g.included != nil {
			s.choosy = append(s.choosy, g)
		}
	}
	s.values, s.has = make([]string, len(s.keys)), make([]bool, len(s.keys))
	return s
}

// visit looks at the next node. One that goes away stays for as long as pods on it must not be moved.
func (s *surveyor) visit(n *Node, moving map[*Pod]bool) {
	leaves := (n.Deleting || n.Disrupted) && !slices.ContainsFunc(n.Pods, func(p *Pod) bool { return !moving[p] && p.Reschedulable() })
	for i, key := range s.keys {
		s.values[i], s.has[i] = n.domain(key)
		if s.has[i] && key != corev1.LabelHostname && !leaves {
			s.domains[i][s.values[i]] = true
		}
	}
	for _, g := range s.choosy {
		s.counted[g.place] = s.has[s.key[g.place]] && g.included(n)
		if s.counted[g.place] && g.host < 0 && !leaves {
			g.domains[s.values[s.key[g.place]]] = true
		}
	}
}

// level notes how many pods of the groups that are spread over hosts are on a node. One that goes is a host until it is gone.
func (s *surveyor) level(n *Node) {
	for _, g := range s.t.levelled {
		if host, counts := s.domainOf(g); counts {
			g.level(g.counts[host], 1)
		}
	}
}

// domainOf is the domain of a group that the node is in, and whether the group counts its pods.
func (s *surveyor) domainOf(g *group) (string, bool) {
	at := s.key[g.place]
	if g.included != nil {
		return s.values[at], s.counted[g.place]
	}
	return s.values[at], s.has[at]
}

// done tells the groups that count all nodes their domains.
func (s *surveyor) done() {
	for i, g := range s.t.groups {
		if g.included == nil && g.host < 0 {
			g.domains = maps.Clone(s.domains[s.key[i]])
		}
	}
}

// domain is the value the node has for a label, as far as it is settled.
func (n *Node) domain(key string) (string, bool) {
	if key == corev1.LabelHostname {
		return n.Key(), true
	}
	return n.label(key)
}

// label is the value of a label that the node has or is about to have: while it is not initialized, what it is known by
// now stands for the name of old.
func (n *Node) label(key string) (string, bool) {
	value, has := n.Labels[key]
	if !has && !n.Initialized {
		value, has = n.Labels[normalizedKey(key)]
	}
	return value, has
}

// tallies counts, on each of some nodes, the pods of the groups over hostnames.
func (t *topology) tallies(slots []*slot) {
	if t.hosts == 0 {
		return
	}
	at, all := make(map[string]*slot, len(slots)), make([]int32, len(slots)*t.hosts)
	for i, s := range slots {
		s.tally = all[i*t.hosts : (i+1)*t.hosts : (i+1)*t.hosts]
		s.topology = t
		at[s.node.Key()] = s
	}
	for _, g := range t.groups {
		if g.host < 0 {
			continue
		}
		for host, n := range g.counts {
			if s := at[host]; s != nil {
				s.tally[g.host] = int32(n)
			}
		}
	}
}
