package disruption_test

// large are instance types that are each cheaper on spot than an m5.4xlarge.
var large = []string{"m5.large", "m5a.large", "m5d.large", "m5dn.large", "m5zn.large", "m6a.large", "m6i.large", "m6id.large", "m6in.large", "m7a.large",
	"c5.large", "c5a.large", "c5d.large", "c6i.large", "c6a.large", "r5.large", "r5a.large", "r6i.large", "r6a.large", "r5d.large"}

// consolidationScenarios are about nodes whose pods fit elsewhere, or on something cheaper.
func consolidationScenarios() []scenario {
	web := workload{name: "web", count: 1}
	xlarge := pool{types: []string{"m5.xlarge"}}
	return []scenario{{
		name: "delete", rule: "a node goes whose pods fit on another that is there, and nothing is launched for them",
		steps: then(halfEmpty(2, workload{}), opened("0s"), serve(1), stays(1)),
		takes: takes{"Underutilized": 1},
	}, {
		name: "delete-many", rule: "of many half-empty nodes, all go that can",
		steps: then(halfEmpty(4, workload{}), opened("0s"), serve(2), stays(2), recorded("apart")),
		takes: takes{"Underutilized": 2},
	}, {
		name: "delete-spot", rule: "spot nodes whose pods fit elsewhere go, with or without spot-to-spot consolidation", pools: []pool{{capacity: []string{"spot"}}},
		steps: then(halfEmpty(2, workload{}), opened("0s"), serve(1), stays(1)),
		takes: takes{"Underutilized": 1},
	}, {
		name: "delete-across", rule: "pods move to nodes of another NodePool", pools: []pool{{suffix: "one"}, {suffix: "two"}},
		steps: []step{
			deploy(workload{name: "first", count: 1, requests: ballast, selector: poolKey + ": SCENE-one"}, workload{name: "second", count: 1, requests: ballast, selector: poolKey + ": SCENE-two"}),
			deploy(workload{name: "web", count: 2}), scale("first", 0), scale("second", 0), serve(2), opened("0s"), serve(1), stays(1)},
		takes: takes{"Underutilized": 1},
	}, {
		name: "replace", rule: "a node that is too large is replaced by a cheaper one, which serves before the first pod moves", pools: []pool{xlarge},
		steps: []step{deploy(web), sell(pool{types: []string{"m5.xlarge", "m5.large"}}), opened("0s"), replaced(1), have(typeKey, "m5.large"), preSpun},
		takes: takes{"Underutilized": 1},
	}, {
		name: "replace-many", rule: "several nodes are replaced by one that costs less than they do together", pools: []pool{xlarge},
		steps: []step{deploy(workload{name: "web", count: 3, requests: "cpu: 2200m, memory: 1Gi"}), sell(pool{types: []string{"m5.xlarge", "m5.2xlarge"}}),
			opened("0s"), replaced(1), have(typeKey, "m5.2xlarge"), preSpun},
		takes: takes{"Underutilized": 3},
	}, {
		name: "same-type", rule: "a node stays whose replacement would be no cheaper, such as another one of its type",
		pools: []pool{xlarge},
		steps: []step{deploy(web), opened("0s"), keeps("web", "Underutilized", "Price", ""), told("Unconsolidatable", ""), sell(pool{types: []string{"m5.xlarge", "m5.large"}}), replaced(1), have(typeKey, "m5.large")},
		takes: takes{"Underutilized": 1},
	}, {
		name: "on-demand-to-spot", rule: "a node on demand is replaced by a spot node where the NodePool sells both",
		steps: []step{deploy(web), sell(pool{capacity: []string{"spot", "on-demand"}}), opened("0s"), replaced(1), have(capacityKey, "spot"), preSpun},
		takes: takes{"Underutilized": 1},
	}}
}

// spotScenarios are about spot nodes that cheaper spot nodes could replace.
func spotScenarios(allowed bool) []scenario {
	web := workload{name: "web", count: 1}
	spot := []string{"spot"}
	huge := []pool{{types: []string{"m5.4xlarge"}, capacity: spot}}
	if !allowed {
		return []scenario{{
			name: "spot-to-spot-off", rule: "a spot node is not replaced by a cheaper spot node unless that is asked for", pools: huge,
			steps: []step{deploy(web), sell(pool{types: append([]string{"m5.4xlarge"}, large...), capacity: spot}), opened("0s"),
				keeps("web", "Underutilized", "Policy|Price", "SpotToSpotConsolidation")},
		}}
	}
	return []scenario{{
		name: "spot-to-spot-few", rule: "a spot node is not replaced by a spot node for which there are fewer than fifteen cheaper types to choose from", pools: huge,
		steps: []step{deploy(web), sell(pool{types: append([]string{"m5.4xlarge"}, large[:14]...), capacity: spot}), opened("0s"), keeps("web", "Underutilized", "Price|Policy", "15")},
	}, {
		name: "spot-to-spot", rule: "a spot node is replaced by a spot node, launched with exactly the fifteen cheapest types to choose from", pools: huge,
		steps: []step{deploy(web), sell(pool{types: append([]string{"m5.4xlarge"}, large...), capacity: spot}), opened("0s"), replaced(1), have(capacityKey, "spot"), have(typeKey, large...), choices(15)},
		takes: takes{"Underutilized": 1},
	}}
}

// choices checks how many instance types were left to the launches of unmarked claims.
func choices(want int) step {
	return func(p *play) {
		p.T.Helper()
		for _, l := range p.view.of(p.name) {
			if !p.marked[l.claim] && len(l.choices) != want {
				p.T.Errorf("claim %s was left %d instance types, want %d: %v", l.claim, len(l.choices), want, l.choices)
			}
		}
	}
}

// balancedScenarios are about the policy that weighs savings against disruption.
func balancedScenarios() []scenario {
	return []scenario{{
		name: "balanced-approved", rule: "Balanced lets a node go for as large a share of the NodePool's cost as of its disturbance, and tells of it", pools: []pool{{policy: "Balanced"}},
		steps: then(halfEmpty(2, workload{}), opened("0s"), told("ConsolidationApproved", "Balanced demands 0.50"), serve(1), stays(1)),
		takes: takes{"Underutilized": 1},
	}, {
		name: "balanced-rejected", rule: "Balanced keeps a node whose replacement saves less than half of what it costs, and WhenEmptyOrUnderutilized does not", pools: []pool{{policy: "Balanced", types: []string{"m5zn.xlarge"}}},
		steps: []step{deploy(workload{name: "web", count: 1, requests: "cpu: 2200m, memory: 1Gi"}), sell(pool{types: []string{"m5zn.xlarge", "m5.xlarge"}}), opened("0s"),
			keeps("web", "Underutilized", "Price|Policy", "Balanced demands"), changePools(`{"spec":{"disruption":{"consolidationPolicy":"WhenEmptyOrUnderutilized"}}}`), replaced(1), have(typeKey, "m5.xlarge")},
		takes: takes{"Underutilized": 1},
	}}
}
