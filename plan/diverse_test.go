package plan_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan"
)

// deployments returns the pods of Deployments with a few replicas each, and with sizes of their own, as a vertical
// autoscaler gives them.
func deployments(r *rand.Rand, count, replicas int, constrain func(i int) []func(*corev1.Pod)) []*corev1.Pod {
	logNormal := func(median, sigma, least, most float64) float64 {
		return min(most, max(least, median*math.Exp(sigma*r.NormFloat64())))
	}
	var pods []*corev1.Pod
	for app := range count {
		cpu := fmt.Sprintf("%dm", int(logNormal(250, 1, 10, 8000)))
		memory := fmt.Sprintf("%dMi", int(logNormal(600, 1.1, 32, 32000)))
		options := append([]func(*corev1.Pod){labeled("app", fmt.Sprintf("app-%d", app))}, constrain(app)...)
		for i := range replicas {
			pods = append(pods, newPod(fmt.Sprintf("app-%d-%d", app, i), cpu, memory, options...))
		}
	}
	return pods
}

// However many sizes and host rules a batch has, its plan costs little more than the lower bound.
func TestDiverseBatchesAreNearTheBound(t *testing.T) {
	t.Parallel()
	none := func(int) []func(*corev1.Pod) { return nil }
	apart := func(i int) []func(*corev1.Pod) { return []func(*corev1.Pod){avoids(hostname, "")} }
	someApart := func(i int) []func(*corev1.Pod) {
		if i%3 == 0 {
			return []func(*corev1.Pod){wouldAvoid(50, hostname, "")}
		}
		return nil
	}
	pool := nodePool("default", onDemand(), requires("karpenter.k8s.aws/instance-category", corev1.NodeSelectorOpIn, "c", "m", "r"),
		requires("karpenter.k8s.aws/instance-generation", corev1.NodeSelectorOpGt, "4"))
	catalogue := realCatalogue(t)
	for _, tc := range []struct {
		reason    string
		count, of int
		constrain func(int) []func(*corev1.Pod)
		most      float64
	}{
		{reason: "few apps", count: 20, of: 2, constrain: none, most: 1.12},
		{reason: "sizes of their own", count: 100, of: 2, constrain: none, most: 1.08},
		{reason: "more rows than a program has", count: 300, of: 2, constrain: none, most: 1.08},
		{reason: "many sizes", count: 2000, of: 1, constrain: none, most: 1.08},
		{reason: "each app's pods apart", count: 150, of: 3, constrain: apart, most: 1.09},
		{reason: "some apps softly apart", count: 600, of: 3, constrain: someApart, most: 1.09},
	} {
		t.Run(fmt.Sprintf("%s %dx%d", tc.reason, tc.count, tc.of), func(t *testing.T) {
			w := world{pods: deployments(rand.New(rand.NewPCG(3, uint64(tc.count))), tc.count, tc.of, tc.constrain), pools: []plan.Pool{{NodePool: pool, Types: catalogue, NodePrice: 0.0022}}}
			in := w.input()
			in.Nominates = true
			began := time.Now()
			p := plan.Pack(in)
			took := time.Since(began)
			cost := p.PricePerHour() + 0.0022*float64(len(p.Claims))
			bound := plan.LowerBound(in)
			t.Logf("$%.2f on %d nodes, %.4f times the bound, in %v", cost, len(p.Claims), cost/bound, took)
			if len(p.Unplaced) > 0 || cost > tc.most*bound || cost < bound*0.9999 {
				t.Errorf("%d pods are left, and the plan costs %.4f times the bound", len(p.Unplaced), cost/bound)
			}
		})
	}
}
