package plan

import (
	"fmt"
	"slices"
)

// bindingRule is one of an item's rules over domains, and how many of the choices it closes to the next pod.
type bindingRule struct {
	// name is the rule's, such as "pod affinity over topology.kubernetes.io/zone".
	name   string
	closes int
	// alone says why nothing is left where the rule closes all choices, and else why what it leaves will not do; empty where
	// there is nothing more to say.
	alone, rest string
}

// binding are the item's rules over domains, with what each of them closes, whatever room there is.
func (r *rules) binding(keys []string, cells []*cell, eligible [][]string) []bindingRule {
	var binding []bindingRule
	add := func(rule bindingRule, key string, closes func(at string) bool) {
		i := slices.Index(keys, key)
		if i < 0 {
			return
		}
		for _, c := range cells {
			if closes(c.values[i]) {
				rule.closes++
			}
		}
		binding = append(binding, rule)
	}
	for _, g := range r.apart {
		rule := bindingRule{name: "pod anti-affinity over " + g.key, rest: "there is no room in the domains that it leaves"}
		rule.alone = rule.name + ": every domain has a pod it has to be apart from"
		if len(g.crowds) == 0 {
			rule.name = "the anti-affinity of other pods over " + g.key
			rule.alone = fmt.Sprintf("every domain of %s has a pod whose anti-affinity keeps it away", g.key)
		}
		add(rule, g.key, func(at string) bool { return at != absent && g.counts[at] > 0 })
	}
	for i := range r.spread {
		s := &r.spread[i]
		if eligible[i] == nil {
			continue
		}
		rule := bindingRule{name: fmt.Sprintf("topology spread over %s (maxSkew %d)", s.key, s.maxSkew), rest: "the domains that it leaves take no more"}
		if n := len(eligible[i]); n < s.minDomains {
			rule.alone = fmt.Sprintf("topology spread over %s: minDomains asks for %d domains and there are %d, so that each takes %d (maxSkew) at most", s.key, s.minDomains, n, s.maxSkew)
		}
		least := s.least(eligible[i])
		add(rule, s.key, func(at string) bool { return s.counts[at]+s.self-least > s.maxSkew })
	}
	first := r.first()
	for i := range r.near {
		n := &r.near[i]
		rule := bindingRule{name: "pod affinity over " + n.key, rest: "there is no room near the pods it has to be with"}
		add(rule, n.key, func(at string) bool { return !first && n.counts[at] == 0 })
	}
	return binding
}

// unmetTogether says that some rules leave no domain of which there is one with room.
func unmetTogether(binding []bindingRule) string {
	binding = slices.DeleteFunc(binding, func(b bindingRule) bool { return b.closes == 0 })
	switch len(binding) {
	case 0:
		return "no domain meets all its rules of topology spread and affinity at once"
	case 1:
		return binding[0].name + ": " + binding[0].rest
	}
	var names []string
	for i := range binding {
		if !slices.Contains(names, binding[i].name) {
			names = append(names, binding[i].name)
		}
	}
	return "no domain meets " + list(names, "and") + " at once"
}
