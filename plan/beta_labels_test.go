package plan_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/plan/model"
)

// Rules over a label that Kubernetes has renamed apply to its current name.
func TestRulesOverDeprecatedLabels(t *testing.T) {
	t.Parallel()
	const betaZone = corev1.LabelFailureDomainBetaZone
	web := func(n int, options ...func(*corev1.Pod)) []*corev1.Pod {
		return manyPods(n, "web", "900m", "1Gi", append([]func(*corev1.Pod){app("web")}, options...)...)
	}
	both := func(letter string) *plan.Node {
		return existing("n", "m6i.large", inZone(letter), func(n *plan.Node) {
			n.Allocatable.CPU, n.Labels[betaZone] = 300, n.Zone
		})
	}
	joining := func(n *plan.Node) {
		inZone("a")(n)
		n.Initialized = false
	}
	inFlight := existing("n", "m6i.large", func(n *plan.Node) {
		n.Name, n.Launched, n.Registered, n.Initialized, n.Ready = "", false, false, false, false
		n.Labels = map[string]string{karpv1.NodePoolLabelKey: "p"}
		n.Capacity, n.Allocatable = plan.Resources{}, plan.Resources{}
		n.Requirements = model.Term{among(corev1.LabelInstanceTypeStable, "m6i.large"), among(zone, "us-east-1b")}
	})
	tests := []relation{
		{name: "spread over zones", reason: "seven pods over three zones differ by one", pods: web(7, spreads(betaZone, 1)), by: zone, want: "a=3 b=2 c=2"},
		{name: "pods that run", reason: "a node with the label counts", pods: web(4, spreads(betaZone, 1)), nodes: []*plan.Node{both("a")},
			bound: map[string][]*corev1.Pod{"claim-n": runs("n", 2, app("web"))}, by: zone, want: "b=2 c=2"},
		{name: "a node that starts", reason: "it gets the old label with the new one", pods: web(1, spreads(betaZone, 1)), nodes: []*plan.Node{existing("n", "m6i.large", joining)}, by: zone, want: "a=1"},
		{name: "a claim in flight", reason: "its zone is known by the new label", pods: web(1, spreads(betaZone, 1)), nodes: []*plan.Node{inFlight}, by: capacityType, want: "on-demand=1"},
		{name: "both names", reason: "one pod may use the old name and the new one", pods: web(6, spreads(betaZone, 1), spreads(zone, 1)), by: zone, want: "a=2 b=2 c=2"},
		{name: "spread over architectures", reason: "half of them on each", pods: web(4, spreads("beta.kubernetes.io/arch", 1)), by: corev1.LabelArchStable, want: "amd64=2 arm64=2"},
		{name: "anti-affinity over zones", reason: "one in each zone", pods: web(3, avoids(betaZone, "")), by: zone, want: "a=1 b=1 c=1"},
		{name: "affinity over zones", reason: "all in one zone", pods: web(3, joins(betaZone, ""), selects(zone, "us-east-1b")), by: zone, want: "b=3"},
		{name: "spread over regions", reason: "there is only one", pods: web(3, spreads(corev1.LabelFailureDomainBetaRegion, 1), selects(zone, "us-east-1b")), by: zone, want: "b=3"},
	}
	for _, test := range tests {
		t.Run(test.name, test.run)
	}
}
