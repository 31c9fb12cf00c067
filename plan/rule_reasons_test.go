package plan_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// If rules about other pods keep a pod out of every domain, the reason names the rule that binds.
func TestReasonsNameTheRule(t *testing.T) {
	t.Parallel()
	web := func(n int, options ...func(*corev1.Pod)) []*corev1.Pod {
		return manyPods(n, "web", "900m", "1Gi", append([]func(*corev1.Pod){app("web")}, options...)...)
	}
	full := func(name, letter string) *plan.Node {
		return existing(name, "m6i.large", inZone(letter), func(n *plan.Node) { n.Allocatable.CPU = 300 })
	}
	everywhere := []*plan.Node{full("n", "a"), full("o", "b"), full("q", "c")}
	inEach := func(options ...func(*corev1.Pod)) map[string][]*corev1.Pod {
		return map[string][]*corev1.Pod{"claim-n": runs("n", 1, options...), "claim-o": runs("o", 1, options...), "claim-q": runs("q", 1, options...)}
	}
	tests := []relation{
		{
			name: "minDomains", reason: "with three zones, minDomains of five lets maxSkew pods into each", pods: web(7, spreads(zone, 1, minDomains(5))), by: zone, want: "a=1 b=1 c=1", left: 4,
			why: "topology spread over " + zone + ": minDomains asks for 5 domains and there are 3, so that each takes 1 (maxSkew) at most",
		},
		{
			name: "minDomains with a skew of two", reason: "the number of pods in each is the skew", pods: web(7, spreads(zone, 2, minDomains(4))), by: zone, want: "a=2 b=2 c=2", left: 1,
			why: "minDomains asks for 4 domains and there are 3, so that each takes 2 (maxSkew) at most",
		},
		{
			name: "anti-affinity", reason: "each zone has a pod of the app", pods: web(1, avoids(zone, "")), nodes: everywhere, bound: inEach(app("web")), by: zone, want: "", left: 1,
			why: "pod anti-affinity over " + zone + ": every domain has a pod it has to be apart from",
		},
		{
			name: "anti-affinity of others", reason: "in each zone a pod runs that demands to be apart from it", pods: web(1), nodes: everywhere, bound: inEach(app("db"), avoids(zone, "web")), by: zone, want: "", left: 1,
			why: "every domain of " + zone + " has a pod whose anti-affinity keeps it away",
		},
		{
			name: "anti-affinity among themselves", reason: "one in each zone, and no fourth zone", pods: web(4, avoids(zone, "")), by: zone, want: "a=1 b=1 c=1", left: 1,
			why: "pod anti-affinity over " + zone + ": every domain has a pod it has to be apart from",
		},
		{
			name: "anti-affinity beside a spread", reason: "the spread would permit a fourth pod", pods: web(4, avoids(zone, ""), spreads(zone, 5)), by: zone, want: "a=1 b=1 c=1", left: 1,
			why: "pod anti-affinity over " + zone + ": every domain has a pod it has to be apart from",
		},
		{
			name: "anti-affinity beside a tight spread", reason: "all zones are equally full: it is not the spread", pods: web(4, avoids(zone, ""), spreads(zone, 1)), by: zone, want: "a=1 b=1 c=1", left: 1,
			why: "pod anti-affinity over " + zone + ": every domain has a pod it has to be apart from",
		},
		{
			name: "spread against anti-affinity", reason: "neither of them alone closes all zones", pods: web(1, avoids(zone, "db"), spreads(zone, 1)), nodes: everywhere[:2], by: zone, want: "", left: 1,
			bound: map[string][]*corev1.Pod{"claim-n": runs("n", 1, app("db")), "claim-o": runs("o", 1, app("web"))},
			pools: []*karpv1.NodePool{nodePool("p", requires(zone, corev1.NodeSelectorOpIn, "us-east-1a", "us-east-1b"))},
			why:   "no domain meets pod anti-affinity over " + zone + " and topology spread over " + zone + " (maxSkew 1) at once",
		},
	}
	for _, test := range tests {
		t.Run(test.name, test.run)
	}
}
