package scheduling_test

import (
	"fmt"
	"strings"
)

// peers returns a term of pod affinity or anti-affinity: pods with these labels, in the same value of a key.
func peers(labels, key string, further ...string) string {
	fields := append([]string{fmt.Sprintf("labelSelector: {matchLabels: {%s}}, topologyKey: %s", labels, key)}, further...)
	return "{" + strings.Join(fields, ", ") + "}"
}

// with returns required affinity to pods; without returns required anti-affinity.
func with(terms ...string) string {
	return "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [" + strings.Join(terms, ", ") + "]}}"
}

func without(terms ...string) string {
	return "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [" + strings.Join(terms, ", ") + "]}}"
}

// ratherWith returns preferred affinity; ratherWithout returns preferred anti-affinity.
func ratherWith(term string) string {
	return "affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, podAffinityTerm: " + term + "}]}}"
}

func ratherWithout(term string) string {
	return "affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, podAffinityTerm: " + term + "}]}}"
}

// affinityScenarios are about affinity and anti-affinity between pods.
func affinityScenarios() []scenario {
	const tiny = "cpu: 300m, memory: 256Mi"
	large := []pool{{types: []string{"m5.large", "m5.xlarge", "m5.2xlarge"}}}
	return []scenario{{
		name: "anti-host", rule: "pods that repel each other by hostname get a node each",
		steps:  []step{{pods: []workload{{name: "web", count: 4, requests: tiny, spec: []string{without(peers("app: web", hostKey))}}}}},
		expect: []expectation{spread("web", hostKey, 1, 1, 1, 1), nodes(4)},
	}, {
		name: "anti-zone", rule: "pods that repel each other by zone get a zone each, and the one too many is told",
		steps:  []step{{pods: []workload{{name: "web", count: 4, bound: 3, requests: tiny, spec: []string{without(peers("app: web", zoneKey))}, stays: "anti-affinity"}}}},
		plans:  1,
		expect: []expectation{nodes(3)},
	}, {
		name: "anti-others", rule: "pods are kept from the nodes of others that they repel",
		steps: []step{{pods: []workload{
			{name: "noisy", count: 2, requests: tiny},
			{name: "quiet", count: 2, requests: tiny, spec: []string{without(peers("app: noisy", hostKey))}}}}},
		expect: []expectation{apart(hostKey, "noisy", "quiet")},
	}, {
		name: "anti-inverse", rule: "pods that are repelled by others which run already stay away", plans: 2,
		steps: []step{
			{pods: []workload{{name: "quiet", count: 1, requests: tiny, spec: []string{without(peers("app: noisy", hostKey))}}}},
			{pods: []workload{{name: "noisy", count: 2, requests: tiny}}}},
		expect: []expectation{apart(hostKey, "noisy", "quiet"), nodes(2)},
	}, {
		name: "anti-inverse-zone", rule: "pods that are repelled from a whole zone get nodes in another", plans: 2,
		steps: []step{
			{pods: []workload{{name: "quiet", count: 1, requests: tiny, spec: []string{without(peers("app: noisy", zoneKey))}, selector: zoneKey + ": us-east-1a"}}},
			{pods: []workload{{name: "noisy", count: 2, requests: tiny}}}},
		expect: []expectation{apart(zoneKey, "noisy", "quiet"), nodes(2)},
	}, {
		name: "with-host", rule: "pods that want to be together on a node get one that is large enough", pools: large,
		steps:  []step{{pods: []workload{{name: "web", count: 5, spec: []string{with(peers("app: web", hostKey))}}}}},
		expect: []expectation{together(hostKey, "web"), nodes(1)},
	}, {
		name: "with-zone", rule: "pods that want to be together in a zone start in one, and stay in it",
		steps:  []step{{pods: []workload{{name: "web", count: 6, spec: []string{with(peers("app: web", zoneKey))}}}}},
		expect: []expectation{together(zoneKey, "web"), nodes(3)},
	}, {
		name: "with-others", rule: "pods follow others to their zone", plans: 2,
		steps: []step{
			{pods: []workload{{name: "data", count: 2, selector: zoneKey + ": us-east-1c"}}},
			{pods: []workload{{name: "web", count: 2, spec: []string{with(peers("app: data", zoneKey))}}}}},
		expect: []expectation{together(zoneKey, "web", "data"), nodes(2)},
	}, {
		name: "with-others-at-once", rule: "pods follow others that come at the same time",
		steps: []step{{pods: []workload{
			{name: "web", count: 4, spec: []string{with(peers("app: data", zoneKey))}},
			{name: "data", count: 1}}}},
		expect: []expectation{together(zoneKey, "web", "data")},
	}, {
		name: "with-others-host", rule: "a helper goes to the node of the pod it helps",
		pools: []pool{{types: []string{"m5.large", "m5.xlarge"}}},
		steps: []step{{pods: []workload{
			{name: "main", count: 1, requests: "cpu: 1, memory: 1Gi"},
			{name: "helper", count: 2, requests: tiny, spec: []string{with(peers("app: main", hostKey))}}}}},
		expect: []expectation{together(hostKey, "main", "helper"), nodes(1)},
	}, {
		name: "with-nobody", rule: "pods that want to be with others which do not exist stay, and are told", plans: noPlan,
		steps: []step{{pods: []workload{{name: "web", count: 2, spec: []string{with(peers("app: nobody", zoneKey))}, stays: "affinity"}}}},
	}, {
		name: "with-and-without", rule: "together in a zone and apart on nodes",
		steps: []step{{pods: []workload{{name: "web", count: 3, requests: tiny, spec: []string{
			"affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [" + peers("app: web", zoneKey) + "]}, podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [" + peers("app: web", hostKey) + "]}}"}}}}},
		expect: []expectation{together(zoneKey, "web"), spread("web", hostKey, 1, 1, 1), nodes(3)},
	}, {
		name: "anti-namespaces", rule: "a term counts pods of the namespaces it names, and its own alone where it names none", plans: 2,
		steps: []step{
			{objects: otherNamespace("anti-namespaces-far", "anti-namespaces", "role: far"), then: func(p *play) { p.awaitNode(1) }},
			{pods: []workload{
				{name: "near", count: 1, requests: tiny, spec: []string{without(peers("app: far", hostKey))}},
				{name: "web", count: 1, requests: tiny, spec: []string{without(peers("app: far", hostKey, "namespaces: [anti-namespaces-far]"))}}}}},
		expect: []expectation{nodes(2), elsewhere("web")},
	}, {
		name: "anti-namespace-selector", rule: "a term counts pods of the namespaces that its selector finds", plans: 2,
		steps: []step{
			{objects: otherNamespace("anti-namespace-selector-far", "anti-namespace-selector", "role: distant"), then: func(p *play) { p.awaitNode(1) }},
			{pods: []workload{{name: "near", count: 1, requests: tiny, spec: []string{without(peers("app: far", hostKey))}}, {name: "web", count: 1, requests: tiny, spec: []string{without(peers("app: far", hostKey, "namespaceSelector: {matchLabels: {role: distant}}"))}}}}},
		expect: []expectation{nodes(2), elsewhere("web")},
	}, {
		name: "anti-match-keys", rule: "matchLabelKeys has each revision repel itself alone",
		steps: []step{{pods: []workload{
			{name: "old", count: 2, requests: tiny, labels: "part: shop, rev: a", spec: []string{without(peers("part: shop", hostKey, "matchLabelKeys: [rev]"))}},
			{name: "new", count: 2, requests: tiny, labels: "part: shop, rev: b", spec: []string{without(peers("part: shop", hostKey, "matchLabelKeys: [rev]"))}}}}},
		expect: []expectation{spread("old", hostKey, 1, 1), spread("new", hostKey, 1, 1), nodes(2)},
	}, {
		name: "anti-mismatch-keys", rule: "mismatchLabelKeys keeps tenants from each other's nodes, and not from their own",
		steps: []step{{pods: []workload{
			{name: "one", count: 2, requests: tiny, labels: "kind: job, tenant: one", spec: []string{without(peers("kind: job", hostKey, "mismatchLabelKeys: [tenant]"))}},
			{name: "two", count: 2, requests: tiny, labels: "kind: job, tenant: two", spec: []string{without(peers("kind: job", hostKey, "mismatchLabelKeys: [tenant]"))}}}}},
		expect: []expectation{apart(hostKey, "one", "two"), nodes(2)},
	}}
}

// otherNamespace returns a namespace with a label, and in it a pod of the app far on the scenario's nodes.
func otherNamespace(name, scene, label string) string {
	return fmt.Sprintf(`
{apiVersion: v1, kind: Namespace, metadata: {name: %[1]s, labels: {%[3]s}}}
---
{apiVersion: v1, kind: Pod, metadata: {namespace: %[1]s, name: far, labels: {app: far}}, spec: {terminationGracePeriodSeconds: 1, nodeSelector: {%[4]s: %[2]s},
  containers: [{name: app, image: app, resources: {requests: {cpu: 300m}}}]}}
`, name, scene, label, sceneLabel)
}

// awaitNode waits until this many nodes accept pods.
func (p *play) awaitNode(want int) {
	p.T.Helper()
	p.Await("a node ready", settleWithin, func() (bool, string) {
		o := p.outcome()
		for _, n := range o.nodes {
			if len(n.Spec.Taints) > 0 {
				return false, fmt.Sprint(n.Spec.Taints)
			}
		}
		return len(o.nodes) == want, fmt.Sprintf("%d nodes", len(o.nodes))
	})
}

// elsewhere expects that no pod of a workload is on the oldest node.
func elsewhere(workload string) expectation {
	return func(o *outcome) error {
		oldest := o.nodes[0]
		for _, n := range o.nodes {
			if n.CreationTimestamp.Before(&oldest.CreationTimestamp) {
				oldest = n
			}
		}
		for _, pod := range o.pods[workload] {
			if pod.Spec.NodeName == oldest.Name {
				return fmt.Errorf("%s is on %s, the first node", pod.Name, oldest.Name)
			}
		}
		return nil
	}
}
