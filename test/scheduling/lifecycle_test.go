package scheduling_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// patchPods changes the pods of a workload by strategic merge patch.
func (p *play) patchPods(l workload, patch string) {
	p.T.Helper()
	for i := range l.count {
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name = p.name, fmt.Sprintf("%s-%d", l.name, i)
		if err := p.Patch(p.Context(), pod, client.RawPatch(types.StrategicMergePatchType, []byte(patch))); err != nil {
			p.T.Fatal(err)
		}
	}
}

// patchNodes changes the scenario's nodes by merge patch.
func (p *play) patchNodes(patch string) {
	p.T.Helper()
	for _, n := range p.outcome().nodes {
		node := &corev1.Node{}
		node.Name = n.Name
		if err := p.Patch(p.Context(), node, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			p.T.Fatal(err)
		}
	}
}

// awaitClaims waits until this many claims exist.
func (p *play) awaitClaims(want int) {
	p.T.Helper()
	p.Await(fmt.Sprintf("%d claims", want), settleWithin, func() (bool, string) {
		there, _ := p.view.claims(p.name)
		return len(there) >= want, fmt.Sprint(there)
	})
}

// release waits until the machines of all claims have joined, and removes the startup taint from them, as the agent that
// sets it would. So the kube-scheduler sees all nodes of a plan before it binds the first pod, like the plan: on nodes that
// join one by one, even a strict spread allows all pods on the first.
func (p *play) release() {
	p.T.Helper()
	p.awaitJoined()
	p.untaint(func(corev1.Node) bool { return true })
}

// releaseFirst is like release, but lets the nodes of one instance type take a workload's pods before any other node accepts
// pods. It is for pods that would also fit on nodes which other pods need: the kube-scheduler binds in any order, and plans
// nothing.
func releaseFirst(instanceType, workload string) func(*play) {
	return func(p *play) {
		p.T.Helper()
		p.awaitJoined()
		p.untaint(func(n corev1.Node) bool { return n.Labels[typeKey] == instanceType })
		p.Await("pods of "+workload+" bound", settleWithin, func() (bool, string) {
			waiting := 0
			for _, pod := range p.outcome().pods[workload] {
				if pod.Spec.NodeName == "" {
					waiting++
				}
			}
			return waiting == 0, fmt.Sprintf("%d wait", waiting)
		})
		p.untaint(func(corev1.Node) bool { return true })
	}
}

// awaitJoined waits until the machines of all claims have joined, including some new ones since the last time.
func (p *play) awaitJoined() {
	p.T.Helper()
	p.Await("every claim's node registered", settleWithin, func() (bool, string) {
		there, _ := p.view.claims(p.name)
		registered := 0
		for _, n := range p.outcome().nodes {
			if n.Labels[karpv1.NodeRegisteredLabelKey] == "true" {
				registered++
			}
		}
		if all := len(there) > p.released && registered == len(there); all {
			p.released = registered
			return true, ""
		}
		return false, fmt.Sprintf("%d of %d", registered, len(there))
	})
}

// untaint removes the startup taint from nodes.
func (p *play) untaint(which func(corev1.Node) bool) {
	p.T.Helper()
	for _, n := range p.outcome().nodes {
		if !which(n) {
			continue
		}
		fresh := &corev1.Node{}
		p.Await("the taint off", settleWithin, func() (bool, string) {
			if err := p.Get(p.Context(), client.ObjectKeyFromObject(&n), fresh); err != nil {
				return false, err.Error()
			}
			before := fresh.DeepCopy()
			fresh.Spec.Taints = nil
			for _, taint := range before.Spec.Taints {
				if taint.Key != "starting" {
					fresh.Spec.Taints = append(fresh.Spec.Taints, taint)
				}
			}
			err := p.Patch(p.Context(), fresh, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
			return err == nil, fmt.Sprint(err)
		})
	}
}

// lifecycleScenarios are about pods and nodes that come and go.
func lifecycleScenarios() []scenario {
	gated := workload{name: "gated", count: 4, spec: []string{"schedulingGates: [{name: example.com/quota}]"}}
	classes := `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: %[1]s-high}, value: 1000}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: %[1]s-low}, value: 10}
`
	return []scenario{{
		name: "room-left", rule: "pods that fit on nodes which are there launch nothing",
		steps:  []step{{pods: []workload{{name: "first", count: 3}}}, {pods: []workload{{name: "second", count: 1}}}},
		expect: []expectation{nodes(2)},
	}, {
		name: "room-coming", rule: "pods that fit on nodes which are on their way launch nothing",
		steps: []step{{pods: []workload{{name: "first", count: 3}}, then: func(p *play) {
			p.awaitClaims(2)
			late := workload{name: "late", count: 1}
			p.create(late.manifests(p.name))
			p.created = append(p.created, late)
		}}},
		expect: []expectation{nodes(2)},
	}, {
		name: "cordoned", rule: "a cordoned node takes no more pods", plans: 2,
		steps: []step{
			{pods: []workload{{name: "first", count: 1}}},
			{act: func(p *play) { p.patchNodes(`{"spec": {"unschedulable": true}}`) }, pods: []workload{{name: "second", count: 1}}}},
		expect: []expectation{nodes(2), apart(hostKey, "first", "second")},
	}, {
		name: "startup-taint", rule: "a startup taint delays pods and launches no second node for them", pools: held(pool{}),
		steps:  []step{{pods: []workload{{name: "web", count: 4}}, then: (*play).release}},
		expect: []expectation{nodes(2)},
	}, {
		name: "gates", rule: "nothing is launched for pods with scheduling gates until they are lifted", plans: 2,
		steps: []step{
			{pods: []workload{{name: "open", count: 2}}, act: func(p *play) { p.create(gated.manifests(p.name)) }},
			{act: func(p *play) {
				if there, _ := p.view.claims(p.name); len(there) != 1 {
					p.T.Errorf("with gated pods waiting, there are %d claims, want 1", len(there))
				}
				p.created = append(p.created, gated)
				p.patchPods(gated, `{"spec": {"schedulingGates": [{"$patch": "replace"}]}}`)
			}}},
		expect: []expectation{nodes(3)},
	}, {
		name: "claim-deleted", rule: "the pods of a node that goes away get another", plans: 2,
		steps: []step{
			{pods: []workload{{name: "web", count: 2, deployed: true}}},
			{act: func(p *play) {
				there, _ := p.view.claims(p.name)
				p.remove("karpenter.sh/v1", "NodeClaim", there[0])
			}, then: func(p *play) {
				p.Await("another node in the place of the first", settleWithin, func() (bool, string) {
					there, gone := p.view.claims(p.name)
					o := p.outcome()
					return len(there) == 1 && len(gone) == 1 && len(o.nodes) == 1 && o.nodes[0].DeletionTimestamp.IsZero() && len(o.claimed) == 1,
						fmt.Sprintf("there: %v, gone: %v, %d nodes", there, gone, len(o.nodes))
				})
			}}},
		expect: []expectation{nodes(1), spread("web", hostKey, 2)},
	}, {
		name: "nominated", rule: "the kube-scheduler is told where planned pods are expected, and large and small ones find their places",
		pools: []pool{{types: []string{"m5.large", "c5.large", "r5.large", "m5.xlarge"}}},
		steps: []step{{pods: []workload{
			{name: "small", count: 4, requests: "cpu: 300m, memory: 500Mi"},
			{name: "broad", count: 2, requests: "cpu: 1500m, memory: 1Gi"},
			{name: "tall", count: 1, requests: "cpu: 1, memory: 12Gi"}}}},
		expect: []expectation{expected("small", "broad", "tall")},
	}, {
		name: "priority-limit", rule: "when a limit binds, pods with the higher priority come first", pools: []pool{{spec: []string{"limits: {cpu: 2}"}}},
		steps: []step{{objects: fmt.Sprintf(classes, "priority-limit"), pods: []workload{
			{name: "low", count: 2, spec: []string{"priorityClassName: priority-limit-low"}, stays: "limit cpu 2"},
			{name: "high", count: 2, spec: []string{"priorityClassName: priority-limit-high"}}}}},
		expect: []expectation{nodes(1)},
	}, {
		name: "preemption", rule: "nothing is launched for a pod that preempts others, but for those it drives away", plans: 2,
		steps: []step{
			{objects: fmt.Sprintf(classes, "preemption"), pods: []workload{{name: "low", count: 1, requests: whole, deployed: true, spec: []string{"priorityClassName: preemption-low"}}}},
			{pods: []workload{{name: "high", count: 1, requests: whole, spec: []string{"priorityClassName: preemption-high"}}}}},
		expect: []expectation{nodes(2), apart(hostKey, "low", "high")},
	}, {
		name: "buffer", rule: "a CapacityBuffer holds room ready, which pods take at once and which is then made again", plans: 2, spare: 1,
		steps: []step{
			{objects: fmt.Sprintf(`
{apiVersion: v1, kind: PodTemplate, metadata: {name: room}, template: {metadata: {labels: {app: web}}, spec: {nodeSelector: {%s: buffer}, containers: [{name: app, image: app, resources: {requests: {%s}}}]}}}
---
{apiVersion: autoscaling.x-k8s.io/v1beta1, kind: CapacityBuffer, metadata: {name: spare}, spec: {podTemplateRef: {name: room}, replicas: 2}}
`, sceneLabel, half), then: func(p *play) { p.awaitNode(1) }},
			{pods: []workload{{name: "web", count: 2}}, then: func(p *play) { p.awaitNode(2) }}},
		expect: []expectation{together(hostKey, "web"), nodes(2)},
	}, {
		name: "static", rule: "a NodePool with replicas has so many nodes before any pod comes", spare: 1, pools: []pool{{spec: []string{"replicas: 2"}}},
		steps: []step{
			{then: func(p *play) { p.awaitNode(2) }},
			{pods: []workload{{name: "web", count: 1}}}},
		expect: []expectation{nodes(2)},
	}}
}
