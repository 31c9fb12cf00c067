package plan_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan"
)

// rootVolume is the hourly price of a gp3 volume of 20 GiB.
const rootVolume = 0.0022

// withoutRequests returns pods that request nothing, as many manifests do.
func withoutRequests(count int) []*corev1.Pod {
	pods := manyPods(count, "plain", "0", "0")
	for _, pod := range pods {
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	}
	return pods
}

// TestFewNodes checks that machines are not all that counts: where each node has a price of its own, or pods request
// next to nothing, a few nodes do. The batches are those of Karpenter's suites.
func TestFewNodes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason  string
		pods    []*corev1.Pod
		price   float64
		packing plan.Packing
		most    int
	}{
		"NoRequests": {reason: "pods that ask for nothing need addresses, and two nodes that have enough of them beside a third",
			pods: withoutRequests(50), price: rootVolume, packing: plan.PackingSpread, most: 3},
		"NoRequestsCheapest": {reason: "whoever wants it cheapest gets no more nodes than the volumes are worth", pods: withoutRequests(50),
			price: rootVolume, packing: plan.PackingCheapest, most: 3},
		"OneCore": {reason: "five cores are one machine, or three where no node is to carry more than a third",
			pods: manyPods(5, "one", "1", "0"), price: rootVolume, packing: plan.PackingSpread, most: 3},
		"OneCoreCheapest": {reason: "machines of a family cost the same by the core, so that one volume decides",
			pods: manyPods(5, "one", "1", "0"), price: rootVolume, packing: plan.PackingCheapest, most: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := nodePool("default", onDemand(), requires("karpenter.k8s.aws/instance-category", corev1.NodeSelectorOpIn, "c", "m", "r"),
				requires("karpenter.k8s.aws/instance-generation", corev1.NodeSelectorOpGt, "2"))
			w := &world{pods: test.pods, pools: []plan.Pool{{NodePool: pool, Types: realCatalogue(t), NodePrice: test.price, Packing: test.packing}}}
			for _, nominates := range []bool{true, false} {
				in := w.input()
				in.Nominates = nominates
				found := plan.Pack(in)
				var types []string
				for i := range found.Claims {
					types = append(types, found.Claims[i].InstanceTypes[0])
				}
				slices.Sort(types)
				if len(found.Unplaced) > 0 || len(types) > test.most {
					t.Errorf("nominates %t: %d nodes %v for $%.4f an hour, %d pods left; want at most %d nodes: %s", nominates, len(types), types, found.PricePerHour(), len(found.Unplaced), test.most, test.reason)
				}
				t.Logf("nominates %t: %v for $%.4f an hour", nominates, types, found.PricePerHour())
			}
		})
	}
}
