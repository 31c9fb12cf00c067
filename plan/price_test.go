package plan_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan"
)

// mixes are batches of a thousand pods as found in clusters.
var mixes = []struct {
	name string
	pods func(r *rand.Rand) []*corev1.Pod
}{
	{"benchmark shapes", func(r *rand.Rand) []*corev1.Pod {
		return shaped(r, 1000, []string{"100m", "250m", "500m", "1", "1500m"}, []string{"100Mi", "256Mi", "512Mi", "1Gi", "2Gi", "4Gi"})
	}},
	{"small web", func(r *rand.Rand) []*corev1.Pod {
		return shaped(r, 1000, []string{"50m", "100m", "200m"}, []string{"64Mi", "128Mi", "256Mi"})
	}},
	{"jvm", func(r *rand.Rand) []*corev1.Pod {
		return shaped(r, 1000, []string{"500m", "1", "2"}, []string{"2Gi", "4Gi", "6Gi", "8Gi"})
	}},
	{"batch", func(r *rand.Rand) []*corev1.Pod {
		return shaped(r, 1000, []string{"1", "2", "4"}, []string{"1Gi", "2Gi", "4Gi"})
	}},
	{"large", func(r *rand.Rand) []*corev1.Pod {
		return shaped(r, 1000, []string{"3", "5", "7", "9"}, []string{"7Gi", "13Gi", "21Gi", "50Gi"})
	}},
	{"everything", func(r *rand.Rand) []*corev1.Pod {
		return shaped(r, 1000, []string{"20m", "100m", "300m", "700m", "1300m", "2900m", "6"},
			[]string{"30Mi", "200Mi", "700Mi", "1500Mi", "3Gi", "9Gi", "20Gi"})
	}},
}

func shaped(r *rand.Rand, count int, cpus, memories []string) []*corev1.Pod {
	pods := make([]*corev1.Pod, count)
	for i := range pods {
		pods[i] = newPod(fmt.Sprintf("pod-%04d", i), cpus[r.IntN(len(cpus))], memories[r.IntN(len(memories))])
	}
	return pods
}

// The cheapest way to buy for a thousand pods is within five percent of the lower bound.
func TestLeanPriceIsNearTheLowerBound(t *testing.T) {
	t.Parallel()
	catalogue := realCatalogue(t)
	pool := nodePool("default", onDemand(), requires("karpenter.k8s.aws/instance-category", corev1.NodeSelectorOpIn, "c", "m", "r"),
		requires("karpenter.k8s.aws/instance-generation", corev1.NodeSelectorOpGt, "2"))
	for i, mix := range mixes {
		t.Run(mix.name, func(t *testing.T) {
			t.Parallel()
			w := world{pods: mix.pods(rand.New(rand.NewPCG(uint64(i), 1))), pools: []plan.Pool{{NodePool: pool, Types: catalogue}}}
			in := w.input()
			in.Nominates = true
			in.Pools[0].Packing = plan.PackingCheapest
			lean, bound := plan.Pack(in).PricePerHour(), plan.LowerBound(in)
			t.Logf("$%.3f/h, %.4f times the bound", lean, lean/bound)
			if lean > 1.05*bound || lean < 0.9999*bound {
				t.Errorf("the leanest plan costs %.4f times the lower bound", lean/bound)
			}
		})
	}
}
