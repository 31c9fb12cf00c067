package plan_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/plan"
)

// BenchmarkPackVolumes plans for 5,000 pods with a bound volume each in three zones, beside 1,000 nodes with attach limits
// whose pods have volumes of their own.
func BenchmarkPackVolumes(b *testing.B) {
	w := world{pools: []plan.Pool{{NodePool: nodePool("p"), Types: smallCatalogue()}}}
	objects := []metav1.Object{classNamed("fast")}
	add := func(name string, i int) {
		objects = append(objects, claimOf(name, boundTo("p-"+name)), volumeOf("p-"+name, claimed(name), reachedBy(ebsZone, threeZones[i%3])))
	}
	for i := range 5_000 {
		name := fmt.Sprint("data-", i)
		w.pods = append(w.pods, newPod(fmt.Sprint("db-", i), "1500m", "2Gi", mounts(name)))
		add(name, i)
	}
	for i := range 1_000 {
		node := existing(fmt.Sprint("n", i), "m6i.large", attaches(25))
		for p := range 5 {
			name := fmt.Sprint("used-", i, "-", p)
			pod := newPod("on-"+name, "350m", "1Gi", mounts(name))
			pod.Spec.NodeName = node.Name
			node.Pods = append(node.Pods, w.interner().Pod(pod))
			add(name, 0)
		}
		w.nodes = append(w.nodes, node)
	}
	input := w.input()
	input.Snapshot.Storage = storageOf(w.interner(), objects...)
	for b.Loop() {
		if p := plan.Pack(input); len(p.Unplaced) > 0 {
			b.Fatal(reasonsOf(p)[0])
		}
	}
}
