package plan_test

import (
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/plan"
)

// claimTemplate adds a ResourceClaimTemplate.
func (s *draScene) claimTemplate(t *testing.T, name, devices string) {
	t.Helper()
	if s.devices.Templates == nil {
		s.devices.Templates = map[string]*resourcev1.ResourceClaimTemplate{}
	}
	s.devices.Templates["default/"+name] = &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: resourcev1.ResourceClaimTemplateSpec{Spec: claimTo(t, name, devices).Spec}}
}

// podOf returns the spec of pods with a claim from a template.
func podOf(template, cpu string) corev1.PodSpec {
	spec := manyPods(1, "of", cpu, "1Gi")[0].Spec
	spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}}
	return spec
}

// daemon adds a DaemonSet whose pods have a claim from a template.
func (s *draScene) daemon(template string) {
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "agent"}}
	set.Spec.Template.Spec = podOf(template, "100m")
	s.daemons = append(s.daemons, new(plan.Interner).DaemonSet(set))
}

// TestClaimsOfUnbornPods plans for pods that do not exist yet: those of DaemonSets on new nodes, and those for which a
// CapacityBuffer keeps room. The upstream allocator decides which devices they get.
func TestClaimsOfUnbornPods(t *testing.T) {
	t.Parallel()
	anyGPU := "{requests: [" + request("gpu", one) + "]}"
	buffer := func(s *draScene, count int) func(*plan.Input) {
		model := new(plan.Interner).VirtualPod("default", &corev1.PodTemplateSpec{Spec: podOf("spare", "1")})
		return func(in *plan.Input) {
			in.Snapshot.Pending = append(in.Snapshot.Pending, model.VirtualPods("uid-spare", "spare", count)...)
		}
	}
	for name, test := range map[string]struct {
		reason string
		set    func(*testing.T, *draScene) func(*plan.Input)
		want   string
	}{
		"Daemon": {
			reason: "the pod of a DaemonSet takes the small type's one device, so the large one is bought",
			set: func(t *testing.T, s *draScene) func(*plan.Input) {
				s.claimTemplate(t, "agent", anyGPU)
				s.daemon("agent")
				s.template(t, 3, "1", anyGPU)
				return nil
			},
			want: "g5.4xlarge 3",
		},
		"DaemonOnEach": {
			reason: "on each of two nodes the pod of the DaemonSet takes a device of model b",
			set: func(t *testing.T, s *draScene) func(*plan.Input) {
				s.claimTemplate(t, "agent", "{requests: ["+request("gpu", one+withModel("b"))+"]}")
				s.daemon("agent")
				s.template(t, 2, "1", "{requests: ["+request("gpu", one+withModel("b"))+"]}")
				return nil
			},
			want: "g5.4xlarge 1, g5.4xlarge 1",
		},
		"DaemonWithAdminAccess": {
			reason: "a monitoring agent uses up nothing",
			set: func(t *testing.T, s *draScene) func(*plan.Input) {
				s.claimTemplate(t, "agent", "{requests: ["+request("gpu", one+", adminAccess: true")+"]}")
				s.daemon("agent")
				s.template(t, 1, "1", anyGPU)
				return nil
			},
			want: "g5.xlarge 1",
		},
		"DaemonOfStartingNode": {
			reason: "the pod of the DaemonSet has not come to the node yet, and its device is kept for it",
			set: func(t *testing.T, s *draScene) func(*plan.Input) {
				s.node(t, "n1", "g5.4xlarge", usualDevices()["g5.4xlarge"]...)
				s.claimTemplate(t, "agent", "{requests: ["+request("gpu", one+withModel("b"))+"]}")
				s.daemon("agent")
				s.template(t, 2, "1", "{requests: ["+request("gpu", one+withModel("b"))+"]}")
				return nil
			},
			want: "claim-n1 1, g5.4xlarge 1",
		},
		"DaemonWithoutDevices": {
			reason: "a DaemonSet that finds no devices waits, and keeps no other pod from a node",
			set: func(t *testing.T, s *draScene) func(*plan.Input) {
				s.claimTemplate(t, "agent", "{requests: ["+request("gpu", one+withModel("c"))+"]}")
				s.daemon("agent")
				s.template(t, 1, "1", anyGPU)
				return nil
			},
			want: "g5.xlarge 1",
		},
		"Buffer": {
			reason: "room for two pods with a device each",
			set: func(t *testing.T, s *draScene) func(*plan.Input) {
				s.claimTemplate(t, "spare", anyGPU)
				return buffer(s, 2)
			},
			want: "g5.xlarge 1, g5.xlarge 1",
		},
		"BufferIsThere": {
			reason: "a node has room and a free device, and no other is needed",
			set: func(t *testing.T, s *draScene) func(*plan.Input) {
				s.node(t, "n1", "g5.xlarge", graphics("gpu-0", "a", 0))
				s.claimTemplate(t, "spare", anyGPU)
				return buffer(s, 1)
			},
			want: "claim-n1 1",
		},
		"BufferWithoutTemplate": {
			reason: "what would be claimed is not known",
			set:    func(t *testing.T, s *draScene) func(*plan.Input) { return buffer(s, 1) },
			want:   `left: resource claim "gpu" names ResourceClaimTemplate spare, which does not exist`,
		},
		"BufferWithoutClass": {
			reason: "the class of its devices does not exist",
			set: func(t *testing.T, s *draScene) func(*plan.Input) {
				s.claimTemplate(t, "spare", "{requests: [{name: gpu, exactly: {deviceClassName: other"+one+"}}]}")
				return buffer(s, 1)
			},
			want: `left: resource claim "gpu" names DeviceClass other, which does not exist`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newDRAScene(t, usualDevices())
			change := test.set(t, s)
			in := s.input()
			if change != nil {
				change(&in)
			}
			if got := packed(plan.Pack(in)); got != test.want {
				t.Errorf("%s:\n got %s\nwant %s", test.reason, got, test.want)
			}
		})
	}
}

// Resources that only DeviceClasses provide are claimed, and those that a node or an instance type has are not.
func TestResourcesOfDeviceClasses(t *testing.T) {
	t.Parallel()
	requesting := func(resource, amount string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Resources.Requests[corev1.ResourceName(resource)] = apiresource.MustParse(amount)
		}
	}
	const named, implicit = "example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"
	for name, test := range map[string]struct {
		reason string
		set    func(*testing.T, *draScene)
		want   string
	}{
		"Named":    {reason: "the name that the class gives", set: func(_ *testing.T, s *draScene) { s.pods = manyPods(1, "pod", "1", "1Gi", requesting(named, "1")) }, want: "g5.xlarge 1"},
		"Implicit": {reason: "every class has such a name", set: func(_ *testing.T, s *draScene) { s.pods = manyPods(1, "pod", "1", "1Gi", requesting(implicit, "1")) }, want: "g5.xlarge 1"},
		"Several":  {reason: "four devices, which only the large type has", set: func(_ *testing.T, s *draScene) { s.pods = manyPods(1, "pod", "1", "1Gi", requesting(named, "4")) }, want: "g5.4xlarge 1"},
		"Each":     {reason: "two pods with a device each", set: func(_ *testing.T, s *draScene) { s.pods = manyPods(2, "pod", "100m", "1Gi", requesting(named, "1")) }, want: "g5.xlarge 1, g5.xlarge 1"},
		"Beside": {reason: "a pod that claims a device and one that requests it share a node", set: func(t *testing.T, s *draScene) {
			s.node(t, "n1", "g5.4xlarge", usualDevices()["g5.4xlarge"]...)
			s.template(t, 3, "100m", "{requests: ["+request("gpu", one)+"]}")
			s.pods = append(s.pods, manyPods(1, "other", "100m", "1Gi", requesting(named, "1"))...)
		}, want: "claim-n1 4"},
		"Running": {reason: "a pod on the node has its device, as its claim says, and the next one needs another node", set: func(t *testing.T, s *draScene) {
			n := s.node(t, "n1", "g5.xlarge", graphics("gpu-0", "a", 0))
			running := manyPods(1, "running", "100m", "1Gi", requesting(named, "1"))
			running[0].Spec.NodeName = "n1"
			s.bound[n.Key()] = running
			s.devices.Claims["default/running-extended"] = allocatedOn(claimTo(t, "running-extended", "{requests: ["+request("gpu", one)+"]}"), "n1", []string{"running"}, "gpu-0")
			s.pods = manyPods(1, "pod", "100m", "1Gi", requesting(named, "1"))
		}, want: "g5.xlarge 1"},
		"PlainBeside": {reason: "a pod without devices has room beside one that has requested some", set: func(t *testing.T, s *draScene) {
			n := s.node(t, "n1", "g5.xlarge", graphics("gpu-0", "a", 0))
			running := manyPods(1, "running", "100m", "1Gi", requesting(named, "1"))
			running[0].Spec.NodeName = "n1"
			s.bound[n.Key()] = running
			s.pods = manyPods(1, "pod", "100m", "1Gi")
		}, want: "claim-n1 1"},
		"Own": {reason: "an instance type has the resource by itself, so a device plugin will publish it", set: func(_ *testing.T, s *draScene) {
			typ := s.pools[0].Types[0]
			typ.Capacity, typ.Allocatable = maps.Clone(typ.Capacity), maps.Clone(typ.Allocatable)
			typ.Capacity[named], typ.Allocatable[named] = apiresource.MustParse("1"), apiresource.MustParse("1")
			s.pods = manyPods(1, "pod", "1", "1Gi", requesting(named, "1"))
		}, want: "m5.xlarge 1"},
		"Unknown": {reason: "no class provides it", set: func(_ *testing.T, s *draScene) {
			s.pods = manyPods(1, "pod", "1", "1Gi", requesting("example.com/other", "1"))
		}, want: "left: no instance type has example.com/other"},
		"TooMany": {reason: "no type has as many devices", set: func(_ *testing.T, s *draScene) {
			s.pods = manyPods(1, "pod", "1", "1Gi", requesting(named, "5"))
		}, want: `left: resource claim "example.com/gpu": request "request" asks for 5 devices of DeviceClass gpu, and g5.4xlarge has 4 that match`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newDRAScene(t, usualDevices())
			s.devices.Classes[gpuClass].Spec.ExtendedResourceName = new(named)
			test.set(t, s)
			if got := packed(plan.Pack(s.input())); got != test.want {
				t.Errorf("%s:\n got %s\nwant %s", test.reason, got, test.want)
			}
		})
	}
}
