package disruption_test

// staticScenarios are about NodePools with a fixed number of nodes.
func staticScenarios() []scenario {
	static := func(suffix string, further ...string) pool {
		return pool{suffix: suffix, spec: append([]string{"replicas: 2"}, further...)}
	}
	label := `{"spec":{"template":{"metadata":{"labels":{"version":"two"}}}}}`
	return []scenario{{
		name: "overprovisioned", rule: "a static NodePool that is to have fewer nodes gives up the one that nothing runs on, whatever the budgets", pools: []pool{{spec: []string{"replicas: 2"}, budgets: `{nodes: "0"}`}},
		steps: []step{serve(2), deploy(workload{name: "web", count: 1}), changePools(`{"spec":{"replicas":1}}`), serve(1), spread("web", hostKey, 1)},
		takes: takes{"Overprovisioned": 1},
	}, {
		name: "static-empty", rule: "nodes of a static NodePool stay although nothing runs on them", pools: []pool{static("")},
		steps: []step{serve(2), opened("0s"), keeps(everyNode, "Empty", "Policy", "static"), changePools(`{"spec":{"replicas":0}}`), serve(0)},
		takes: takes{"Overprovisioned": 2},
	}, {
		name: "static-drift", rule: "drifted nodes of a static NodePool are replaced one for one, each after its successor serves", pools: []pool{static("")},
		steps: []step{serve(2), deploy(workload{name: "web", count: 1}), mark, changePools(label), replaced(2), have("version", "two"), preSpun, made(4)},
		takes: takes{"Drifted": 2},
	}, {
		name: "static-drift-budget", rule: "drifted nodes of a static NodePool go within its budgets, and no more stand beside them than are leaving",
		pools: []pool{{spec: []string{"replicas: 3"}, budgets: `{nodes: "1"}`}},
		steps: []step{serve(3), mark, changePools(label), drifted("NodePoolDrifted"), replaced(3), have("version", "two"), preSpun, peak(1), made(6), standing(4)},
		takes: takes{"Drifted": 3},
	}, {
		name: "static-drift-stays", rule: "a pod that is not to be disrupted keeps a drifted node of a static NodePool, and the others go", pools: []pool{static("")},
		steps: []step{serve(2), deploy(workload{name: "web", count: 1, annotations: `karpenter.sh/do-not-disrupt: "true"`}), mark, changePools(label), drifted("NodePoolDrifted"), gone(1), serve(2), made(3),
			onlyMarked("web"), keeps("web", "Drifted", "Pod", "web"), patchPods("web", mayGo), replaced(2), made(4)},
		takes: takes{"Drifted": 2},
	}}
}
