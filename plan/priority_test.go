package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

func priority(p int32) func(*corev1.Pod) { return func(pod *corev1.Pod) { pod.Spec.Priority = &p } }

// placedByPriority counts the pods that a plan serves, by priority.
func placedByPriority(w *world, p plan.Plan) map[int32]int {
	priorities, counts := map[string]int32{}, map[int32]int{}
	for _, pod := range w.pods {
		priorities[string(pod.UID)] = 0
		if pod.Spec.Priority != nil {
			priorities[string(pod.UID)] = *pod.Spec.Priority
		}
	}
	for _, c := range p.Claims {
		for _, uid := range c.Pods {
			counts[priorities[string(uid)]]++
		}
	}
	for _, placement := range p.Placements {
		counts[priorities[string(placement.Pod.UID)]]++
	}
	return counts
}

// When a limit does not leave enough for all pods, those of low priority stay without a node.
func TestLimitsServeTheHighestPriorityFirst(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, reason string
		pods         []*corev1.Pod
		nodes        []*plan.Node
		pool         func(*karpv1.NodePool)
		want         map[int32]int
	}{
		{
			name: "large and unimportant", reason: "large pods are planned first, but not before important ones",
			pods: slices.Concat(manyPods(3, "large", "7", "8Gi"), manyPods(4, "small", "1500m", "2Gi", priority(100))),
			pool: limit(corev1.ResourceCPU, "8"), want: map[int32]int{100: 4},
		},
		{
			name: "alike", reason: "of pods that differ in nothing else the important ones are served",
			pods: slices.Concat(manyPods(10, "a", "1700m", "2Gi"), manyPods(3, "b", "1700m", "2Gi", priority(5))),
			pool: limit(corev1.ResourceCPU, "6"), want: map[int32]int{5: 3},
		},
		{
			name: "three classes", reason: "what the higher ones leave is for the next, down to the last",
			pods: slices.Concat(manyPods(2, "a", "3", "2Gi", priority(10)), manyPods(2, "b", "3", "2Gi", priority(5)), manyPods(2, "c", "3", "2Gi")),
			pool: limit(corev1.ResourceCPU, "12"), want: map[int32]int{10: 2, 5: 1},
		},
		{
			name: "room that exists", reason: "a node that is there goes to the important ones as well",
			pods:  slices.Concat(manyPods(1, "a", "7", "2Gi"), manyPods(1, "b", "6", "2Gi", priority(10))),
			nodes: []*plan.Node{existing("n", "m6i.2xlarge")}, pool: limit(corev1.ResourceCPU, "8"), want: map[int32]int{10: 1},
		},
		{
			name: "enough", reason: "without need, nobody is left", pods: slices.Concat(manyPods(3, "large", "7", "8Gi"), manyPods(4, "small", "1500m", "2Gi", priority(100))),
			pool: limit(corev1.ResourceCPU, "800"), want: map[int32]int{0: 3, 100: 4},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := world{pods: test.pods, nodes: test.nodes, pools: []plan.Pool{inPool(nodePool("p", test.pool, onDemand()), smallCatalogue())}}
			p := plan.Pack(w.input())
			check(t, &w, p)
			if got := placedByPriority(&w, p); fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("pods served by priority %v, want %v: %s", got, test.want, test.reason)
			}
		})
	}
}

// However many pods of one size there are, none of low priority has a place while one of higher priority is left.
func TestNoLimitIsUsedUpFromBelow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{pools: []plan.Pool{inPool(nodePool("p", onDemand(),
			limit(corev1.ResourceCPU, fmt.Sprint(rapid.IntRange(2, 40).Draw(t, "limit")))), smallCatalogue())}}
		for range rapid.IntRange(0, 2).Draw(t, "nodes") {
			w.nodes = append(w.nodes, existing(fmt.Sprint("node-", len(w.nodes)), "m6i.large"))
		}
		cpu := rapid.SampledFrom([]string{"500m", "1", "1700m", "3"}).Draw(t, "cpu")
		for level := range int32(3) {
			w.pods = append(w.pods, manyPods(rapid.IntRange(0, 12).Draw(t, "count"), fmt.Sprintf("p%d", level), cpu, "1Gi", priority(level))...)
		}
		p := plan.Pack(w.input())
		check(t, w, p)
		left := map[string]bool{}
		highest := int32(-1)
		for _, u := range p.Unplaced {
			left[string(u.Pod.UID)] = true
			highest = max(highest, u.Pod.Priority)
		}
		for _, pod := range w.pods {
			if !left[string(pod.UID)] && *pod.Spec.Priority < highest {
				t.Fatalf("%s is served, while a pod of priority %d is left", pod.Name, highest)
			}
		}
	})
}

// A node with devices is for the pods that ask for them; others come second, and take it if there is nothing else.
func TestPlainPodsLeaveDevicesAlone(t *testing.T) {
	t.Parallel()
	gpu := func(n *plan.Node) {
		n.Allocatable = plan.ResourcesOf(machineSpec{name: "g5.xlarge", cores: 4, memory: 16, gpus: 1}.instanceType().Allocatable)
	}
	none := limits("nodes", "0")
	tests := []struct {
		name, reason string
		pods         []*corev1.Pod
		nodes        []*plan.Node
		want         map[string]string // node by pod
	}{
		{
			name: "the larger pod is plain", reason: "large pods are placed first, but not on the place of one that asks for a device",
			pods:  []*corev1.Pod{newPod("plain", "3", "4Gi"), newPod("device", "2", "4Gi", asks("nvidia.com/gpu", "1"))},
			nodes: []*plan.Node{existing("a", "g5.xlarge", gpu)}, want: map[string]string{"device": "claim-a"},
		},
		{
			name: "a choice", reason: "a node without devices is preferred, though it comes later in the alphabet",
			pods: []*corev1.Pod{newPod("plain", "1", "1Gi")}, nodes: []*plan.Node{existing("a", "g5.xlarge", gpu), existing("b", "m6i.xlarge")}, want: map[string]string{"plain": "claim-b"},
		},
		{
			name: "nothing else", reason: "what is there and free is not left idle",
			pods:  []*corev1.Pod{newPod("plain", "1", "1Gi"), newPod("device", "2", "4Gi", asks("nvidia.com/gpu", "1"))},
			nodes: []*plan.Node{existing("a", "g5.xlarge", gpu)}, want: map[string]string{"plain": "claim-a", "device": "claim-a"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := world{pods: test.pods, nodes: test.nodes, pools: []plan.Pool{inPool(nodePool("p", none), smallCatalogue())}}
			got := map[string]string{}
			for _, placement := range plan.Pack(w.input()).Placements {
				got[placement.Pod.Name] = placement.Node
			}
			if fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("placed %v, want %v: %s", got, test.want, test.reason)
			}
		})
	}
}

// Pods that need no device make a machine bought for one neither larger nor more numerous.
func TestPlainPodsDoNotMakeDeviceMachinesLarger(t *testing.T) {
	t.Parallel()
	w := world{pods: slices.Concat(manyPods(3, "device", "1", "2Gi", asks("nvidia.com/gpu", "1")), manyPods(20, "plain", "2", "4Gi")),
		pools: []plan.Pool{inPool(nodePool("p", onDemand()), smallCatalogue())}}
	p := plan.Pack(w.input())
	check(t, &w, p)
	for _, c := range p.Claims {
		plain, device := 0, 0
		for _, uid := range c.Pods {
			if strings.HasPrefix(string(uid), "uid-plain") {
				plain++
			} else {
				device++
			}
		}
		if plain > 0 && device > 0 {
			t.Errorf("%s is bought for %d pods with and %d without a device", c.InstanceTypes[0], device, plain)
		}
		for _, name := range c.InstanceTypes {
			if device == 0 && strings.HasPrefix(name, "g5") {
				t.Errorf("%s may be launched for pods that ask for no device", name)
			}
		}
	}
}
