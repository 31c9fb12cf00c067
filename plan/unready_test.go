package plan_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan"
)

// A node that is neither Tenon's nor Ready offers no room, because it may never come back.
func TestNodesOfOthersThatAreNotReady(t *testing.T) {
	t.Parallel()
	foreign := func(ready bool, taints ...string) *plan.Node {
		return existing("n", "m6i.16xlarge", func(n *plan.Node) {
			n.Claim, n.Pool = "", ""
			n.Ready, n.Initialized = ready, ready
			for _, key := range taints {
				n.Taints = append(n.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule},
					corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute})
			}
		})
	}
	ours := func(initialized bool) *plan.Node {
		return existing("n", "m6i.16xlarge", func(n *plan.Node) {
			n.Ready, n.Initialized = false, initialized
			n.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
		})
	}
	tests := []struct {
		name, reason string
		node         *plan.Node
		placed       int
	}{
		{name: "unreachable", reason: "its kubelet is not heard of, and the taint says so", node: foreign(false, corev1.TaintNodeUnreachable)},
		{name: "not ready", reason: "the same where the kubelet itself says it", node: foreign(false, corev1.TaintNodeNotReady)},
		{name: "not ready and not tainted yet", reason: "the taint comes a moment later", node: foreign(false)},
		{name: "not ready before its cloud provider has seen it", reason: "it may join or not", node: foreign(false, "node.cloudprovider.kubernetes.io/uninitialized")},
		{name: "ready", reason: "others' nodes that work take pods", node: foreign(true), placed: 20},
		{name: "ready, still tainted", reason: "only our own nodes are known to lose such a taint", node: foreign(true, corev1.TaintNodeNotReady)},
		{name: "ours, starting", reason: "a node that is not initialized yet is about to be Ready", node: ours(false), placed: 20},
		{name: "ours, dead", reason: "a node that was initialized and is not Ready holds no room", node: ours(true)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := world{pods: manyPods(20, "a", "500m", "1Gi"), nodes: []*plan.Node{test.node}, pools: []plan.Pool{inPool(nodePool("p"), smallCatalogue())}}
			p := plan.Pack(w.input())
			if len(p.Placements) != test.placed {
				t.Errorf("%d pods are placed on the node, want %d: %s", len(p.Placements), test.placed, test.reason)
			}
			if bought := len(p.Claims) > 0; bought != (test.placed == 0) || len(p.Unplaced) > 0 {
				t.Errorf("%d claims are bought, and %d pods are left: %s", len(p.Claims), len(p.Unplaced), test.reason)
			}
		})
	}
}
