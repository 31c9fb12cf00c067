package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// crowdedWorld is a cluster of mostly full nodes of common types, whose pods belong to workloads of all kinds: a fifth
// are spread over zones, and a tenth each are spread over hosts, kept apart, kept together, or restricted to certain
// nodes.
func crowdedWorld(r *rand.Rand, catalogue []*cloud.InstanceType, nodes, pods int) *world {
	w := newTown(&world{pools: []plan.Pool{{NodePool: nodePool("default", onDemand()), Types: catalogue}}})
	var kinds []*cloud.InstanceType
	for _, name := range []string{"m5.xlarge", "m5.2xlarge", "c5.2xlarge", "r5.xlarge", "m6i.2xlarge", "c6i.4xlarge", "m7g.2xlarge", "r6g.xlarge"} {
		if typ := pool(w.pools[0]).typeNamed(name); typ != nil {
			kinds = append(kinds, typ)
		}
	}
	for i := range nodes {
		name := fmt.Sprintf("node-%05d", i)
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim-" + name, Labels: map[string]string{karpv1.NodePoolLabelKey: "default"}}}
		w.place(claim, kinds[r.IntN(len(kinds))], threeZones[i%3], "on-demand", name)
	}
	free := make([]plan.Resources, nodes)
	for i, n := range w.nodes {
		free[i] = n.Allocatable
	}
	sizes := [][2]string{{"100m", "256Mi"}, {"250m", "512Mi"}, {"500m", "1Gi"}, {"750m", "3Gi"}, {"1", "2Gi"}}
	var wishes []func(*corev1.Pod)
	for range 10 {
		wishes = append(wishes, func(*corev1.Pod) {})
	}
	copy(wishes, []func(*corev1.Pod){spreads(zone, 1), spreads(zone, 2, anyway), spreads(hostname, 1), avoids(hostname, ""), joins(zone, ""), selects(corev1.LabelArchStable, "amd64")})
	for made, work := 0, 0; made < pods; work++ {
		size := sizes[r.IntN(len(sizes))]
		shape := newPod("shape", size[0], size[1], app(fmt.Sprintf("work-%d", work)), wishes[work%len(wishes)])
		for replica := range min(pods-made, 1+r.IntN(40)) {
			pod := shape.DeepCopy()
			pod.Name = fmt.Sprintf("pod-%d", made)
			pod.UID = "uid-" + types.UID(pod.Name)
			made++
			need := w.interner().Pod(pod).Class.Requests
			for range 50 {
				i := r.IntN(nodes)
				switch work % 10 {
				case 0:
					i = i/3*3 + replica%3
				case 4:
					i = i/3*3 + work%3
				}
				if i >= nodes || (work%10 == 2 || work%10 == 3) && slices.ContainsFunc(w.bound[w.nodes[i].Key()], func(p *corev1.Pod) bool { return p.Labels["app"] == pod.Labels["app"] }) {
					continue
				}
				if free[i].CPU < need.CPU || free[i].Memory < need.Memory || wishes[work%len(wishes)] != nil && shape.Spec.NodeSelector != nil && w.nodes[i].Labels[corev1.LabelArchStable] != "amd64" {
					continue
				}
				free[i].CPU, free[i].Memory = free[i].CPU-need.CPU, free[i].Memory-need.Memory
				w.settle(pod, w.nodes[i])
				break
			}
		}
	}
	return w.world
}

func BenchmarkDisrupt(b *testing.B) {
	for _, size := range [][2]int{{1000, 10000}, {5000, 50000}} {
		b.Run(fmt.Sprintf("nodes=%d/pods=%d", size[0], size[1]), func(b *testing.B) {
			in := crowdedWorld(rand.New(rand.NewPCG(3, 3)), realCatalogue(b), size[0], size[1]).input()
			var found plan.Disruption
			b.ReportAllocs()
			for b.Loop() {
				found = plan.Disrupt(in)
			}
			replaced, saves := 0, 0.0
			for _, c := range found.Commands {
				saves += c.SavesPerHour
				if len(c.Replacements) > 0 {
					replaced++
				}
			}
			b.ReportMetric(float64(len(found.Commands)), "commands")
			b.ReportMetric(float64(replaced), "replaced")
			b.ReportMetric(saves, "$/h")
		})
	}
}
