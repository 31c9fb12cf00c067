package plan_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// Plain pods that have no other place take the room that pods with devices leave on the machines bought for them, as
// they do on existing nodes. No machine with devices is bought for plain pods.
func TestPlainPodsBesideDevices(t *testing.T) {
	t.Parallel()
	gpuPool := nodePool("gpu", onDemand(), requires("karpenter.k8s.aws/instance-category", corev1.NodeSelectorOpIn, "g"))
	taintedPool := nodePool("gpu", onDemand(), requires("karpenter.k8s.aws/instance-category", corev1.NodeSelectorOpIn, "g"), tainted("gpu"))
	plain := func(cpu string) *karpv1.NodePool {
		return nodePool("plain", requires("karpenter.k8s.aws/instance-category", corev1.NodeSelectorOpIn, "c", "m", "r"), limit(corev1.ResourceCPU, cpu))
	}
	gpus := func(n int) []*corev1.Pod {
		return manyPods(n, "gpu", "1", "1Gi", asks("nvidia.com/gpu", "1"), func(pod *corev1.Pod) {
			pod.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
		})
	}
	tests := []struct {
		name, reason string
		pods         []*corev1.Pod
		pools        []*karpv1.NodePool
		with, left   int // plain pods on machines with devices, and without a node
	}{
		{name: "nowhere else", reason: "the plain pool is at its limit", pods: append(gpus(1), manyPods(2, "a", "1", "1Gi")...), pools: []*karpv1.NodePool{gpuPool, plain("1")}, with: 2},
		{name: "more than is free", reason: "no machine with devices is bought for them", pods: append(gpus(1), manyPods(5, "a", "1", "1Gi")...), pools: []*karpv1.NodePool{gpuPool, plain("1")}, with: 2, left: 3},
		{name: "somewhere else", reason: "machines with devices are for those who ask for them", pods: append(gpus(1), manyPods(2, "a", "1", "1Gi")...), pools: []*karpv1.NodePool{gpuPool, plain("100")}},
		{name: "not tolerated", reason: "the pool keeps them out", pods: append(gpus(1), manyPods(2, "a", "1", "1Gi")...), pools: []*karpv1.NodePool{taintedPool, plain("1")}, left: 2},
		{name: "one on each node", reason: "their own rules hold there", pods: append(gpus(2), manyPods(3, "a", "1", "1Gi", app("a"), avoids(hostname, ""))...), pools: []*karpv1.NodePool{gpuPool, plain("1")}, with: 2, left: 1},
		{name: "one in each zone", reason: "so do those about zones", pods: append(gpus(1), manyPods(2, "a", "1", "1Gi", app("a"), avoids(zone, ""))...), pools: []*karpv1.NodePool{gpuPool, plain("1")}, with: 1, left: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := world{pods: test.pods}
			for _, pool := range test.pools {
				w.pools = append(w.pools, inPool(pool, smallCatalogue()))
			}
			p := plan.Pack(w.input())
			check(t, &w, p)
			with := 0
			for i := range p.Claims {
				for _, uid := range p.Claims[i].Pods {
					if p.Claims[i].NodePool == "gpu" && strings.HasPrefix(string(uid), "uid-a-") {
						with++
					}
				}
			}
			if with != test.with || len(p.Unplaced) != test.left {
				t.Errorf("%d plain pods are beside devices and %d are left, want %d and %d: %s", with, len(p.Unplaced), test.with, test.left, test.reason)
			}
		})
	}
}
