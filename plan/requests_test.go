package plan_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/plan/model"
)

func amounts(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

// What a pod takes of a node is what the kube-scheduler counts.
func TestPodRequests(t *testing.T) {
	t.Parallel()
	always := corev1.ContainerRestartPolicyAlways
	init := func(cpu, memory string, policy *corev1.ContainerRestartPolicy) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{
				Name: "init", RestartPolicy: policy, Resources: corev1.ResourceRequirements{Requests: amounts(cpu, memory)}})
		}
	}
	whole := func(cpu, memory string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.Resources = &corev1.ResourceRequirements{Requests: amounts(cpu, memory)}
		}
	}
	resized := func(allocated, actuated corev1.ResourceList) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "main", AllocatedResources: allocated, Resources: &corev1.ResourceRequirements{Requests: actuated}}}
		}
	}
	infeasible := func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: "True", Reason: corev1.PodReasonInfeasible})
	}
	overhead := func(pod *corev1.Pod) { pod.Spec.Overhead = amounts("250m", "120Mi") }
	tests := []struct {
		name, reason string
		pod          *corev1.Pod
		cpu          int64
		memory       string
	}{
		{name: "containers", reason: "they run side by side", pod: newPod("a", "1", "1Gi", func(pod *corev1.Pod) {
			pod.Spec.Containers = append(pod.Spec.Containers, pod.Spec.Containers[0])
		}), cpu: 2000, memory: "2Gi"},
		{name: "init container", reason: "it runs before the others, alone", pod: newPod("a", "1", "1Gi", init("3", "512Mi", nil)), cpu: 3000, memory: "1Gi"},
		{name: "sidecar", reason: "it goes on running beside the others", pod: newPod("a", "1", "1Gi", init("500m", "256Mi", &always)), cpu: 1500, memory: "1280Mi"},
		{name: "sidecar before an init container", reason: "the init container runs beside the sidecars that were started before it",
			pod: newPod("a", "1", "1Gi", init("500m", "256Mi", &always), init("2", "1Gi", nil)), cpu: 2500, memory: "1280Mi"},
		{name: "sidecar after an init container", reason: "and not beside those that come later",
			pod: newPod("a", "1", "1Gi", init("2", "1Gi", nil), init("500m", "256Mi", &always)), cpu: 2000, memory: "1280Mi"},
		{name: "overhead", reason: "the sandbox of a RuntimeClass takes its part", pod: newPod("a", "1", "1Gi", overhead), cpu: 1250, memory: "1144Mi"},
		{name: "pod level", reason: "what the pod asks for as a whole counts instead of its containers",
			pod: newPod("a", "1", "1Gi", whole("750m", "2Gi"), init("3", "3Gi", nil)), cpu: 750, memory: "2Gi"},
		{name: "pod level and overhead", reason: "the sandbox is not part of it",
			pod: newPod("a", "1", "1Gi", whole("750m", "2Gi"), overhead), cpu: 1000, memory: "2168Mi"},
		{name: "growing", reason: "a pod that asks for more gets room for it first",
			pod: newPod("a", "2", "1Gi", resized(amounts("1", "1Gi"), amounts("1", "1Gi"))), cpu: 2000, memory: "1Gi"},
		{name: "shrinking", reason: "until the kubelet has taken it away, the pod has it",
			pod: newPod("a", "1", "1Gi", resized(amounts("2", "1Gi"), amounts("3", "2Gi"))), cpu: 3000, memory: "2Gi"},
		{name: "infeasible", reason: "what the node can never grant is not counted",
			pod: newPod("a", "64", "1Gi", resized(amounts("1", "1Gi"), amounts("1", "1Gi")), infeasible), cpu: 1000, memory: "1Gi"},
		{name: "pod level growing", reason: "the same for the pod as a whole", pod: newPod("a", "1", "1Gi", whole("1", "1Gi"), func(pod *corev1.Pod) {
			pod.Status.AllocatedResources = amounts("2", "1Gi")
			pod.Status.Resources = &corev1.ResourceRequirements{Requests: amounts("2", "1Gi")}
		}), cpu: 2000, memory: "1Gi"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := model.PodRequests(test.pod)
			if memory := resource.MustParse(test.memory); got.CPU != test.cpu || got.Memory != memory.Value() || got.Pods != 1 {
				t.Errorf("requests %v, want cpu %dm and memory %s: %s", got, test.cpu, test.memory, test.reason)
			}
		})
	}
}

// The API server does not complete the template of a DaemonSet as it completes its pods.
func TestDaemonSetRequestsFollowFromLimits(t *testing.T) {
	t.Parallel()
	set := &appsv1.DaemonSet{}
	set.Spec.Template.Spec = corev1.PodSpec{
		HostNetwork: true,
		Containers: []corev1.Container{{
			Name: "main", Resources: corev1.ResourceRequirements{Limits: amounts("500m", "64Mi"), Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}},
			Ports: []corev1.ContainerPort{{ContainerPort: 9100}},
		}},
	}
	class := new(plan.Interner).DaemonSet(set).Class
	if class.Requests.CPU != 100 || class.Requests.Memory != 64<<20 {
		t.Errorf("requests %v, want cpu 100m as it says and memory 64Mi as it is limited to", class.Requests)
	}
	if len(class.HostPorts) != 1 || class.HostPorts[0].Port != 9100 {
		t.Errorf("host ports %v, want 9100", class.HostPorts)
	}
	set.Spec.Template.Spec.Resources = &corev1.ResourceRequirements{Limits: amounts("2", "1Gi")}
	if class := new(plan.Interner).DaemonSet(set).Class; class.Requests.CPU != 100 || class.Requests.Memory != 64<<20 {
		t.Errorf("requests %v, want those of the containers", class.Requests)
	}
}
