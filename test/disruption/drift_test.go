package disruption_test

// driftScenarios are about nodes that differ from what would be launched now. Their NodePools stay closed: drift is not
// consolidation.
func driftScenarios(l *laboratory) []scenario {
	two := workload{name: "web", count: 2, requests: whole}
	one := workload{name: "web", count: 1}
	label := `{"spec":{"template":{"metadata":{"labels":{"version":"two"}}}}}`
	class := func(name string, fields map[string]string) string { return nodeClass(name, l.Lab.Cluster(), fields) }
	stay := workload{name: "web", count: 1, annotations: `karpenter.sh/do-not-disrupt: "true"`}
	patient := pool{template: []string{"terminationGracePeriod: 20s"}}
	return []scenario{{
		name: "drift-template", rule: "nodes of a template that has changed are replaced, each after its successor serves",
		steps: []step{deploy(two), mark, changePools(label), drifted("NodePoolDrifted"), replaced(2), have("version", "two"), preSpun},
		takes: takes{"Drifted": 2},
	}, {
		name: "drift-requirements", rule: "nodes that the requirements no longer admit are replaced",
		steps: []step{deploy(one), mark, sell(pool{types: []string{"c5.large"}}), drifted("RequirementsDrifted"), replaced(1), have(typeKey, "c5.large"), preSpun},
		takes: takes{"Drifted": 1},
	}, {
		name: "drift-image", rule: "nodes of an image that is no longer chosen are replaced", objects: class("drift-image", nil), pools: []pool{{class: "drift-image"}},
		steps: []step{deploy(one), mark, create(class("drift-image", map[string]string{"amiSelectorTerms": "[{alias: al2023@v20260928}]"})), drifted("AMIDrift"), replaced(1), preSpun},
		takes: takes{"Drifted": 1},
	}, {
		name: "drift-security-group", rule: "nodes behind other security groups than chosen now are replaced", objects: class("drift-security-group", nil), pools: []pool{{class: "drift-security-group"}},
		steps: []step{deploy(one), mark, create(class("drift-security-group", map[string]string{"securityGroupSelectorTerms": "[{id: sg-0a5e7e0000000002}]"})), drifted("SecurityGroupDrift"), replaced(1), preSpun},
		takes: takes{"Drifted": 1},
	}, {
		name: "drift-class", rule: "nodes of a node class that has changed are replaced", objects: class("drift-class", nil), pools: []pool{{class: "drift-class"}},
		steps: []step{deploy(one), mark, create(class("drift-class", map[string]string{"tags": "{team: other}"})), drifted("NodeClassDrift"), replaced(1), preSpun},
		takes: takes{"Drifted": 1},
	}, {
		name: "drift-empty", rule: "a drifted node on which nothing runs goes without a successor",
		steps: []step{deploy(one), scale("web", 0), mark, changePools(label), serve(0)},
		takes: takes{"Drifted": 1},
	}, {
		name: "drift-budget", rule: "drifted nodes go within the budgets", pools: []pool{{budgets: `{nodes: "1"}`}},
		steps: []step{deploy(workload{name: "web", count: 3, requests: whole}), mark, changePools(label), replaced(3), have("version", "two"), preSpun, peak(1)},
		takes: takes{"Drifted": 3},
	}, {
		name: "drift-budget-zero", rule: "a budget for drift keeps drifted nodes", pools: []pool{{budgets: `{nodes: "0", reasons: [Drifted]}`}},
		steps: []step{deploy(one), mark, changePools(label), drifted("NodePoolDrifted"), keeps("web", "Drifted", "Budget", ""), changePools(everything), replaced(1)},
		takes: takes{"Drifted": 1},
	}, {
		name: "drift-pod-stays", rule: "a pod that is not to be disrupted keeps a drifted node, until it may",
		steps: []step{deploy(stay), mark, changePools(label), keeps("web", "Drifted", "Pod", "web"), patchPods("web", mayGo), replaced(1), preSpun},
		takes: takes{"Drifted": 1},
	}, {
		name: "drift-pdb", rule: "a PodDisruptionBudget keeps a drifted node, until it allows an eviction",
		steps: []step{deploy(one), create(pdb("none", "web", "maxUnavailable: 0")), mark, changePools(label), keeps("web", "Drifted", "PDB", "none"), relax("none"), replaced(1), preSpun},
		takes: takes{"Drifted": 1},
	}, {
		name: "drift-pod-deadline", rule: "with a terminationGracePeriod, a pod that is not to be disrupted keeps a drifted node no longer than that", pools: []pool{patient},
		steps: []step{deploy(stay), mark, changePools(label), replaced(1), preSpun},
		takes: takes{"Drifted": 1},
	}, {
		name: "drift-pdb-deadline", rule: "with a terminationGracePeriod, a PodDisruptionBudget keeps a drifted node no longer than that", pools: []pool{patient},
		steps:  []step{deploy(one), create(pdb("none", "web", "maxUnavailable: 0")), mark, changePools(label), replaced(1), preSpun},
		takes:  takes{"Drifted": 1},
		breaks: "the terminationGracePeriod ends before the PodDisruptionBudget lets the pod go",
	}}
}
