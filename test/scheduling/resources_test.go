package scheduling_test

import (
	"fmt"
	"strings"

	"github.com/tenon-sh/tenon/test/flow"
)

// daemon returns the manifest of a DaemonSet for a scenario's nodes.
func daemon(scene, requests string, fields ...string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers: [{name: agent, image: agent, resources: {requests: {%s}}}]
      affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [%s]}]}}}%s
`, requests, flow.In(sceneLabel, scene), flow.Lines(6, fields))
}

// resourceScenarios are about what pods take of a node, and what DaemonSets have taken already.
func resourceScenarios() []scenario {
	return []scenario{{
		name: "daemon-counted", rule: "what a DaemonSet takes of every node, from before it is Ready, is not sold to pods",
		steps:  []step{{objects: daemon("daemon-counted", "cpu: 500m", "tolerations: [{operator: Exists}]"), pods: []workload{{name: "web", count: 6, requests: third}}}},
		expect: []expectation{nodes(3)},
	}, {
		name: "daemon-elsewhere", rule: "a DaemonSet counts only on instance types where it runs",
		steps:  []step{{objects: daemon("daemon-elsewhere", "cpu: 500m", "nodeSelector: {"+typeKey+": m5.xlarge}"), pods: []workload{{name: "web", count: 6, requests: third}}}},
		expect: []expectation{nodes(2)},
	}, {
		name: "daemon-repelled", rule: "a DaemonSet does not count where it does not tolerate the taints", pools: []pool{{template: []string{"taints: [{key: kept, effect: NoSchedule}]"}}},
		steps: []step{{objects: daemon("daemon-repelled", "cpu: 500m"),
			pods: []workload{{name: "web", count: 6, requests: third, spec: []string{"tolerations: [{key: kept, operator: Exists}]"}}}}},
		expect: []expectation{nodes(2)},
	}, {
		name: "daemon-late", rule: "nothing is launched for the pod of a DaemonSet that finds its node full",
		steps: []step{
			{pods: []workload{{name: "web", count: 1, requests: whole}}},
			{objects: daemon("daemon-late", "cpu: 500m"), then: func(p *play) {
				p.Await("the DaemonSet's pod refused", settleWithin, func() (bool, string) {
					agents := p.outcome().pods["agent"]
					if len(agents) != 1 {
						return false, fmt.Sprintf("%d pods", len(agents))
					}
					return strings.Contains(scheduled(&agents[0]), "Insufficient cpu"), scheduled(&agents[0])
				})
			}}},
		expect: []expectation{nodes(1)},
	}, {
		name: "daemon-ports", rule: "a DaemonSet's host ports are taken on every node it runs on", plans: noPlan,
		steps: []step{{
			objects: `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {selector: {matchLabels: {app: agent}}, template: {metadata: {labels: {app: agent}}, spec: {nodeSelector: {` + sceneLabel +
				`: daemon-ports}, containers: [{name: agent, image: agent, ports: [{containerPort: 9100, hostPort: 9100}]}]}}}}`,
			pods: []workload{{name: "web", count: 1, container: []string{"ports: [{containerPort: 9100, hostPort: 9100}]"}, stays: "host ports"}}}},
	}, {
		name: "host-ports", rule: "two pods with the same host port do not share a node",
		steps:  []step{{pods: []workload{{name: "web", count: 3, requests: "cpu: 100m", container: []string{"ports: [{containerPort: 8080, hostPort: 8080}]"}}}}},
		expect: []expectation{nodes(3), spread("web", hostKey, 1, 1, 1)},
	}, {
		name: "host-ports-differ", rule: "the same host port of another protocol or address is another port",
		steps: []step{{pods: []workload{
			{name: "tcp", count: 1, requests: "cpu: 100m", container: []string{"ports: [{containerPort: 53, hostPort: 53, hostIP: 127.0.0.1}]"}},
			{name: "udp", count: 1, requests: "cpu: 100m", container: []string{"ports: [{containerPort: 53, hostPort: 53, protocol: UDP}]"}},
			{name: "other", count: 1, requests: "cpu: 100m", container: []string{"ports: [{containerPort: 53, hostPort: 53, hostIP: 127.0.0.2}]"}}}}},
		expect: []expectation{nodes(1)},
	}, {
		name: "sidecars", rule: "init containers that go on running count together with the containers",
		steps: []step{{pods: []workload{{name: "web", count: 4, requests: "cpu: 400m",
			spec: []string{"initContainers: [{name: proxy, image: proxy, restartPolicy: Always, resources: {requests: {cpu: 500m}}}]"}}}}},
		expect: []expectation{nodes(2), spread("web", hostKey, 2, 2)},
	}, {
		name: "init-containers", rule: "an init container that asks for more than the containers decides",
		steps: []step{{pods: []workload{{name: "web", count: 2, requests: "cpu: 100m",
			spec: []string{"initContainers: [{name: migrate, image: migrate, resources: {requests: {cpu: 1500m}}}]"}}}}},
		expect: []expectation{nodes(2), spread("web", hostKey, 1, 1)},
	}, {
		name: "pod-level", rule: "resources of the pod as a whole count instead of its containers'",
		steps:  []step{{pods: []workload{{name: "web", count: 4, requests: "cpu: 100m", spec: []string{"resources: {requests: {cpu: 900m, memory: 1Gi}}"}}}}},
		expect: []expectation{nodes(2), spread("web", hostKey, 2, 2)},
	}, {
		name: "runtime-class", rule: "a RuntimeClass' overhead counts, and its node selector holds", pools: []pool{{suffix: "plain", spec: []string{"weight: 5"}}, {suffix: "sandbox", labels: teamKey + ": sandbox"}},
		steps: []step{{
			objects: `{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: sandboxed}, handler: sandboxed, overhead: {podFixed: {cpu: 500m}}, scheduling: {nodeSelector: {` + teamKey + `: sandbox}}}`,
			pods:    []workload{{name: "web", count: 4, requests: "cpu: 400m", spec: []string{"runtimeClassName: sandboxed"}}}}},
		expect: []expectation{on("web", poolKey, "runtime-class-sandbox"), nodes(2)},
	}, {
		name: "gpu", rule: "machines with GPUs are launched for pods that ask for them, and for no others", pools: held(pool{types: []string{"g4dn.xlarge", "m5.large"}}),
		steps: []step{{pods: []workload{
			{name: "train", count: 2, requests: "cpu: 3500m", limits: "nvidia.com/gpu: 1"},
			{name: "web", count: 4}}, then: releaseFirst("m5.large", "web")}},
		expect: []expectation{on("train", typeKey, "g4dn.xlarge"), nodesWith(2, typeKey, "g4dn.xlarge"), nodesWith(2, typeKey, "m5.large"), nodes(4)},
	}, {
		name: "gpu-many", rule: "pods share a machine that has enough GPUs when that is cheaper", pools: []pool{{types: []string{"g4dn.xlarge", "g4dn.12xlarge"}}},
		steps:  []step{{pods: []workload{{name: "train", count: 1, requests: "cpu: 1", limits: "nvidia.com/gpu: 3"}}}},
		expect: []expectation{on("train", typeKey, "g4dn.12xlarge"), nodes(1)},
	}, {
		name: "max-pods", rule: "a node takes no more pods than its instance type has addresses for", pools: []pool{{types: []string{"t3.micro"}}},
		steps:  []step{{pods: []workload{{name: "web", count: 6, requests: "cpu: 10m, memory: 10Mi"}}}},
		expect: []expectation{nodes(2)},
	}, {
		name: "ephemeral-storage", rule: "requests for ephemeral storage count",
		steps:  []step{{pods: []workload{{name: "web", count: 4, requests: "cpu: 100m, ephemeral-storage: 7Gi"}}}},
		expect: []expectation{nodes(2), spread("web", hostKey, 2, 2)},
	}, {
		name: "mixed-sizes", rule: "large and small pods share nodes so that none needs another", pools: held(pool{types: []string{"m5.large", "m5.xlarge", "m5.2xlarge"}}),
		steps: []step{{pods: []workload{
			{name: "large", count: 3, requests: "cpu: 3, memory: 2Gi"},
			{name: "small", count: 8, requests: "cpu: 200m, memory: 500Mi"},
			{name: "fat", count: 1, requests: "cpu: 500m, memory: 20Gi"}}, then: (*play).release}},
	}}
}
