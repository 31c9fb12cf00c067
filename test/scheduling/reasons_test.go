package scheduling_test

// reasonScenarios are about pods that cannot be scheduled: nothing is launched for them, and Tenon says why.
func reasonScenarios() []scenario {
	never := func(name, rule, said string, l workload) scenario {
		l.name, l.count, l.stays = "web", 1, said
		return scenario{name: name, rule: rule, plans: noPlan, steps: []step{{pods: []workload{l}}}}
	}
	devices := never("device-claims", "pods that claim devices are told that no instance type is known to have any", "no device is known of any instance type", workload{
		spec: []string{"resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]"}})
	devices.steps[0].objects = `
{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: device-claims}, spec: {selectors: []}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: gpu}, spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: device-claims}}]}}}}
`
	kept := never("untolerated", "pods are told of the taint that they do not tolerate", "taint kept:NoSchedule is not tolerated", workload{})
	kept.pools = []pool{{template: []string{"taints: [{key: kept, effect: NoSchedule}]"}}}
	return []scenario{
		never("too-large", "pods that are larger than every instance type are told so", "cpu", workload{requests: "cpu: 100"}),
		never("no-such-label", "pods are told of the label that no NodePool defines", "unknown.example.com/key", workload{selector: "unknown.example.com/key: x"}),
		never("no-such-zone", "pods are told of the zone that does not exist", "eu-west-1a", workload{selector: zoneKey + ": eu-west-1a"}),
		never("no-such-device", "pods are told of the device that no instance type has", "example.com/fpga", workload{limits: "example.com/fpga: 1"}),
		never("one-host", "pods that select a node by its name are told that only that node will do", "kubernetes.io/hostname", workload{selector: hostKey + ": nowhere"}),
		never("match-fields", "node affinity by matchFields is for nodes that exist", "matchFields", workload{
			spec: []string{"affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [nowhere]}]}]}}}"}}),
		never("other-capacity", "pods are told of the capacity type that the NodePool does not sell", "spot", workload{selector: capacityKey + ": spot"}),
		devices, kept,
	}
}
