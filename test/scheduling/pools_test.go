package scheduling_test

import "github.com/tenon-sh/tenon/test/flow"

// The simulated cloud has no capacity of these instance types. What one scenario finds out, Tenon remembers for all, so each
// scenario has its own type.
const refusedType, refusedAlone = "m5a.large", "m5ad.large"

// poolScenarios are about the choice among NodePools, instance types and capacity types.
func poolScenarios() []scenario {
	return []scenario{{
		name: "weight", rule: "the NodePool with the greatest weight is used first",
		pools:  []pool{{suffix: "light", spec: []string{"weight: 1"}}, {suffix: "heavy", spec: []string{"weight: 100"}, types: []string{"m5.xlarge"}}, {suffix: "none"}},
		steps:  []step{{pods: []workload{{name: "web", count: 4}}}},
		expect: []expectation{on("web", poolKey, "weight-heavy")},
	}, {
		name: "weight-fallback", rule: "what a NodePool's limit does not allow goes to the next lighter one, in the same plan",
		pools:  []pool{{suffix: "heavy", spec: []string{"weight: 10", "limits: {cpu: 4}"}}, {suffix: "light"}},
		steps:  []step{{pods: []workload{{name: "web", count: 8}}}},
		expect: []expectation{placed("web", poolKey, "weight-fallback-heavy", 4), placed("web", poolKey, "weight-fallback-light", 4), nodes(4)},
	}, {
		name: "weight-incompatible", rule: "a lighter NodePool serves pods that the heavier one cannot",
		pools: []pool{{suffix: "heavy", spec: []string{"weight: 10"}, requirements: flow.In(zoneKey, "us-east-1a")}, {suffix: "light"}},
		steps: []step{{pods: []workload{{name: "here", count: 2}, {name: "there", count: 2, selector: zoneKey + ": us-east-1b"}}}},
		expect: []expectation{
			on("here", poolKey, "weight-incompatible-heavy"), on("there", poolKey, "weight-incompatible-light"), nodes(2)},
	}, {
		name: "weight-not-ready", rule: "a NodePool that is not ready is passed over",
		pools: []pool{{suffix: "good"}},
		steps: []step{{
			objects: `{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: weight-not-ready-bad}, spec: {weight: 90, template: {metadata: {labels: {` + sceneLabel + `: weight-not-ready}}, spec: {` +
				`nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: nowhere}, requirements: [` + flow.In(typeKey, "m5.large") + `]}}}}`,
			pods: []workload{{name: "web", count: 2}}}},
		expect: []expectation{on("web", poolKey, "weight-not-ready-good"), nodes(1)},
	}, {
		name: "equal-weights", rule: "of NodePools with equal weight, any serves, and none is left with half a load",
		pools:  []pool{{suffix: "one"}, {suffix: "two"}},
		steps:  []step{{pods: []workload{{name: "web", count: 8}}}},
		expect: []expectation{on("web", poolKey, "equal-weights-one", "equal-weights-two"), nodes(4)},
	}, {
		name: "equal-weights-price", rule: "of NodePools with equal weight, the cheaper one serves",
		pools:  []pool{{suffix: "memory", types: []string{"r5.large"}}, {suffix: "compute", types: []string{"c5.large"}}},
		steps:  []step{{pods: []workload{{name: "web", count: 4}}}},
		expect: []expectation{on("web", typeKey, "c5.large"), nodes(2)},
	}, {
		name: "cheapest-type", rule: "the cheapest instance type that holds the pods is launched", pools: []pool{{types: []string{"m5.large", "c5.large", "r5.large", "m5.xlarge"}}},
		steps:  []step{{pods: []workload{{name: "web", count: 2}}}},
		expect: []expectation{on("web", typeKey, "c5.large"), nodes(1)},
	}, {
		name: "limit-cpu", rule: "a NodePool's limit is never exceeded, and pods beyond it are told so", pools: []pool{{spec: []string{"limits: {cpu: 4}"}}},
		steps:  []step{{pods: []workload{{name: "web", count: 6, bound: 4, stays: "limit cpu 4"}}}},
		expect: []expectation{nodes(2)},
	}, {
		name: "limit-memory", rule: "limits on memory count the capacity of the machines", pools: []pool{{spec: []string{"limits: {memory: 12Gi}"}}},
		steps:  []step{{pods: []workload{{name: "web", count: 4, bound: 2, stays: "limit memory"}}}},
		expect: []expectation{nodes(1)},
	}, {
		name: "limit-nodes", rule: "a NodePool may limit the number of nodes", pools: []pool{{spec: []string{"limits: {nodes: 2}"}}},
		steps:  []step{{pods: []workload{{name: "web", count: 6, bound: 4, stays: "limit nodes 2"}}}},
		expect: []expectation{nodes(2)},
	}, {
		name: "limit-smaller", rule: "under a limit, a smaller instance type serves where a larger one is not allowed", pools: []pool{{types: []string{"m5.large", "m5.4xlarge"}, spec: []string{"limits: {cpu: 6}"}}},
		steps:  []step{{pods: []workload{{name: "web", count: 6}}}},
		expect: []expectation{on("web", typeKey, "m5.large"), nodes(3)},
	}, {
		name: "limit-existing", rule: "nodes that are there count against the limit", pools: []pool{{spec: []string{"limits: {cpu: 4}"}}}, plans: 2,
		steps: []step{
			{pods: []workload{{name: "first", count: 2}}},
			{pods: []workload{{name: "second", count: 4, bound: 2, stays: "limit cpu 4"}}}},
		expect: []expectation{nodes(2)},
	}, {
		name: "min-values", rule: "a launch leaves as many instance types to choose from as minValues demands",
		pools:  []pool{{types: anyType, capacity: spot, requirements: `{key: ` + typeKey + `, operator: In, values: [m5.large, m6i.large, m7i.large, r5.large], minValues: 3}`}},
		steps:  []step{{pods: []workload{{name: "web", count: 4}}}},
		expect: []expectation{nodes(2), claimsRequire(typeKey, 3)},
	}, {
		name: "min-values-strict", rule: "where minValues cannot be met, nothing is launched, and pods are told", plans: noPlan,
		pools: []pool{{types: anyType, requirements: `{key: ` + typeKey + `, operator: In, values: [m5.large, m6i.large, m5.4xlarge], minValues: 2}`}},
		steps: []step{{pods: []workload{{name: "web", count: 2, requests: "cpu: 12", stays: "minValues"}}}},
	}, {
		name: "spot-first", rule: "where a pool sells both, spot is bought before on-demand", pools: []pool{{capacity: both}},
		steps:  []step{{pods: []workload{{name: "web", count: 4}}}},
		expect: []expectation{on("web", capacityKey, "spot"), nodes(2)},
	}, {
		name: "on-demand-asked", rule: "pods that select on-demand get it, beside others on spot", pools: []pool{{capacity: both}},
		steps: []step{{pods: []workload{
			{name: "steady", count: 2, selector: capacityKey + ": on-demand"},
			{name: "cheap", count: 2, selector: capacityKey + ": spot"}}}},
		expect: []expectation{on("steady", capacityKey, "on-demand"), on("cheap", capacityKey, "spot"), nodes(2)},
	}, {
		name: "refused-type", rule: "when the cloud has no capacity of the first choice, the launch takes another type without a further plan", pools: []pool{{types: []string{refusedType, "m5.large"}}},
		steps:  []step{{pods: []workload{{name: "web", count: 4}}}},
		expect: []expectation{on("web", typeKey, "m5.large"), nodes(2)},
	}, {
		name: "refused-pool", rule: "when the cloud has no capacity for a NodePool at all, its pods are planned again for the next", plans: 2,
		pools:  []pool{{suffix: "heavy", spec: []string{"weight: 10"}, types: []string{refusedAlone}}, {suffix: "light"}},
		steps:  []step{{pods: []workload{{name: "web", count: 2}}}},
		expect: []expectation{on("web", poolKey, "refused-pool-light"), nodes(1)},
	}}
}
