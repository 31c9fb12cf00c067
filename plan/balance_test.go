package plan_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// Under Balanced, a node is removed if the share of the pool's cost that it saves is at least half the share of the
// pool's disruption that it causes. All nodes here cost the same, and all pods fit on the largest.
func TestBalanced(t *testing.T) {
	t.Parallel()
	in := new(plan.Interner)
	sold := func(n *plan.Node) { n.Zone, n.CapacityType = "us-east-1a", "on-demand" }
	for _, tc := range []struct {
		reason string
		policy karpv1.ConsolidationPolicy
		// pods run on the node that may be removed, and others on each of the other nine.
		pods, others int
		goes         bool
	}{
		{reason: "as many pods as others have", policy: karpv1.ConsolidationPolicyBalanced, pods: 3, others: 3, goes: true},
		{reason: "somewhat more", policy: karpv1.ConsolidationPolicyBalanced, pods: 6, others: 3, goes: true},
		{reason: "many more", policy: karpv1.ConsolidationPolicyBalanced, pods: 12, others: 3, goes: false},
		{reason: "many more, where nobody weighs", policy: karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized, pods: 12, others: 3, goes: true},
	} {
		w := world{pools: []plan.Pool{{NodePool: nodePool("p", consolidates(tc.policy, 0)), Types: smallCatalogue()}}}
		fill := func(name string, count int, keep bool) []*corev1.Pod {
			var pods []*corev1.Pod
			for i := range count {
				pod := newPod(fmt.Sprintf("%s-%d", name, i), "100m", "64Mi")
				if keep {
					protects("true", 0)(pod)
				}
				pods = append(pods, pod)
			}
			return pods
		}
		w.nodes = append(w.nodes, existing("busy", "m6i.large", sold, running(in, fill("busy", tc.pods, false)...)))
		for i := range 9 {
			w.nodes = append(w.nodes, existing(fmt.Sprintf("n%d", i), "m6i.large", sold, running(in, fill(fmt.Sprintf("n%d", i), tc.others, true)...)))
		}
		d := plan.Disrupt(w.input())
		if goes := len(goingFor(d, underutilized)) == 1; goes != tc.goes {
			t.Errorf("%s: %+v %+v", tc.reason, d.Commands, verdictsOf(d, "claim-busy")[underutilized])
		}
		if weighs := tc.policy == karpv1.ConsolidationPolicyBalanced; tc.goes && strings.Contains(d.Commands[0].Why, "where consolidationPolicy Balanced demands 0.50") != weighs {
			t.Errorf("%s: the command says %q", tc.reason, d.Commands[0].Why)
		}
		if tc.goes {
			if len(d.Weighed) != 1 || !d.Weighed[0].Passes || !d.Weighed[0].Approved || d.Weighed[0].NodePool != "p" || d.Weighed[0].Policy != tc.policy ||
				(d.Weighed[0].Score != nil) != (tc.policy == karpv1.ConsolidationPolicyBalanced) {
				t.Errorf("%s: weighed %+v", tc.reason, d.Weighed)
			}
		}
		v := verdictsOf(d, "claim-busy")[underutilized]
		if !tc.goes && (v.Cause != plan.CausePolicy || !strings.Contains(v.Message, "Balanced demands 0.50")) {
			t.Errorf("%s: %+v", tc.reason, v)
		}
	}
}

// A replacement that saves too little for the pods it moves is weighed and rejected, in each NodePool by its own policy.
func TestBalancedRejects(t *testing.T) {
	t.Parallel()
	in := new(plan.Interner)
	sold := func(n *plan.Node) { n.Zone, n.CapacityType = "us-east-1a", "on-demand" }
	w := world{pools: []plan.Pool{{NodePool: nodePool("p", consolidates(karpv1.ConsolidationPolicyBalanced, 0)), Types: smallCatalogue()}}}
	var pods []*corev1.Pod
	for i := range 8 {
		pods = append(pods, newPod(fmt.Sprintf("busy-%d", i), "200m", "64Mi"))
	}
	w.nodes = append(w.nodes, existing("busy", "m6i.xlarge", sold, running(in, pods...)))
	for i := range 9 {
		pod := newPod(fmt.Sprintf("full-%d", i), "1850m", "64Mi")
		protects("true", 0)(pod)
		w.nodes = append(w.nodes, existing(fmt.Sprintf("n%d", i), "m6i.large", sold, running(in, pod)))
	}
	d := plan.Disrupt(w.input())
	if len(d.Commands) != 0 || len(d.Weighed) != 1 {
		t.Fatalf("commands %+v, weighed %+v, busy %+v", d.Commands, d.Weighed, verdictsOf(d, "claim-busy")[underutilized])
	}
	// All its price is 2/11 of the cost, for 9/27 of the disruption: that would score 0.55. What a cheaper node saves scores less.
	if got := d.Weighed[0]; got.Passes || got.Approved || got.Score == nil || *got.Score <= 0 || *got.Score >= 0.5 {
		t.Errorf("weighed %+v", got)
	}
}

// The cost of a node that its pool can no longer buy is unknown, so nothing can be weighed.
func TestBalancedWithoutPrice(t *testing.T) {
	t.Parallel()
	in := new(plan.Interner)
	w := world{pools: []plan.Pool{{NodePool: nodePool("p", consolidates(karpv1.ConsolidationPolicyBalanced, 0)), Types: smallCatalogue()}}, nodes: []*plan.Node{
		existing("a", "m6i.large", running(in, newPod("x", "100m", "1Mi"))), existing("b", "m6i.large", running(in, newPod("y", "100m", "1Mi")))}}
	d := plan.Disrupt(w.input())
	if v := verdictsOf(d, "claim-a")[underutilized]; len(d.Commands) > 0 || !strings.Contains(v.Message, "what it costs is not known") {
		t.Errorf("%+v %+v", d.Commands, v)
	}
}
