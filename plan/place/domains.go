package place

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan/rules"
)

// realm is where a pod group can go by its rules about labels other than the hostname.
type realm struct {
	it      *PodGroup
	keys    []string
	choices []*domainChoice
	// eligible are, for each rule of spread that is not about hostnames, the domains among which the pods are spread: those
	// that nodes make, and those in which nodes can be bought.
	eligible [][]string
}

func realmOf(d *Distribution, it *PodGroup) *realm {
	keys := it.keys()
	r := &realm{it: it, keys: keys, choices: d.domainChoices(it, keys), eligible: make([][]string, len(it.Rules.Spread))}
	for i := range it.Rules.Spread {
		if at := slices.Index(keys, it.Rules.Spread[i].Key); at >= 0 {
			r.eligible[i] = d.eligible(it, i, at, r.choices)
		}
	}
	return r
}

// acrossDomains places the pod group's pods one by one, each in the domain that suits it best at that moment.
func (d *Distribution) acrossDomains(it *PodGroup) {
	r := realmOf(d, it)
	for len(it.Pods) > 0 {
		c := r.best(r.choices)
		if c == nil {
			break
		}
		switch {
		case c.advance(it):
			d.Onto(c.at(c.next), it, 1)
		case len(c.variants) > 0:
			c.fresh = append(c.fresh, it.take(1)...)
			r.count(c, 1)
		default:
			c.closed = true
		}
	}
	for _, c := range r.choices {
		if len(c.fresh) > 0 {
			l := newChunk(it, c.variants, d.Market.UnionOf(c.variants), c.fresh)
			l.at = map[string]string{}
			for i, key := range r.keys {
				l.at[key] = c.values[i]
			}
			d.Chunks = append(d.Chunks, l)
		}
	}
	if len(it.Pods) > 0 {
		it.Unmet = r.unmet()
	}
}

// count notes pods that will be on new nodes in a domain choice.
func (r *realm) count(c *domainChoice, n int) {
	for _, g := range r.it.Rules.Joins {
		g.Add(n)
		if i := slices.Index(r.keys, g.Key); i >= 0 && c.values[i] != absent {
			g.AddAt(c.values[i], n)
		}
	}
}

// eligible are the domains among which a rule of spread, the domains of which are at this place of the choices, spreads
// the pod group's pods.
func (d *Distribution) eligible(it *PodGroup, spread, at int, choices []*domainChoice) []string {
	rule := &it.Rules.Spread[spread]
	domains := maps.Clone(rule.Domains)
	for domain, n := range rule.Counts {
		domains[domain] = domains[domain] || n > 0
	}
	for _, c := range choices {
		if c.size() > 0 || len(c.variants) > 0 {
			domains[c.values[at]] = true
		}
	}
	for _, domain := range d.reachOf(it, spread) {
		isClosed := func(at map[string]string) bool { return at[rule.Key] == domain }
		domains[domain] = domains[domain] || !slices.ContainsFunc(it.barred, isClosed)
	}
	for _, s := range d.open {
		d.mayBecome(s, rule.Group, domains)
	}
	maps.DeleteFunc(domains, func(_ string, possible bool) bool { return !possible })
	return slices.Sorted(maps.Keys(domains))
}

// reachOf are the domains of one of the pod group's rules of spread in which machines for it are sold.
func (d *Distribution) reachOf(it *PodGroup, spread int) []string {
	key := it.Rules.Spread[spread].Key
	reach, known := it.known.reach[key]
	if !known || d.Market.OpenAnywhere(key) {
		reach = domainsOf(d.Market, d.bare(it), key)
		if it.known.reach == nil {
			it.known.reach = map[string][]string{}
		}
		it.known.reach[key] = reach
	}
	return reach
}

// mayBecome notes the domains that a claim without machine may come to be in.
func (d *Distribution) mayBecome(s *ExistingNode, g *rules.Group, domains map[string]bool) {
	if !d.Market.Zonal(g.Key) || g.Included != nil && !g.Included(s.Node) {
		return
	}
	for z := range d.Market.Zones {
		if value := d.Market.ZoneLabels[z][g.Key]; s.zones&(1<<z) != 0 && value != "" {
			domains[value] = true
		}
	}
}

// bare is the pod group without the preferences for nodes that it still has: the kube-scheduler does not mind these when
// it counts domains.
func (d *Distribution) bare(it *PodGroup) *PodGroup {
	if !slices.ContainsFunc(it.Preferences[it.Step:], func(p rules.Preference) bool { return p.Node != nil || p.Wary }) {
		return it
	}
	bare := *it
	bare.Step = len(it.Preferences)
	bare.ShapeUp()
	Weigh(d.Market, &bare)
	return &bare
}

// rules are those over the realm's labels, as they stand now, and the places of their labels.
func (r *realm) rules() (all []domainRule, at []int) {
	all = domainRulesOf(&r.it.Rules, func(spread int) []string { return r.eligible[spread] })
	all = slices.DeleteFunc(all, func(rule domainRule) bool { return rule.Key == corev1.LabelHostname })
	for i := range all {
		at = append(at, slices.Index(r.keys, all[i].Key))
	}
	return all, at
}

// best is that of some domain choices which the pod group's next pod goes to: where the fewest are, then where a node has
// room, then where machines are cheapest. There is none if the rules allow none.
func (r *realm) best(choices []*domainChoice) *domainChoice {
	all, at := r.rules()
	var best *domainChoice
	fewest, roomy := 0, false
next:
	for _, c := range choices {
		if c.closed {
			continue
		}
		pods := 0
		for i := range all {
			rule, domain := &all[i], c.values[at[i]]
			if !rule.permits(domain) {
				continue next
			}
			if rule.spread != nil && rule.spread.Self == 1 {
				pods += rule.Counts[domain]
			}
		}
		room := c.advance(r.it)
		if best == nil || pods < fewest || pods == fewest && (room && !roomy || room == roomy && c.price < best.price*0.999) {
			best, fewest, roomy = c, pods, room
		}
	}
	return best
}

// unmet says which rule keeps the pod group's next pod from every domain.
func (r *realm) unmet() string {
	if len(r.choices) == 0 {
		return ""
	}
	for _, n := range r.it.Rules.Near {
		if !r.it.Rules.First() && n.Total == 0 {
			return "no pod is there that it has to be near by its pod affinity over " + n.Key
		}
	}
	all, at := r.rules()
	var closing []domainRule
	for i := range all {
		isOpen := func(c *domainChoice) bool { return all[i].permits(c.values[at[i]]) }
		if alone := all[i].alone(); alone != "" && !slices.ContainsFunc(r.choices, isOpen) {
			return alone
		}
		if slices.ContainsFunc(r.choices, func(c *domainChoice) bool { return !isOpen(c) }) {
			closing = append(closing, all[i])
		}
	}
	for i := range r.it.Rules.Spread {
		s := &r.it.Rules.Spread[i]
		for _, domain := range r.eligible[i] {
			isOpen := func(c *domainChoice) bool { return c.values[slices.Index(r.keys, s.Key)] == domain && !c.closed }
			if s.Counts[domain] == s.Least(r.eligible[i]) && !slices.ContainsFunc(r.choices, isOpen) {
				return fmt.Sprintf("topology spread over %s (maxSkew %d): %s, where the fewest are, takes no more", s.Key, s.MaxSkew, domain)
			}
		}
	}
	return unmetTogether(closing)
}
