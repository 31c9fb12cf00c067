package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// packedTown is a cluster whose nodes were bought for its pods, without those that consolidation took away: of machines
// with eight cores at most.
func packedTown(t fataler, r *rand.Rand, catalogue []*cloud.InstanceType, pods int) *world {
	w := newTown(&world{pools: []plan.Pool{{NodePool: nodePool("default", onDemand(), requires("karpenter.k8s.aws/instance-cpu", corev1.NodeSelectorOpIn, "4", "8")), Types: catalogue}}})
	sizes := [][2]string{{"100m", "256Mi"}, {"250m", "512Mi"}, {"500m", "1Gi"}, {"750m", "3Gi"}, {"1", "2Gi"}, {"1500m", "4Gi"}}
	wishes := []func(*corev1.Pod){spreads(zone, 1), spreads(zone, 2, anyway), avoids(hostname, ""), selects(corev1.LabelArchStable, "amd64")}
	for len(wishes) < 12 {
		wishes = append(wishes, func(*corev1.Pod) {})
	}
	var batch []*corev1.Pod
	for made, work := 0, 0; made < pods; work++ {
		size := sizes[r.IntN(len(sizes))]
		shape := newPod("shape", size[0], size[1], app(fmt.Sprintf("work-%d", work)), wishes[work%len(wishes)])
		for range min(pods-made, 1+r.IntN(40)) {
			pod := shape.DeepCopy()
			pod.Name = fmt.Sprintf("pod-%d", made)
			pod.UID = "uid-" + types.UID(pod.Name)
			made++
			batch = append(batch, pod)
		}
		if len(batch) > pods/10 {
			w.provision(t, batch)
			batch = nil
		}
	}
	if len(batch) > 0 {
		w.provision(t, batch)
	}
	for range 40 {
		found := plan.Disrupt(w.input())
		going := map[string]bool{}
		for _, c := range found.Commands {
			for _, n := range c.Nodes {
				going[n] = true
			}
		}
		if len(going) == 0 {
			break
		}
		w.nodes = slices.DeleteFunc(w.nodes, func(n *plan.Node) bool { return going[n.Key()] })
	}
	return w.world
}
