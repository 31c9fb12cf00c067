package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// packedTown is a cluster whose nodes were bought for its pods, without those that consolidation took away: of machines
// with eight cores at most.
func packedTown(t fataler, r *rand.Rand, catalogue []*cloud.InstanceType, pods int, sizes ...[2]string) *world {
	w := newTown(&world{pools: []plan.Pool{{NodePool: nodePool("default", onDemand(), requires("karpenter.k8s.aws/instance-cpu", corev1.NodeSelectorOpIn, "4", "8")), Types: catalogue}}})
	sizes = append(sizes, [][2]string{{"250m", "512Mi"}, {"500m", "1Gi"}, {"750m", "3Gi"}, {"1", "2Gi"}, {"1500m", "4Gi"}}...)
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
	for range 10 {
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

// One pod comes or goes between two evaluations of a cluster in which nothing is to be done.
func BenchmarkDisruptAgain(b *testing.B) {
	for _, pods := range []int{10000, 50000} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) {
			r := rand.New(rand.NewPCG(3, 3))
			l := live(packedTown(b, r, realCatalogue(b), pods))
			var memory plan.Memory
			for found := memory.Disrupt(l.look()); len(found.Commands) > 0; found = memory.Disrupt(l.look()) {
				for i := range found.Commands {
					for _, key := range found.Commands[i].Nodes {
						l.in.Held[key] = plan.Hold{Until: l.at.Add(time.Hour)}
					}
				}
			}
			var again, scratch []time.Duration
			var left *corev1.Pod
			key := ""
			commands := 0
			for b.Loop() {
				if left == nil {
					key = l.nodes[r.IntN(len(l.nodes))].Key()
					left, l.bound[key] = l.bound[key][0], slices.Clone(l.bound[key][1:])
				} else {
					left, l.bound[key] = nil, append(slices.Clone(l.bound[key]), left)
				}
				in := l.look()
				began := time.Now()
				commands += len(memory.Disrupt(in).Commands)
				again = append(again, time.Since(began))
				if len(scratch) < 3 {
					began = time.Now()
					plan.Disrupt(in)
					scratch = append(scratch, time.Since(began))
				}
			}
			slices.Sort(again)
			slices.Sort(scratch)
			first, then := scratch[len(scratch)/2], again[len(again)/2]
			recalled, asked, _ := memory.Recalled()
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(len(l.nodes)), "nodes")
			b.ReportMetric(float64(commands)/float64(len(again)), "commands")
			b.ReportMetric(float64(recalled), "recalled")
			b.ReportMetric(float64(asked), "asked")
			b.ReportMetric(float64(first.Microseconds())/1000, "ms-from-scratch")
			b.ReportMetric(float64(then.Microseconds())/1000, "ms-again")
			b.ReportMetric(first.Seconds()/then.Seconds(), "ratio")
		})
	}
}
