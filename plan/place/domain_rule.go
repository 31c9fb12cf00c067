package place

import (
	"fmt"
	"slices"

	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
)

// bindingRule is one of a pod group's rules over domains, and how many of the choices it closes to the next pod.
type bindingRule struct {
	// name is the rule's, such as "pod affinity over topology.kubernetes.io/zone".
	name   string
	closes int
	// alone says why nothing is left where the rule closes all choices, and else why what it leaves will not do; empty where
	// there is nothing more to say.
	alone, rest string
}

// binding are the pod group's rules over domains, with what each of them closes, whatever room there is.
func binding(r *rules.Rules, keys []string, choices []*domainChoice, eligible [][]string) []bindingRule {
	var binding []bindingRule
	add := func(rule bindingRule, key string, closes func(at string) bool) {
		i := slices.Index(keys, key)
		if i < 0 {
			return
		}
		for _, c := range choices {
			if closes(c.values[i]) {
				rule.closes++
			}
		}
		binding = append(binding, rule)
	}
	for _, g := range r.Apart {
		rule := bindingRule{name: "pod anti-affinity over " + g.Key, rest: "there is no room in the domains that it leaves"}
		rule.alone = rule.name + ": every domain has a pod it has to be apart from"
		if len(g.Selectors) == 0 {
			rule.name = "the anti-affinity of other pods over " + g.Key
			rule.alone = fmt.Sprintf("every domain of %s has a pod whose anti-affinity keeps it away", g.Key)
		}
		add(rule, g.Key, func(at string) bool { return at != absent && g.Counts[at] > 0 })
	}
	for i := range r.Spread {
		s := &r.Spread[i]
		if eligible[i] == nil {
			continue
		}
		rule := bindingRule{name: fmt.Sprintf("topology spread over %s (maxSkew %d)", s.Key, s.MaxSkew), rest: "the domains that it leaves take no more"}
		if n := len(eligible[i]); n < s.MinDomains {
			rule.alone = fmt.Sprintf("topology spread over %s: minDomains asks for %d domains and there are %d, so that each takes %d (maxSkew) at most", s.Key, s.MinDomains, n, s.MaxSkew)
		}
		least := s.Least(eligible[i])
		add(rule, s.Key, func(at string) bool { return s.Counts[at]+s.Self-least > s.MaxSkew })
	}
	first := r.First()
	for i := range r.Near {
		n := &r.Near[i]
		rule := bindingRule{name: "pod affinity over " + n.Key, rest: "there is no room near the pods it has to be with"}
		add(rule, n.Key, func(at string) bool { return !first && n.Counts[at] == 0 })
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
	return "no domain meets " + model.List(names, "and") + " at once"
}
