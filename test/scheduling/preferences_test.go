package scheduling_test

import "github.com/tenon-sh/tenon/test/flow"

// rather returns a preferred node affinity: the heaviest of the terms first.
func rather(terms ...string) string {
	all := ""
	for i, t := range terms {
		all += "{weight: " + []string{"90", "50", "10"}[i] + ", preference: {matchExpressions: [" + t + "]}}, "
	}
	return "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [" + all + "]}}"
}

// preferenceScenarios are about preferences, which are met if possible and dropped otherwise.
func preferenceScenarios() []scenario {
	const tiny = "cpu: 300m, memory: 256Mi"
	return []scenario{{
		name: "prefer-zone", rule: "a preferred zone is used when it can be had",
		steps:  []step{{pods: []workload{{name: "web", count: 2, spec: []string{rather(flow.In(zoneKey, "us-east-1c"))}}}}},
		expect: []expectation{on("web", zoneKey, "us-east-1c"), nodes(1)},
	}, {
		name: "prefer-nothing-there", rule: "a preference that nothing meets is given up",
		steps:  []step{{pods: []workload{{name: "web", count: 2, spec: []string{rather(flow.In(zoneKey, "eu-west-1a"))}}}}},
		expect: []expectation{nodes(1)},
	}, {
		name: "prefer-heaviest", rule: "of several preferences, the heaviest that can be met decides",
		steps:  []step{{pods: []workload{{name: "web", count: 2, spec: []string{rather(flow.In(zoneKey, "eu-west-1a"), flow.In(zoneKey, "us-east-1b"), flow.In(zoneKey, "us-east-1a"))}}}}},
		expect: []expectation{on("web", zoneKey, "us-east-1b"), nodes(1)},
	}, {
		// The kube-scheduler may bind two of them to a node that opens a moment before the others.
		name: "prefer-apart", rule: "pods that would rather be apart get nodes apart", spare: 2,
		pools:  held(pool{}),
		steps:  []step{{pods: []workload{{name: "web", count: 3, requests: tiny, spec: []string{ratherWithout(peers("app: web", hostKey))}}}, then: (*play).release}},
		expect: []expectation{nodes(3)},
	}, {
		name: "prefer-apart-relaxed", rule: "pods that would rather be apart share where a limit leaves no other way", spare: 1, pools: []pool{{spec: []string{"limits: {nodes: 2}"}}},
		steps:  []step{{pods: []workload{{name: "web", count: 4, requests: tiny, spec: []string{ratherWithout(peers("app: web", hostKey))}}}}},
		expect: []expectation{nodes(2)},
	}, {
		name: "prefer-together", rule: "pods that would rather be with others go to their zone", plans: 2,
		steps: []step{
			{pods: []workload{{name: "data", count: 2, selector: zoneKey + ": us-east-1b"}}},
			{pods: []workload{{name: "web", count: 2, spec: []string{ratherWith(peers("app: data", zoneKey))}}}}},
		expect: []expectation{together(zoneKey, "web", "data"), nodes(2)},
	}, {
		name: "prefer-nobody", rule: "pods that would rather be with others which do not exist come without them",
		steps:  []step{{pods: []workload{{name: "web", count: 2, spec: []string{ratherWith(peers("app: nobody", hostKey))}}}}},
		expect: []expectation{nodes(1)},
	}, {
		name: "prefer-no-schedule", rule: "nodes with a taint PreferNoSchedule serve when there are no others", pools: []pool{{template: []string{"taints: [{key: rather, effect: PreferNoSchedule}]"}}},
		steps:  []step{{pods: []workload{{name: "web", count: 2}}}},
		expect: []expectation{nodes(1)},
	}, {
		name: "prefer-no-schedule-choice", rule: "nodes without a taint PreferNoSchedule come first",
		pools:  []pool{{suffix: "busy", spec: []string{"weight: 50"}, template: []string{"taints: [{key: rather, effect: PreferNoSchedule}]"}}, {suffix: "free"}},
		steps:  []step{{pods: []workload{{name: "web", count: 2}}}},
		expect: []expectation{on("web", poolKey, "prefer-no-schedule-choice-free"), nodes(1)},
	}, {
		name: "or-order", rule: "terms of required node affinity are given up one after the other, and never the last",
		steps: []step{{pods: []workload{{name: "web", count: 2, spec: []string{
			required(flow.In(zoneKey, "eu-west-1a"), flow.In(zoneKey, "eu-west-1b"), flow.In(zoneKey, "us-east-1c"))}}}}},
		expect: []expectation{on("web", zoneKey, "us-east-1c"), nodes(1)},
	}}
}
