package place

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
)

// realm is where a pod group can go under its rules about labels other than the hostname.
type realm struct {
	it      *PodGroup
	choices []*domainChoice
	rules   []domainRule
}

func realmOf(d *Distribution, it *PodGroup) *realm {
	r := &realm{it: it, choices: d.domainChoices(it)}
	r.rules = domainRulesOf(&it.Rules, func(s *rules.SpreadRule) []string { return d.eligible(it, s) })
	r.rules = slices.DeleteFunc(r.rules, func(rule domainRule) bool { return rule.Key == corev1.LabelHostname })
	return r
}

// acrossDomains places the pod group's pods where they fit best. Where its rules are about domains it places them one
// by one, because the best domain for a pod depends on where the last one went.
func (d *Distribution) acrossDomains(it *PodGroup) {
	r := realmOf(d, it)
	for len(it.Pods) > 0 {
		c, n := r.best(r.choices), 1
		if c == nil {
			break
		}
		if len(r.rules) == 0 {
			n = len(it.Pods)
		}
		switch {
		case c.advance(it):
			s := c.row[c.next]
			d.Onto(s, it, s.Room(it, n))
		case len(c.variants) > 0:
			c.fresh = append(c.fresh, it.take(n)...)
			countAt(it.Rules.Joins, c.at, n)
		default:
			c.closed = true
		}
	}
	for _, c := range r.choices {
		if len(c.fresh) > 0 {
			d.Chunks = append(d.Chunks, &DemandChunk{
				Request: it.Request, ports: it.Class.HostPorts, variants: c.variants, Allowed: d.Market.UnionOf(c.variants),
				Content: []part{{it, it.shape, c.fresh}}, at: c.at,
			})
		}
	}
	if len(it.Pods) > 0 {
		it.Unmet = r.unmet()
	}
}

// countAt adds n pods on new nodes in some domains to groups.
func countAt(joins []*rules.Group, at map[string]string, n int) {
	for _, g := range joins {
		g.Add(n)
		if domain, is := at[g.Key]; is {
			g.AddAt(domain, n)
		}
	}
}

// eligible returns the domains over which a rule spreads the pod group's pods: those that nodes make, and those in
// which nodes can be bought.
func (d *Distribution) eligible(it *PodGroup, rule *rules.SpreadRule) []string {
	domains := maps.Clone(rule.Domains)
	for domain, n := range rule.Counts {
		if n > 0 {
			domains[domain] = true
		}
	}
	for _, domain := range d.reachOf(it, rule.Key) {
		if !slices.ContainsFunc(it.barred, func(at map[string]string) bool { return at[rule.Key] == domain }) {
			domains[domain] = true
		}
	}
	for _, s := range d.open {
		d.mayBecome(s, rule.Group, domains)
	}
	return slices.Sorted(maps.Keys(domains))
}

// reachOf returns the domains of a label in which machines for the pod group are sold, ignoring its preferences: the
// kube-scheduler ignores them when it counts domains.
func (d *Distribution) reachOf(it *PodGroup, key string) []string {
	bare := it.bare(d.Market)
	reach, known := bare.reach[key]
	if !known || d.Market.OpenAnywhere(key) {
		reach = domainsOf(d.Market, bare, key)
		if bare.reach == nil {
			bare.reach = map[string][]string{}
		}
		bare.reach[key] = reach
	}
	return reach
}

// mayBecome adds the domains that a claim without a machine may end up in.
func (d *Distribution) mayBecome(s *ExistingNode, g *rules.Group, domains map[string]bool) {
	for _, value := range d.Market.ZoneValues(s.zones, g.Key) {
		if value != "" && g.Includes(s.Node) {
			domains[value] = true
		}
	}
}

// best returns the domain choice that the pod group's next pod goes to: the one with the fewest pods, then one where a
// node has room, then the one with the cheapest machines. It returns nil if the rules allow none.
func (r *realm) best(choices []*domainChoice) *domainChoice {
	updateRules(r.rules, &r.it.Rules)
	var best *domainChoice
	fewest, roomy := 0, false
next:
	for _, c := range choices {
		if c.closed {
			continue
		}
		pods := 0
		for i := range r.rules {
			rule := &r.rules[i]
			if !rule.lets(c) {
				continue next
			}
			if rule.spread != nil && rule.spread.Self == 1 {
				pods += rule.Counts[c.at[rule.Key]]
			}
		}
		room := c.advance(r.it)
		if best == nil || pods < fewest || pods == fewest && (room && !roomy || room == roomy && c.price < best.price*0.999) {
			best, fewest, roomy = c, pods, room
		}
	}
	return best
}

// unmet says which rule keeps the pod group's next pod out of every domain.
func (r *realm) unmet() string {
	for _, n := range r.it.Rules.Near {
		if !r.it.Rules.First() && n.Total == 0 {
			return "no pod is there that it has to be near by its pod affinity over " + n.Key
		}
	}
	if len(r.choices) == 0 {
		return ""
	}
	updateRules(r.rules, &r.it.Rules)
	var closing []string
	for i := range r.rules {
		rule := &r.rules[i]
		if alone := rule.alone(); alone != "" && !slices.ContainsFunc(r.choices, rule.lets) {
			return alone
		}
		closes := func(c *domainChoice) bool { return !rule.lets(c) }
		if name := rule.name(); slices.ContainsFunc(r.choices, closes) && !slices.Contains(closing, name) {
			closing = append(closing, name)
		}
	}
	for i := range r.rules {
		s := &r.rules[i]
		for _, domain := range s.domains {
			takes := func(c *domainChoice) bool { return c.at[s.Key] == domain && !c.closed }
			if s.Counts[domain] == s.least && !slices.ContainsFunc(r.choices, takes) {
				return fmt.Sprintf("%s: %s, where the fewest are, takes no more", s.name(), domain)
			}
		}
	}
	switch len(closing) {
	case 0:
		return ""
	case 1:
		return closing[0] + ": the domains that it leaves take no more"
	}
	return "no domain meets " + model.List(closing, "and") + " at once"
}
