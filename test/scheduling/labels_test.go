package scheduling_test

import "github.com/tenon-sh/tenon/test/flow"

const (
	cpuKey    = "karpenter.k8s.aws/instance-cpu"
	familyKey = "karpenter.k8s.aws/instance-family"
	zoneIDKey = "topology.k8s.aws/zone-id"
	archKey   = "kubernetes.io/arch"
	teamKey   = "team.example.com/name"
	sizeKey   = "size.example.com/rank"
)

// required returns a required node affinity: each term is a list of expressions in flow style, and one term has to match.
func required(terms ...string) string {
	all := ""
	for _, t := range terms {
		all += "{matchExpressions: [" + t + "]}, "
	}
	return "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" + all + "]}}}"
}

// labelScenarios are about the labels and taints of nodes that pods ask for.
func labelScenarios() []scenario {
	sizes := []pool{{types: []string{"m5.large", "m5.xlarge", "m5.2xlarge"}}}
	return []scenario{{
		name: "selector-zone", rule: "a node selector on the zone is met by nodes in that zone",
		steps:  []step{{pods: []workload{{name: "web", count: 4, selector: zoneKey + ": us-east-1b"}}}},
		expect: []expectation{on("web", zoneKey, "us-east-1b"), nodes(2)},
	}, {
		name: "selector-zone-id", rule: "a node selector on the zone's id is met by nodes in that zone",
		steps:  []step{{pods: []workload{{name: "web", count: 2, selector: zoneIDKey + ": use1-az3"}}}},
		expect: []expectation{on("web", zoneKey, "us-east-1c"), nodes(1)},
	}, {
		name: "selector-arch", rule: "a node selector on the architecture picks instance types of that architecture", pools: []pool{{types: []string{"m5.large", "m6g.large"}}},
		steps: []step{{pods: []workload{
			{name: "arm", count: 2, selector: archKey + ": arm64"},
			{name: "intel", count: 2, selector: archKey + ": amd64"}}}},
		expect: []expectation{on("arm", typeKey, "m6g.large"), on("intel", typeKey, "m5.large"), nodes(2)},
	}, {
		name: "affinity-in", rule: "In admits every value it names, and no other", pools: []pool{{types: []string{"m5.large", "c5.large", "r5.large"}}},
		steps:  []step{{pods: []workload{{name: "web", count: 4, spec: []string{required(flow.In(familyKey, "r5", "c5"))}}}}},
		expect: []expectation{on("web", typeKey, "c5.large", "r5.large"), nodes(2)},
	}, {
		name: "affinity-notin", rule: "NotIn keeps pods from the values it names",
		steps:  []step{{pods: []workload{{name: "web", count: 4, spec: []string{required(flow.Expression(zoneKey, "NotIn", "us-east-1a", "us-east-1c"))}}}}},
		expect: []expectation{on("web", zoneKey, "us-east-1b"), nodes(2)},
	}, {
		name: "affinity-exists", rule: "Exists wants the label with whatever value", pools: []pool{{suffix: "plain"}, {suffix: "team", labels: teamKey + ": blue"}},
		steps:  []step{{pods: []workload{{name: "web", count: 2, spec: []string{required(flow.Expression(teamKey, "Exists"))}}}}},
		expect: []expectation{on("web", poolKey, "affinity-exists-team"), nodes(1)},
	}, {
		name: "affinity-absent", rule: "DoesNotExist keeps pods from nodes that have the label", pools: []pool{{suffix: "plain"}, {suffix: "team", labels: teamKey + ": blue", spec: []string{"weight: 10"}}},
		steps:  []step{{pods: []workload{{name: "web", count: 2, spec: []string{required(flow.Expression(teamKey, "DoesNotExist"))}}}}},
		expect: []expectation{on("web", poolKey, "affinity-absent-plain"), nodes(1)},
	}, {
		name: "affinity-gt-lt", rule: "Gt and Lt compare numbers", pools: sizes,
		steps:  []step{{pods: []workload{{name: "web", count: 3, spec: []string{required(flow.Expression(cpuKey, "Gt", "2") + ", " + flow.Expression(cpuKey, "Lt", "8"))}}}}},
		expect: []expectation{on("web", typeKey, "m5.xlarge"), nodes(1)},
	}, {
		name: "affinity-or", rule: "of several terms of node affinity, one that can be met is enough",
		steps: []step{{pods: []workload{{name: "web", count: 2, spec: []string{
			required(flow.In(zoneKey, "us-east-1c")+", "+flow.In(typeKey, "m5.24xlarge"), flow.In(zoneKey, "us-east-1b"))}}}}},
		expect: []expectation{on("web", zoneKey, "us-east-1b"), nodes(1)},
	}, {
		name: "affinity-and-selector", rule: "node selector and node affinity have to hold both",
		steps:  []step{{pods: []workload{{name: "web", count: 2, selector: zoneKey + ": us-east-1c", spec: []string{required(flow.In(zoneKey, "us-east-1b", "us-east-1c"))}}}}},
		expect: []expectation{on("web", zoneKey, "us-east-1c"), nodes(1)},
	}, {
		name: "label-open", rule: "a label that the pool leaves open gets the value that the pods ask for", pools: []pool{{requirements: flow.Expression(teamKey, "Exists")}},
		steps: []step{{pods: []workload{
			{name: "blue", count: 2, selector: teamKey + ": blue"},
			{name: "red", count: 2, selector: teamKey + ": red"}}}},
		expect: []expectation{on("blue", teamKey, "blue"), on("red", teamKey, "red"), nodes(2)},
	}, {
		name: "label-values", rule: "a label with several values in the pool gets one of them that the pods admit", pools: []pool{{requirements: flow.In(teamKey, "blue", "red", "green")}},
		steps: []step{{pods: []workload{
			{name: "some", count: 2, spec: []string{required(flow.In(teamKey, "red", "yellow"))}},
			{name: "other", count: 2, spec: []string{required(flow.Expression(teamKey, "NotIn", "red", "blue"))}}}}},
		expect: []expectation{on("some", teamKey, "red"), on("other", teamKey, "green"), nodes(2)},
	}, {
		name: "label-bounds", rule: "Gt on a label that the pool gives a number", pools: []pool{{suffix: "small", labels: sizeKey + `: "3"`}, {suffix: "large", labels: sizeKey + `: "30"`}},
		steps:  []step{{pods: []workload{{name: "web", count: 2, spec: []string{required(flow.Expression(sizeKey, "Gt", "5"))}}}}},
		expect: []expectation{on("web", poolKey, "label-bounds-large"), nodes(1)},
	}, {
		name: "taints", rule: "pods go only where they tolerate the taints",
		pools: []pool{{suffix: "open"}, {suffix: "kept", spec: []string{"weight: 50"}, template: []string{"taints: [{key: kept, value: x, effect: NoSchedule}]"}}},
		steps: []step{{pods: []workload{
			{name: "guest", count: 2},
			{name: "owner", count: 2, spec: []string{"tolerations: [{key: kept, operator: Equal, value: x, effect: NoSchedule}]"}}}}},
		expect: []expectation{on("guest", poolKey, "taints-open"), on("owner", poolKey, "taints-kept"), nodes(2)},
	}, {
		name: "taint-noexecute", rule: "a taint with the effect NoExecute keeps away what does not tolerate it, too",
		pools: []pool{{suffix: "open"}, {suffix: "kept", spec: []string{"weight: 50"}, template: []string{"taints: [{key: kept, effect: NoExecute}]"}}},
		steps: []step{{pods: []workload{
			{name: "guest", count: 2, spec: []string{"tolerations: [{key: kept, operator: Exists, effect: NoSchedule}]"}},
			{name: "owner", count: 2, spec: []string{"tolerations: [{key: kept, operator: Exists}]"}}}}},
		expect: []expectation{on("guest", poolKey, "taint-noexecute-open"), on("owner", poolKey, "taint-noexecute-kept"), nodes(2)},
	}}
}
