package scheduling_test

import (
	"fmt"
	"strings"

	"github.com/tenon-sh/tenon/test/flow"
)

// constraint returns a topology spread constraint over the pods of the app web, in flow style, with further fields.
func constraint(key string, skew int, further ...string) string {
	return selecting("app: web", key, skew, further...)
}

// selecting returns a constraint with the given labels in its selector.
func selecting(labels, key string, skew int, further ...string) string {
	when := "DoNotSchedule"
	var rest strings.Builder
	for _, field := range further {
		if field == anyway {
			when = field
			continue
		}
		rest.WriteString(", " + field)
	}
	return fmt.Sprintf("{topologyKey: %s, maxSkew: %d, whenUnsatisfiable: %s, labelSelector: {matchLabels: {%s}}%s}", key, skew, when, labels, rest.String())
}

const anyway = "ScheduleAnyway"

// over returns the field of a pod's spec with constraints.
func over(constraints ...string) string {
	return "topologySpreadConstraints: [" + strings.Join(constraints, ", ") + "]"
}

// web returns pods of the app web.
func web(count int, spec ...string) workload { return workload{name: "web", count: count, spec: spec} }

// skew expects that the pods of a workload are spread over at least that many values of a label, with a skew of no more than
// most.
func skew(workload, key string, values, most int) expectation {
	return func(o *outcome) error {
		count := o.count(key, workload)
		least, greatest := -1, 0
		for _, n := range count {
			if least < 0 || n < least {
				least = n
			}
			greatest = max(greatest, n)
		}
		if len(count) < values {
			least = 0
		}
		if len(count) < values || greatest-least > most {
			return fmt.Errorf("the pods of %s are spread %v over %s, want at least %d values and a skew of %d", workload, count, key, values, most)
		}
		return nil
	}
}

// spreadScenarios are about topology spread constraints.
func spreadScenarios() []scenario {
	tainted := pool{suffix: "kept", requirements: flow.In(zoneKey, "us-east-1c"), template: []string{"taints: [{key: kept, effect: NoSchedule}]"}}
	two := pool{requirements: flow.In(zoneKey, "us-east-1a", "us-east-1b")}
	const tiny = "cpu: 300m, memory: 256Mi"
	small := func(count int, spec ...string) workload {
		w := web(count, spec...)
		w.requests = tiny
		return w
	}
	return []scenario{{
		name: "spread-zone", rule: "pods are spread evenly over zones",
		pools:  held(pool{}),
		steps:  []step{{pods: []workload{small(6, over(constraint(zoneKey, 1)))}, then: (*play).release}},
		expect: []expectation{spread("web", zoneKey, 2, 2, 2), nodes(3)},
	}, {
		name: "spread-zone-odd", rule: "what does not divide evenly stays within the skew",
		pools:  held(pool{}),
		steps:  []step{{pods: []workload{web(7, over(constraint(zoneKey, 1)))}, then: (*play).release}},
		expect: []expectation{spread("web", zoneKey, 3, 2, 2)},
	}, {
		name: "spread-zone-skew", rule: "a greater skew needs fewer zones to be even",
		pools:  held(pool{}),
		steps:  []step{{pods: []workload{small(5, over(constraint(zoneKey, 2)))}, then: (*play).release}},
		expect: []expectation{skew("web", zoneKey, 2, 3)},
	}, {
		name: "spread-zone-bounded", rule: "only zones that the pods' node affinity admits count as domains",
		pools:  held(pool{}),
		steps:  []step{{pods: []workload{small(4, over(constraint(zoneKey, 1)), required(flow.In(zoneKey, "us-east-1a", "us-east-1c")))}, then: (*play).release}},
		expect: []expectation{spread("web", zoneKey, 2, 2), on("web", zoneKey, "us-east-1a", "us-east-1c"), nodes(2)},
	}, {
		name: "spread-host", rule: "pods are spread over nodes one by one",
		pools:  held(pool{}),
		steps:  []step{{pods: []workload{small(4, over(constraint(hostKey, 1)))}, then: (*play).release}},
		expect: []expectation{skew("web", hostKey, 1, 1)},
	}, {
		name: "spread-host-existing", rule: "a node that is full for the skew makes room for another",
		plans: 2,
		steps: []step{
			{pods: []workload{{name: "web", count: 1, requests: "cpu: 1500m, memory: 1Gi"}}},
			{pods: []workload{{name: "late", count: 2, requests: tiny, labels: "tier: front", spec: []string{over(selecting("tier: front", hostKey, 1, "minDomains: 2"))}}}}},
		expect: []expectation{nodes(2), spread("late", hostKey, 1, 1)},
	}, {
		name: "spread-host-three", rule: "a skew of three lets three pods share a node",
		steps:  []step{{pods: []workload{small(6, over(constraint(hostKey, 3, "minDomains: 2")))}}},
		expect: []expectation{skew("web", hostKey, 2, 3)},
	}, {
		name: "spread-capacity", rule: "pods are spread over capacity types", pools: held(pool{capacity: both}),
		steps:  []step{{pods: []workload{small(4, over(constraint(capacityKey, 1)))}, then: (*play).release}},
		expect: []expectation{spread("web", capacityKey, 2, 2), nodes(2)},
	}, {
		name: "spread-custom", rule: "pods are spread over the values of a label of the NodePools'",
		pools:  held(pool{suffix: "one", labels: teamKey + ": rack-1"}, pool{suffix: "two", labels: teamKey + ": rack-2"}),
		steps:  []step{{pods: []workload{small(4, over(constraint(teamKey, 1)))}, then: (*play).release}},
		expect: []expectation{spread("web", teamKey, 2, 2), nodes(2)},
	}, {
		name: "spread-custom-values", rule: "pods are spread over the values that a NodePool leaves open", pools: held(pool{requirements: flow.In(teamKey, "x", "y", "z")}),
		steps:  []step{{pods: []workload{small(6, over(constraint(teamKey, 1)))}, then: (*play).release}},
		expect: []expectation{spread("web", teamKey, 2, 2, 2), nodes(3)},
	}, {
		name: "spread-min-domains", rule: "minDomains has more nodes launched than the pods would need",
		steps:  []step{{pods: []workload{small(4, over(constraint(hostKey, 1, "minDomains: 4")))}}},
		expect: []expectation{spread("web", hostKey, 1, 1, 1, 1), nodes(4)},
	}, {
		name: "spread-min-domains-zones", rule: "fewer zones than minDomains allow no zone more than the skew", pools: []pool{two}, plans: 1,
		steps:  []step{{pods: []workload{{name: "web", count: 4, bound: 2, requests: tiny, spec: []string{over(constraint(zoneKey, 1, "minDomains: 3"))}, stays: "spread"}}}},
		expect: []expectation{placed("web", zoneKey, "us-east-1a", 1), placed("web", zoneKey, "us-east-1b", 1)},
	}, {
		name: "spread-two", rule: "two constraints hold at once",
		pools:  held(pool{}),
		steps:  []step{{pods: []workload{small(6, over(constraint(zoneKey, 1), constraint(hostKey, 1)))}, then: (*play).release}},
		expect: []expectation{spread("web", zoneKey, 2, 2, 2), skew("web", hostKey, 3, 1)},
	}, {
		name: "spread-taints-honor", rule: "with nodeTaintsPolicy Honor, zones of nodes that are not tolerated do not count", plans: 2,
		pools: []pool{{requirements: flow.In(zoneKey, "us-east-1a", "us-east-1b")}, tainted},
		steps: []step{
			{pods: []workload{{name: "owner", count: 1, selector: zoneKey + ": us-east-1c", spec: []string{"tolerations: [{key: kept, operator: Exists}]"}}}},
			{pods: []workload{small(4, over(constraint(zoneKey, 1, "nodeTaintsPolicy: Honor, minDomains: 2")))}}},
		expect: []expectation{spread("web", zoneKey, 2, 2), on("web", zoneKey, "us-east-1a", "us-east-1b"), nodes(3)},
	}, {
		name: "spread-taints-ignore", rule: "with nodeTaintsPolicy Ignore, the default, zones of nodes that are not tolerated do count",
		pools: []pool{{requirements: flow.In(zoneKey, "us-east-1a", "us-east-1b")}, tainted}, plans: 2,
		steps: []step{
			{pods: []workload{{name: "owner", count: 1, selector: zoneKey + ": us-east-1c", spec: []string{"tolerations: [{key: kept, operator: Exists}]"}}}},
			{pods: []workload{{name: "web", count: 4, bound: 2, requests: tiny, spec: []string{over(constraint(zoneKey, 1))}, stays: "spread"}}}},
	}, {
		name: "spread-affinity-ignore", rule: "with nodeAffinityPolicy Ignore, zones that the pods may not use do count", plans: 2,
		pools: []pool{{}},
		steps: []step{
			{pods: []workload{{name: "other", count: 1, selector: zoneKey + ": us-east-1b"}}},
			{pods: []workload{{name: "web", count: 3, bound: 1, requests: tiny, selector: zoneKey + ": us-east-1a",
				spec: []string{over(constraint(zoneKey, 1, "nodeAffinityPolicy: Ignore"))}, stays: "spread"}}}},
	}, {
		name: "spread-match-keys", rule: "matchLabelKeys spreads each revision by itself",
		pools: held(pool{}),
		steps: []step{
			{pods: []workload{{name: "web", count: 3, requests: tiny, labels: "rev: a", spec: []string{over(constraint(zoneKey, 1, "matchLabelKeys: [rev]"))}}}, then: (*play).release},
			{pods: []workload{{name: "next", count: 3, requests: "cpu: 1600m", labels: "rev: b, part: next", spec: []string{over(selecting("part: next", zoneKey, 1, "matchLabelKeys: [rev]"))}}}}},
		expect: []expectation{spread("web", zoneKey, 1, 1, 1), spread("next", zoneKey, 1, 1, 1)},
	}, {
		name: "spread-match-keys-together", rule: "pods of two revisions under one constraint with matchLabelKeys count apart",
		pools: held(pool{}),
		steps: []step{{pods: []workload{
			{name: "old", count: 3, requests: tiny, labels: "part: shop, rev: a", spec: []string{over(selecting("part: shop", zoneKey, 1, "matchLabelKeys: [rev]"))}},
			{name: "new", count: 3, requests: tiny, labels: "part: shop, rev: b", spec: []string{over(selecting("part: shop", zoneKey, 1, "matchLabelKeys: [rev]"))}}}, then: (*play).release}},
		expect: []expectation{spread("old", zoneKey, 1, 1, 1), spread("new", zoneKey, 1, 1, 1)},
	}, {
		name: "spread-existing", rule: "pods that run already count", plans: 2,
		pools: held(pool{}),
		steps: []step{
			{pods: []workload{{name: "old", count: 2, labels: "part: shop", selector: zoneKey + ": us-east-1a"}}, then: (*play).release},
			{pods: []workload{{name: "new", count: 4, labels: "part: shop", spec: []string{over(selecting("part: shop", zoneKey, 1))}}}, then: (*play).release}},
		expect: []expectation{placed("new", zoneKey, "us-east-1b", 2), placed("new", zoneKey, "us-east-1c", 2)},
	}, {
		name: "spread-anyway", rule: "a constraint that only says ScheduleAnyway is kept where that is possible",
		pools:  held(pool{}),
		steps:  []step{{pods: []workload{web(6, over(constraint(zoneKey, 1, anyway)))}, then: (*play).release}},
		expect: []expectation{skew("web", zoneKey, 2, 2)},
	}, {
		name: "spread-anyway-relaxed", rule: "a constraint that only says ScheduleAnyway gives way where it cannot be kept", pools: []pool{{requirements: flow.In(zoneKey, "us-east-1a")}},
		steps:  []step{{pods: []workload{web(4, over(constraint(teamKey, 1, anyway)))}}},
		expect: []expectation{nodes(2)},
	}, {
		name: "spread-others", rule: "a constraint may count other pods than those that have it", plans: 2,
		steps: []step{
			{pods: []workload{{name: "data", count: 1, labels: "part: shop", selector: zoneKey + ": us-east-1b"}}},
			{pods: []workload{{name: "web", count: 2, requests: "cpu: 1600m", spec: []string{over(selecting("part: shop", zoneKey, 1, "minDomains: 3"), constraint(hostKey, 1))}}}}},
		expect: []expectation{nodes(3)},
	}}
}
