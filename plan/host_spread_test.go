package plan_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan"
)

// Spread over hosts compares existing nodes, as the kube-scheduler sees them: where all are equally full, each takes
// more. Nodes that are added start empty, and nodes that are removed become empty first.
func TestSpreadOverHostsThatAreThere(t *testing.T) {
	t.Parallel()
	web := func(n int, options ...func(*corev1.Pod)) []*corev1.Pod {
		return manyPods(n, "web", "100m", "64Mi", append([]func(*corev1.Pod){app("web")}, options...)...)
	}
	node := func(name string, options ...func(*plan.Node)) *plan.Node {
		return existing(name, "m6i.xlarge", options...)
	}
	three := []*plan.Node{node("n"), node("o"), node("q")}
	holding := func(n, o, q int) map[string][]*corev1.Pod {
		return map[string][]*corev1.Pod{"claim-n": runs("n", n, app("web")), "claim-o": runs("o", o, app("web")), "claim-q": runs("q", q, app("web"))}
	}
	tests := []relation{
		{name: "equally full", reason: "each node may have one more than the emptiest", pods: web(2, spreads(hostname, 1)), nodes: three, bound: holding(2, 2, 2), by: hostname, want: "1 1"},
		{name: "round after round", reason: "when all have one more, the next round begins", pods: web(7, spreads(hostname, 1)), nodes: three, bound: holding(1, 1, 1), by: hostname, want: "2 2 3"},
		{name: "not equally full", reason: "the emptiest is filled first", pods: web(3, spreads(hostname, 1)), nodes: three, bound: holding(2, 1, 0), by: hostname, want: "1 2"},
		{name: "minDomains", reason: "with fewer hosts than that the least counts as none", pods: web(2, spreads(hostname, 1, minDomains(4))), nodes: three, bound: holding(1, 1, 1), by: hostname, want: "1 1"},
		{name: "one goes", reason: "it is empty before it is gone", pods: web(2, spreads(hostname, 1)), nodes: []*plan.Node{node("n"), node("o"), node("q", func(n *plan.Node) { n.Deleting = true })},
			bound: holding(1, 1, 0), by: hostname, want: "1 1"},
		{name: "one is closed", reason: "a cordoned node is a host like any other", pods: web(2, spreads(hostname, 1)), nodes: []*plan.Node{node("n"), node("o"), node("q", func(n *plan.Node) { n.Cordoned = true })},
			bound: holding(1, 1, 0), by: hostname, want: "1 1"},
	}
	for _, test := range tests {
		t.Run(test.name, test.run)
	}
	t.Run("nothing is bought", func(t *testing.T) {
		t.Parallel()
		w := world{pods: web(2, spreads(hostname, 1)), nodes: three, bound: holding(2, 2, 2), pools: []plan.Pool{inPool(nodePool("p"), smallCatalogue())}}
		if p := plan.Pack(w.input()); len(p.Claims) != 0 {
			t.Errorf("%d nodes are bought for pods that the kube-scheduler would bind", len(p.Claims))
		}
	})
}
