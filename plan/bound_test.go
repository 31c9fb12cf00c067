package plan_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// In worlds small enough to try every way to share machines, nothing is cheaper than the lower bound, and the plan is
// not cheaper than the cheapest way.
func TestNothingIsCheaperThanTheLowerBound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var catalogue []*cloud.InstanceType
		for i := range rapid.IntRange(1, 5).Draw(t, "types") {
			catalogue = append(catalogue, machineSpec{
				name: fmt.Sprintf("m%d.large", i), cores: rapid.SampledFrom([]float64{1, 2, 4, 8, 16}).Draw(t, "cores"),
				memory: rapid.SampledFrom([]float64{2, 4, 8, 32}).Draw(t, "memory"), pods: rapid.SampledFrom([]int64{2, 4, 30}).Draw(t, "pods"),
				price: float64(rapid.IntRange(1, 40).Draw(t, "price")) / 100,
			}.instanceType())
		}
		w := world{pools: []plan.Pool{{NodePool: nodePool("p", onDemand()), Types: catalogue}}}
		for i := range rapid.IntRange(1, 7).Draw(t, "pods") {
			constraints := []func(*corev1.Pod){func(*corev1.Pod) {}, avoids(hostname, ""), spreads(hostname, 1), spreads(hostname, 2)}
			label := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "app")
			w.pods = append(w.pods, newPod(fmt.Sprintf("pod-%d", i), rapid.SampledFrom([]string{"100m", "300m", "700m", "1", "1500m"}).Draw(t, "cpu"),
				rapid.SampledFrom([]string{"100Mi", "500Mi", "1Gi", "3Gi"}).Draw(t, "memory"), labeled("app", label),
				constraints[rapid.IntRange(0, len(constraints)-1).Draw(t, "constraint")]))
		}
		in := w.input()
		bound, optimum, planned := plan.LowerBound(in), cheapestPartition(w.pods, nil, catalogue), plan.Pack(in)
		if math.IsInf(optimum, 1) {
			return
		}
		if bound > optimum*(1+1e-9) {
			t.Fatalf("the bound is $%.4f/h, and all pods fit on machines for $%.4f/h\n%v", bound, optimum, w)
		}
		if cost := planned.PricePerHour(); len(planned.Unplaced) == 0 && cost < optimum*(1-1e-9) {
			t.Fatalf("the plan costs $%.4f/h, and the cheapest way to share machines $%.4f/h\n%v", cost, optimum, w)
		}
	})
}

// cheapestPartition tries every way to share machines.
func cheapestPartition(pods []*corev1.Pod, machines [][]*corev1.Pod, catalogue []*cloud.InstanceType) float64 {
	if len(pods) == 0 {
		sum := 0.0
		for _, together := range machines {
			sum += cheapestFor(together, catalogue)
		}
		return sum
	}
	least := math.Inf(1)
	for i := range machines {
		shared := slices.Clone(machines)
		shared[i] = append(slices.Clip(shared[i]), pods[0])
		if mayShare(shared[i]) {
			least = min(least, cheapestPartition(pods[1:], shared, catalogue))
		}
	}
	return min(least, cheapestPartition(pods[1:], append(slices.Clip(machines), []*corev1.Pod{pods[0]}), catalogue))
}

// mayShare reports whether rules over hostnames allow pods to share one of many nodes.
func mayShare(pods []*corev1.Pod) bool {
	for _, pod := range pods {
		alike := 0
		for _, other := range pods {
			if other.Labels["app"] == pod.Labels["app"] {
				alike++
			}
		}
		if pod.Spec.Affinity != nil && alike > 1 {
			return false
		}
		for _, c := range pod.Spec.TopologySpreadConstraints {
			// Pods that are not spread themselves may join later, in any number.
			spread := 0
			for _, other := range pods {
				if other.Labels["app"] == pod.Labels["app"] && len(other.Spec.TopologySpreadConstraints) > 0 &&
					other.Spec.TopologySpreadConstraints[0].MaxSkew <= c.MaxSkew {
					spread++
				}
			}
			if spread > int(c.MaxSkew) {
				return false
			}
		}
	}
	return true
}

// cheapestFor returns the price of the cheapest machine that holds some pods.
func cheapestFor(pods []*corev1.Pod, catalogue []*cloud.InstanceType) float64 {
	sum := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(int64(len(pods)), resource.DecimalSI)}
	for _, pod := range pods {
		for name, amount := range pod.Spec.Containers[0].Resources.Requests {
			total := sum[name]
			total.Add(amount)
			sum[name] = total
		}
	}
	least := math.Inf(1)
	for _, typ := range catalogue {
		holds := true
		for name, amount := range sum {
			has := typ.Allocatable[name]
			holds = holds && amount.Cmp(has) <= 0
		}
		for i := range typ.Offerings {
			if o := &typ.Offerings[i]; holds && o.Available && o.CapacityType == "on-demand" {
				least = min(least, o.Price)
			}
		}
	}
	return least
}
