package plan_test

import (
	"slices"
	"testing"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// Of eight nodes with a large pod and nine with a small one, eight are not needed. One small pod is over, for which a
// machine is bought that is cheaper than the ninth, if there is such a machine.
func TestNodesGoForWhatIsBoughtForSmallPods(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		small  int
		sold   []string
		nodes  int
		bought []string
	}{
		"cheaper": {reason: "a small machine costs a fourth of what it saves", small: 9, sold: []string{"m5zn.xlarge", "c5a.large"}, nodes: 9, bought: []string{"c5a.large"}},
		"none":    {reason: "nothing cheaper is sold", small: 9, sold: []string{"m5zn.xlarge"}, nodes: 8},
		"few":     {reason: "few nodes go, where the kube-scheduler may do as it likes", small: 7, sold: []string{"m5zn.xlarge", "c5a.large"}, nodes: 7},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			types := slices.DeleteFunc(slices.Clone(realCatalogue(t)), func(typ *cloud.InstanceType) bool { return !slices.Contains(test.sold, typ.Name) })
			tn := newTown(&world{pools: []plan.Pool{{NodePool: nodePool("default", onDemand()), Types: types}}})
			claim := &plan.Claim{NodePool: "default", CapacityType: "on-demand", InstanceTypes: []string{"m5zn.xlarge"}, Zones: []string{"us-east-1a"}}
			for _, pod := range slices.Concat(manyPods(8, "large", "2700m", "1Gi"), manyPods(test.small, "small", "900m", "1Gi")) {
				tn.settle(pod, tn.build(t, claim))
			}
			var went int
			var bought []string
			commands := plan.Disrupt(tn.input()).Commands
			for _, c := range commands {
				went += len(c.Nodes)
				for i := range c.Replacements {
					bought = append(bought, c.Replacements[i].InstanceTypes[0])
					if !c.Late || !c.Apart {
						t.Errorf("%s: %s is not bought for small pods alone", test.reason, c.Replacements[i].InstanceTypes[0])
					}
				}
			}
			if went != test.nodes || !slices.Equal(bought, test.bought) {
				t.Errorf("%s: %d nodes go for %v, want %d for %v", test.reason, went, bought, test.nodes, test.bought)
			}
			if late := tn.carryOut(t, commands); late > 0 || tn.doubted > 0 {
				t.Errorf("%s: %d pods have no room, %d nodes were doubted", test.reason, late, tn.doubted)
			}
		})
	}
}
