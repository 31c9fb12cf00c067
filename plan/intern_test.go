package plan_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/plan/model"
)

// Pods that ask the same belong to one class, whatever else distinguishes them; pods that do not ask the same do not.
func TestClasses(t *testing.T) {
	t.Parallel()
	in := new(plan.Interner)
	base := in.Pod(newPod("a", "1", "1Gi"))
	alike := map[string]func(*corev1.Pod){
		"name":   func(pod *corev1.Pod) { pod.Name = "b" },
		"labels": func(pod *corev1.Pod) { pod.Labels = map[string]string{"x": "y"} },
		"node":   func(pod *corev1.Pod) { pod.Spec.NodeName = "n" },
		"same amount, other words": func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1000m")
		},
	}
	for name, change := range alike {
		if in.Pod(newPod("a", "1", "1Gi", change)).Class != base.Class {
			t.Errorf("a pod with another %s is of another class", name)
		}
	}
	different := map[string]func(*corev1.Pod){
		"request":  asks("nvidia.com/gpu", "1"),
		"selector": selects("a", "b"),
		"affinity": needs(expr("a", corev1.NodeSelectorOpExists)),
		"toleration": func(pod *corev1.Pod) {
			pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		},
		"host port": func(pod *corev1.Pod) { pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 1}} },
		"overhead": func(pod *corev1.Pod) {
			pod.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")}
		},
		"spread": func(pod *corev1.Pod) {
			pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: "z"}}
		},
	}
	seen := map[*plan.Class]string{base.Class: "base"}
	for name, change := range different {
		class := in.Pod(newPod("a", "1", "1Gi", change)).Class
		if other, ok := seen[class]; ok {
			t.Errorf("a pod with another %s is of the class of %s", name, other)
		}
		seen[class] = name
	}
}

// Requests are counted as the kube-scheduler counts them.
func TestRequests(t *testing.T) {
	t.Parallel()
	always := corev1.ContainerRestartPolicyAlways
	pod := newPod("a", "1", "1Gi", func(pod *corev1.Pod) {
		cpu := func(amount string) corev1.ResourceRequirements {
			return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}}
		}
		pod.Spec.InitContainers = []corev1.Container{
			{Name: "sidecar", RestartPolicy: &always, Resources: cpu("200m")},
			{Name: "init", Resources: cpu("1500m")},
		}
		pod.Spec.Overhead = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("100Mi")}
	})
	got := model.PodRequests(pod)
	if got.CPU != 1700 || got.Memory != 1<<30+100<<20 || got.Pods != 1 {
		t.Errorf("requests %v, want 1700m (sidecar beside the init container), 1Gi and overhead, and one pod", got)
	}
}

// The Interner forgets what is no longer held, and keeps what is.
func TestInternerForgets(t *testing.T) {
	t.Parallel()
	in := new(plan.Interner)
	kept := in.Pod(newPod("a", "1", "1Gi"))
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			for i := range 500 {
				in.Pod(newPod("a", "1", resource.NewQuantity(int64(i*4+g), resource.BinarySI).String()))
			}
		})
	}
	group.Wait()
	deadline := time.Now().Add(20 * time.Second)
	for in.Size() > 50 {
		if time.Now().After(deadline) {
			t.Fatalf("%d classes are remembered that nobody holds", in.Size())
		}
		runtime.GC()
	}
	if in.Pod(newPod("b", "1", "1Gi")).Class != kept.Class {
		t.Error("a class that is held was forgotten")
	}
}

// A claim and its Node are joined into one node.
func TestJoin(t *testing.T) {
	t.Parallel()
	in := new(plan.Interner)
	claim := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{karpv1.NodePoolLabelKey: "p", "team": "x"}},
		Spec:       karpv1.NodeClaimSpec{Taints: []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}},
		Status: karpv1.NodeClaimStatus{
			ProviderID:  "aws:///a/i-1",
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), "nvidia.com/gpu": resource.MustParse("1")},
			Conditions:  []metav1.Condition{{Type: karpv1.ConditionTypeLaunched, Status: "True"}},
		},
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{corev1.LabelHostname: "n"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{karpv1.UnregisteredNoExecuteTaint()}},
		Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3900m")}},
	}
	joined := in.Claim(claim).Join(in.Node(node))
	if joined.Key() != "c" || joined.Name != "n" || joined.Pool != "p" || joined.Registered || !joined.Launched {
		t.Errorf("joined %+v", joined)
	}
	if joined.Labels["team"] != "x" || joined.Labels[corev1.LabelHostname] != "n" || joined.Taints[0].Key != "dedicated" {
		t.Errorf("before it registers, the claim's labels and taints are to be expected: %v %v", joined.Labels, joined.Taints)
	}
	if joined.Allocatable.CPU != 3900 || joined.Allocatable.Get("nvidia.com/gpu") != 1 {
		t.Errorf("allocatable %v, want what is reported and the GPU to come", joined.Allocatable)
	}
}
