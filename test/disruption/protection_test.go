package disruption_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bufferv1 "github.com/tenon-sh/tenon/api/autoscaling/v1beta1"
)

// mayGo removes the do-not-disrupt annotation from pods.
const mayGo = `{"metadata":{"annotations":{"karpenter.sh/do-not-disrupt":null}}}`

// protectionScenarios are about annotations by which people protect their pods and nodes.
func protectionScenarios() []scenario {
	stay := workload{annotations: `karpenter.sh/do-not-disrupt: "true"`}
	return []scenario{{
		name: "pod-stays", rule: "a pod that is not to be disrupted keeps its node, until it may",
		steps: then(halfEmpty(2, stay), opened("0s"), keeps(everyNode, "Underutilized", "Pod", "web"), told("DisruptionBlocked", "web"), patchPods("web", mayGo), stays(1)),
		takes: takes{"Underutilized": 1},
	}, {
		name: "pod-stays-a-while", rule: "a pod that is not to be disrupted for some time keeps its node for so long from its start",
		steps: then(halfEmpty(2, workload{annotations: `karpenter.sh/do-not-disrupt: "150s"`}), opened("0s"), sinceStart, keeps(everyNode, "Underutilized", "Pod", "web"), stays(1), notBefore(149*time.Second)),
		takes: takes{"Underutilized": 1},
	}, {
		name: "pod-says-nonsense", rule: "a wish that nobody understands is told of and ignored",
		steps: then(halfEmpty(2, workload{annotations: `karpenter.sh/do-not-disrupt: "perhaps"`}), opened("0s"), stays(1), told("InvalidDoNotDisruptAnnotation", "perhaps")),
		takes: takes{"Underutilized": 1},
	}, {
		name: "daemon-stays", rule: "a DaemonSet's pod that is not to be disrupted keeps its node as well",
		steps: []step{deploy(workload{name: "web", count: 1}, workload{name: "agent", daemon: true, requests: tiny, annotations: stay.annotations}), scale("web", 0), opened("0s"),
			keeps(everyNode, "Empty", "Pod", "agent"), patchPods("agent", mayGo), serve(0)},
		takes: takes{"Empty": 1},
	}, {
		name: "node-stays", rule: "a node that is not to be disrupted stays",
		steps: []step{deploy(workload{name: "web", count: 1}), on("web", patchNode(`{"metadata":{"annotations":{"karpenter.sh/do-not-disrupt":"true"}}}`)), scale("web", 0), opened("0s"),
			keeps(everyNode, "Empty", "Node", "do-not-disrupt"), onMarked(patchNode(mayGo)), serve(0)},
		takes: takes{"Empty": 1},
	}, {
		name: "pdb-zero", rule: "a PodDisruptionBudget that allows no eviction keeps the node, until it does",
		steps: then(halfEmpty(2, workload{}), create(pdb("none", "web", "maxUnavailable: 0")), opened("0s"), keeps(everyNode, "Underutilized", "PDB", "none"), told("DisruptionBlocked", "none"), relax("none"), stays(1)),
		takes: takes{"Underutilized": 1},
	}, {
		name: "pdb-two", rule: "a pod that two PodDisruptionBudgets select cannot be evicted, whatever they allow, and keeps its node",
		steps: then(halfEmpty(2, workload{}), create(pdb("one", "web", "maxUnavailable: 1")+pdb("two", "web", "maxUnavailable: 1")), opened("0s"), keeps(everyNode, "Underutilized", "PDB", ""), relax("two"), stays(1)),
		takes: takes{"Underutilized": 1},
	}, {
		name: "pdb-unhealthy", rule: "an unhealthy pod does not keep its node where unhealthy pods may always be evicted",
		steps: then(halfEmpty(2, workload{}), create(pdb("all", "web", "minAvailable: 2")), unready("web"), opened("0s"), keeps(everyNode, "Underutilized", "PDB", "all"),
			func(p *play) {
				p.patch(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: p.name}}, "all", `{"spec":{"unhealthyPodEvictionPolicy":"AlwaysAllow"}}`)
			}, gone(1)),
		takes: takes{"Underutilized": 1},
	}, {
		name: "nominated", rule: "a node stays on which the kube-scheduler is making room for a pod",
		objects: `
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: SCENE-high}, value: 1000}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: SCENE-low}, value: 10}`,
		pools: []pool{{spec: []string{"limits: {nodes: 1}"}}},
		steps: []step{
			deploy(workload{name: "low", count: 1, requests: whole, annotations: `tenon.sh/termination-delay: "90s"`, spec: []string{"priorityClassName: nominated-low"}}), opened("0s"),
			launch(workload{name: "high", count: 1, requests: whole, spec: []string{"priorityClassName: nominated-high"}}),
			keeps(everyNode, "Empty", "Nominated", ""), scale("low", 0), serve(1)},
	}, {
		name: "minimum-age", rule: "a node that is younger than its NodePool demands stays", pools: []pool{{annotations: "tenon.sh/minimum-node-age: 180s"}},
		steps: []step{deploy(workload{name: "web", count: 1}), scale("web", 0), opened("0s"), keeps(everyNode, "Empty", "Quiet", "younger than 180s"), serve(0), old(179 * time.Second)},
		takes: takes{"Empty": 1},
	}}
}

// sinceStart lets later steps measure from the start of the scenario's first pod.
func sinceStart(p *play) {
	p.at = time.Now()
	for _, pod := range p.pods("web") {
		if pod.Status.StartTime != nil && pod.Status.StartTime.Time.Before(p.at) {
			p.at = pod.Status.StartTime.Time
		}
	}
}

// onMarked does something with each marked node.
func onMarked(act func(p *play, node string)) step {
	return func(p *play) {
		p.T.Helper()
		for _, node := range p.markedNodes() {
			act(p, node)
		}
	}
}

// unready makes the existing pods of a workload not ready.
func unready(workload string) step {
	return func(p *play) {
		p.T.Helper()
		for _, pod := range p.pods(workload) {
			// If only Ready were false, the kubelet would correct it, because the containers are ready.
			patch := `{"status":{"conditions":[{"type":"ContainersReady","status":"False"},{"type":"Ready","status":"False"}]}}`
			if err := p.Status().Patch(context.Background(), pod.DeepCopy(), client.RawPatch("application/strategic-merge-patch+json", []byte(patch))); err != nil {
				p.T.Fatal(err)
			}
		}
		p.Await("unready", p.within(), func() (bool, string) {
			for _, pod := range p.pods(workload) {
				if readyPod(&pod) {
					return false, pod.Name
				}
			}
			return true, fmt.Sprint(corev1.PodReady)
		})
	}
}

func spareBuffer() client.Object { return &bufferv1.CapacityBuffer{} }
