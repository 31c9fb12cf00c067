package place

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tenon-sh/tenon/plan/rules"
)

// acrossDomains places the pod group's pods one by one, each in the domain that suits it best at that moment.
func (d *Distribution) acrossDomains(it *PodGroup, keys []string) {
	choices := d.domainChoices(it, keys)
	eligible := d.eligible(it, keys, choices)
	for len(it.Pods) > 0 {
		c := d.best(it, keys, choices, eligible)
		if c == nil {
			break
		}
		switch {
		case d.intoNode(it, c):
		case len(c.variants) > 0:
			c.fresh = append(c.fresh, it.take(1)...)
			d.count(it, keys, c, 1)
		default:
			c.closed = true
		}
	}
	for _, c := range choices {
		if len(c.fresh) > 0 {
			l := newChunk(it, c.variants, d.Market.UnionOf(c.variants), c.fresh)
			l.at = map[string]string{}
			for i, key := range keys {
				l.at[key] = c.values[i]
			}
			d.Chunks = append(d.Chunks, l)
		}
	}
	if len(it.Pods) > 0 {
		it.Unmet = d.unmet(it, keys, choices, eligible)
	}
}

// intoNode puts the pod group's next pod on a node in the domain choice that has room.
func (d *Distribution) intoNode(it *PodGroup, c *domainChoice) bool {
	if c.advance(it) {
		d.Onto(c.at(c.next), it, 1)
		return true
	}
	return false
}

// count notes pods that will be on new nodes in a domain choice.
func (d *Distribution) count(it *PodGroup, keys []string, c *domainChoice, n int) {
	for _, g := range it.Rules.Joins {
		g.Add(n)
		if i := slices.Index(keys, g.Key); i >= 0 && c.values[i] != absent {
			g.AddAt(c.values[i], n)
		}
	}
}

// eligible are, for each rule of spread that is not about hostnames, the domains among which the pod group's pods are
// spread: those that nodes make, and those in which nodes can be bought.
func (d *Distribution) eligible(it *PodGroup, keys []string, choices []*domainChoice) [][]string {
	result := make([][]string, len(it.Rules.Spread))
	for r := range it.Rules.Spread {
		rule := &it.Rules.Spread[r]
		at := slices.Index(keys, rule.Key)
		if at < 0 {
			continue
		}
		domains := maps.Clone(rule.Domains)
		for domain, n := range rule.Counts {
			domains[domain] = domains[domain] || n > 0
		}
		closed := map[string]bool{}
		for _, at := range it.barred {
			closed[at[rule.Key]] = true
		}
		for _, c := range choices {
			if c.size() > 0 || len(c.variants) > 0 {
				domains[c.values[at]] = true
			}
		}
		for _, domain := range d.reachOf(it, r) {
			domains[domain] = domains[domain] || !closed[domain]
		}
		for _, s := range d.open {
			d.mayBecome(s, rule.Group, domains)
		}
		maps.DeleteFunc(domains, func(_ string, possible bool) bool { return !possible })
		result[r] = slices.Sorted(maps.Keys(domains))
	}
	return result
}

// reachOf are the domains of one of the pod group's rules of spread in which machines for it are sold.
func (d *Distribution) reachOf(it *PodGroup, rule int) []string {
	key := it.Rules.Spread[rule].Key
	if d.Market.OpenAnywhere(key) {
		return domainsOf(d.Market, d.bare(it), key)
	}
	if it.known.reach == nil {
		it.known.reach = make([][]string, len(it.Rules.Spread))
	}
	if it.known.reach[rule] == nil {
		it.known.reach[rule] = domainsOf(d.Market, d.bare(it), key)
	}
	return it.known.reach[rule]
}

// mayBecome notes the domains that a claim without machine may come to be in.
func (d *Distribution) mayBecome(s *ExistingNode, g *rules.Group, domains map[string]bool) {
	if s.options == nil || !d.Market.Zonal(g.Key) || g.Included != nil && !g.Included(s.Node) {
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

// best is the domain choice that the pod group's next pod goes to: where the fewest are, then where a node has room, then
// where machines are cheapest. There is none if the rules allow none.
func (d *Distribution) best(it *PodGroup, keys []string, choices []*domainChoice, eligible [][]string) *domainChoice {
	r := &it.Rules
	least := make([]int, len(r.Spread))
	for i := range r.Spread {
		if eligible[i] != nil {
			least[i] = r.Spread[i].Least(eligible[i])
		}
	}
	first := r.First()
	var best *domainChoice
	fewest, roomy := 0, false
	for _, c := range choices {
		if c.closed || !permits(r, keys, c, least, eligible, first) {
			continue
		}
		pods := 0
		for i := range r.Spread {
			if eligible[i] != nil && r.Spread[i].Self == 1 {
				pods += r.Spread[i].Counts[c.values[slices.Index(keys, r.Spread[i].Key)]]
			}
		}
		room := c.advance(it)
		if best == nil || pods < fewest || pods == fewest && (room && !roomy || room == roomy && c.price < best.price*0.999) {
			best, fewest, roomy = c, pods, room
		}
	}
	return best
}

// permits says whether the rules let one more pod into a domain choice.
func permits(r *rules.Rules, keys []string, c *domainChoice, least []int, eligible [][]string, first bool) bool {
	value := func(key string) (string, bool) {
		i := slices.Index(keys, key)
		if i < 0 {
			return "", false
		}
		return c.values[i], true
	}
	for i := range r.Spread {
		s := &r.Spread[i]
		if at, ok := value(s.Key); ok && s.Counts[at]+s.Self-least[i] > s.MaxSkew {
			return false
		}
	}
	for i := range r.Near {
		if at, ok := value(r.Near[i].Key); ok && !first && r.Near[i].Counts[at] == 0 {
			return false
		}
	}
	for _, g := range r.Apart {
		if at, ok := value(g.Key); ok && at != absent && g.Counts[at] > 0 {
			return false
		}
	}
	return true
}

// unmet says which rule keeps the pod group's next pod from every domain.
func (d *Distribution) unmet(it *PodGroup, keys []string, choices []*domainChoice, eligible [][]string) string {
	if len(choices) == 0 {
		return ""
	}
	r := &it.Rules
	for i := range r.Near {
		if n := &r.Near[i]; !r.First() && n.Total == 0 {
			return "no pod is there that it has to be near by its pod affinity over " + n.Key
		}
	}
	binding := binding(r, keys, choices, eligible)
	for i := range binding {
		if binding[i].closes == len(choices) && binding[i].alone != "" {
			return binding[i].alone
		}
	}
	for i := range r.Spread {
		s := &r.Spread[i]
		if eligible[i] == nil {
			continue
		}
		at, least := slices.Index(keys, s.Key), s.Least(eligible[i])
		for _, domain := range eligible[i] {
			open := slices.ContainsFunc(choices, func(c *domainChoice) bool { return c.values[at] == domain && !c.closed })
			if s.Counts[domain] == least && !open {
				return fmt.Sprintf("topology spread over %s (maxSkew %d): %s, where the fewest are, takes no more", s.Key, s.MaxSkew, domain)
			}
		}
	}
	return unmetTogether(binding)
}
