package plan_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// Among pools of one weight the cheapest machine wins, and the first name among equals, in whatever order they are
// given.
func TestEqualWeights(t *testing.T) {
	t.Parallel()
	family := func(name string) func(*karpv1.NodePool) {
		return requires("karpenter.k8s.aws/instance-family", corev1.NodeSelectorOpIn, name)
	}
	tests := []struct {
		name, reason string
		pools        []*karpv1.NodePool
		want         map[string]int // claims by pool
	}{
		{name: "alike", reason: "the first name of the alphabet", pools: []*karpv1.NodePool{nodePool("b"), nodePool("a"), nodePool("c")},
			want: map[string]int{"a": 2}},
		{name: "alike with weights", reason: "the first name among the heaviest",
			pools: []*karpv1.NodePool{nodePool("a"), nodePool("c", weighs(7)), nodePool("b", weighs(7))}, want: map[string]int{"b": 2}},
		{name: "one is cheaper", reason: "its machines cost less",
			pools: []*karpv1.NodePool{nodePool("a", family("r6i")), nodePool("b", family("m6g"))}, want: map[string]int{"b": 2}},
		{name: "one is limited", reason: "what its limit leaves goes to the other",
			pools: []*karpv1.NodePool{nodePool("a", limit(karpv1.ResourceNodes, "1")), nodePool("b")}, want: map[string]int{"a": 1, "b": 1}},
		{name: "no weight is zero", reason: "a pool without weight is lighter than any with one",
			pools: []*karpv1.NodePool{nodePool("a"), nodePool("b", weighs(1))}, want: map[string]int{"b": 2}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for range 2 {
				w := world{pods: manyPods(2, "a", "61", "1Gi")}
				for _, pool := range test.pools {
					w.pools = append(w.pools, inPool(pool, smallCatalogue()))
				}
				p := plan.Pack(w.input())
				check(t, &w, p)
				got := map[string]int{}
				for _, c := range p.Claims {
					got[c.NodePool]++
				}
				if fmt.Sprint(got) != fmt.Sprint(test.want) {
					t.Errorf("claims by pool %v, want %v: %s", got, test.want, test.reason)
				}
				slices.Reverse(test.pools)
			}
		})
	}
}
