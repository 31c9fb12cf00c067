package plan_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan"
)

// While a node is being replaced, nothing is bought for the pods on it, and what is bought for other pods is no larger
// because of them. This holds for every caller, so that a plan and its explanation cannot differ.
func TestPodsThatAReplacementSeesTo(t *testing.T) {
	t.Parallel()
	marked := func(replacement string) *plan.Node {
		return existing("n", "m6i.2xlarge", func(n *plan.Node) { n.Disrupted, n.Deleting, n.Replacement = true, true, replacement })
	}
	moving := []*corev1.Pod{newPod("moving-1", "3", "1Gi"), newPod("moving-2", "3", "1Gi")}
	for _, pod := range moving {
		pod.Spec.NodeName, pod.Status.Conditions = "n", nil
	}
	tests := []struct {
		name, reason string
		node         *plan.Node
		pending      []*corev1.Pod
		bought       []types.UID
	}{
		{name: "a node that just goes", reason: "nobody else sees to its pods", node: marked(""), bought: []types.UID{"uid-moving-1", "uid-moving-2"}},
		{name: "a node that is replaced", reason: "its replacement is bought by those who replace it", node: marked("r1")},
		{name: "beside others", reason: "others are bought for all the same, and no more than they need", node: marked("r1"), pending: manyPods(1, "waits", "1", "1Gi"), bought: []types.UID{"uid-waits-0000"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := world{pods: test.pending, nodes: []*plan.Node{test.node}, bound: map[string][]*corev1.Pod{"claim-n": moving}, pools: []plan.Pool{inPool(nodePool("p"), smallCatalogue())}}
			packed := plan.Pack(w.input())
			var bought []types.UID
			for i := range packed.Claims {
				bought = append(bought, packed.Claims[i].Pods...)
			}
			slices.Sort(bought)
			if !slices.Equal(bought, test.bought) || len(packed.Unplaced) > 0 {
				t.Errorf("bought for %v, want %v, left %v: %s", bought, test.bought, packed.Unplaced, test.reason)
			}
		})
	}
}
