package plan_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan"
)

// Pods whose rules leave them little choice go first if other pods took it before.
func TestPodsThatLackANodeGoFirst(t *testing.T) {
	t.Parallel()
	const zone, host = corev1.LabelTopologyZone, corev1.LabelHostname
	for _, test := range []struct {
		name, reason string
		pods         []*corev1.Pod
		nodes        []*plan.Node
		claims       int
	}{
		{
			name: "left", reason: "pods that may choose follow those that may not into their zone",
			pods: append(manyPods(2, "free", "3", "4Gi", app("web"), joins(zone, "web")),
				newPod("bound", "1500m", "2Gi", app("web"), joins(zone, "web"), selects(zone, "us-east-1c"))),
			claims: 1,
		},
		{
			name: "dear", reason: "the pod that fits on the small node leaves the large one to those that fit nowhere else",
			pods: append(manyPods(3, "apart", "2500m", "2Gi", app("a"), avoids(host, "b")),
				newPod("guest", "3500m", "12Gi", app("b"), avoids(host, "b"))),
			nodes: []*plan.Node{existing("a", "m6i.2xlarge"), existing("b", "m6i.xlarge")},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := world{pods: test.pods, nodes: test.nodes, pools: []plan.Pool{inPool(nodePool("p", onDemand()), smallCatalogue())}}
			p := plan.Pack(w.input())
			check(t, &w, p)
			if len(p.Unplaced) > 0 || len(p.Claims) != test.claims {
				t.Errorf("%d pods left, %d claims, want %d: %s", len(p.Unplaced), len(p.Claims), test.claims, test.reason)
			}
		})
	}
}
