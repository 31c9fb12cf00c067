package place

import (
	"fmt"

	"github.com/tenon-sh/tenon/plan/rules"
)

// domainRule is one of a pod group's rules about the domain of its next pod.
type domainRule struct {
	*rules.Group
	// spread is the rule if it is a spread rule, and domains are the domains over which it spreads. The emptiest of
	// them has least pods.
	spread  *rules.SpreadRule
	domains []string
	least   int
	// near says that it is a pod affinity rule, first that the next pod may be the first.
	near, first bool
}

// domainRulesOf returns a pod group's rules except spread over hostnames. domains returns the domains of a spread rule.
// The rules have to be updated before a pod is placed.
func domainRulesOf(r *rules.Rules, domains func(*rules.SpreadRule) []string) []domainRule {
	var all []domainRule
	for _, g := range r.Apart {
		all = append(all, domainRule{Group: g})
	}
	for i := range r.Spread {
		if s := &r.Spread[i]; s.Host < 0 {
			all = append(all, domainRule{Group: s.Group, spread: s, domains: domains(s)})
		}
	}
	for i := range r.Near {
		all = append(all, domainRule{Group: r.Near[i].Group, near: true})
	}
	return all
}

// updateRules updates a pod group's rules to the current counts.
func updateRules(all []domainRule, r *rules.Rules) {
	first := r.First()
	for i := range all {
		all[i].first = first
		if all[i].spread != nil {
			all[i].least = all[i].spread.Least(all[i].domains)
		}
	}
}

// permits reports whether the rule lets the next pod into a domain, or, without is, onto nodes that are in none.
func (r *domainRule) permits(domain string, is bool) bool {
	switch {
	case r.spread != nil:
		return is && r.Counts[domain]+r.spread.Self-r.least <= r.spread.MaxSkew
	case r.near:
		return is && (r.first || r.Counts[domain] > 0)
	}
	return !is || r.Counts[domain] == 0
}

// lets reports whether the rule permits a choice of domains for the next pod.
func (r *domainRule) lets(c *domainChoice) bool {
	domain, is := c.at[r.Key]
	return r.permits(domain, is)
}

// name returns the name of the rule, such as "pod affinity over topology.kubernetes.io/zone".
func (r *domainRule) name() string {
	switch {
	case r.spread != nil:
		return fmt.Sprintf("topology spread over %s (maxSkew %d)", r.Key, r.spread.MaxSkew)
	case r.near:
		return "pod affinity over " + r.Key
	case len(r.Selectors) == 0:
		return "the anti-affinity of other pods over " + r.Key
	}
	return "pod anti-affinity over " + r.Key
}

// alone says why nothing is left where this rule closes every domain; empty if there is nothing to add.
func (r *domainRule) alone() string {
	switch {
	case r.spread != nil && len(r.domains) < r.spread.MinDomains:
		return fmt.Sprintf("topology spread over %s: minDomains asks for %d domains and there are %d, so that each takes %d (maxSkew) at most",
			r.Key, r.spread.MinDomains, len(r.domains), r.spread.MaxSkew)
	case r.spread != nil || r.near:
		return ""
	case len(r.Selectors) == 0:
		return fmt.Sprintf("every domain of %s has a pod whose anti-affinity keeps it away", r.Key)
	}
	return r.name() + ": every domain has a pod it has to be apart from"
}
