package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/plan"
)

// gpuDriver is the driver of the devices in these tests, and gpuClass the class of its devices.
const (
	gpuDriver = "gpu.example.com"
	gpuClass  = "gpu"
)

// graphics is a device of gpuDriver with a model and the NUMA node that it is attached to.
func graphics(name, model string, numa int) string {
	return fmt.Sprintf(`{name: %s, attributes: {model: {string: %s}, numa: {int: %d}}, capacity: {memory: {value: 24Gi}}}`, name, model, numa)
}

// described returns what a driver will publish for a node with some devices, as a NodeOverlay says it.
func described(t testing.TB, driver string, devices ...string) []*resourcev1.ResourceSlice {
	t.Helper()
	overlay := nodeOverlay("devices")
	overlay.Annotations = map[string]string{v1alpha1.DeviceTemplatesAnnotationKey: fmt.Sprintf("[{driver: %s, devices: [%s]}]", driver, strings.Join(devices, ", "))}
	templates, err := overlay.DeviceTemplates()
	if err != nil {
		t.Fatal(err)
	}
	return templates
}

// published returns what the driver has published for a node.
func published(t testing.TB, node string, devices ...string) *resourcev1.ResourceSlice {
	t.Helper()
	s := described(t, gpuDriver, devices...)[0]
	s.Name, s.Spec.NodeName, s.Spec.Pool.Name = node+"-"+gpuDriver, &node, node
	return s
}

// request is an entry of a claim's requests, in YAML's flow style.
func request(name, further string) string {
	return fmt.Sprintf("{name: %s, exactly: {deviceClassName: %s%s}}", name, gpuClass, further)
}

const one = ", allocationMode: ExactCount, count: 1"

// withModel asks for a model of device.
func withModel(model string) string {
	return fmt.Sprintf(`, selectors: [{cel: {expression: 'device.attributes["%s"].model == "%s"'}}]`, gpuDriver, model)
}

// claimTo returns a claim that is not allocated.
func claimTo(t testing.TB, name, devices string) *resourcev1.ResourceClaim {
	t.Helper()
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)}}
	if err := yaml.UnmarshalStrict([]byte("{devices: "+devices+"}"), &claim.Spec); err != nil {
		t.Fatalf("claim %s: %v", name, err)
	}
	return claim
}

// allocatedOn allocates devices of a node to a claim, for the pods that use it.
func allocatedOn(claim *resourcev1.ResourceClaim, node string, pods []string, devices ...string) *resourcev1.ResourceClaim {
	claim.Status.Allocation = &resourcev1.AllocationResult{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}}
	for _, device := range devices {
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results,
			resourcev1.DeviceRequestAllocationResult{Request: "gpu", Driver: gpuDriver, Pool: node, Device: device})
	}
	for _, pod := range pods {
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: pod, UID: types.UID("uid-" + pod)})
	}
	return claim
}

// draScene is a cluster with claims.
type draScene struct {
	world
	devices plan.Devices
}

// types are what may be bought: small for 1 $ with one device, large for 4 $ with four, and plain for 0.5 $ with none.
func newDRAScene(t testing.TB, devices map[string][]string) *draScene {
	t.Helper()
	zones := []string{"us-east-1a"}
	kinds := []string{"on-demand"}
	all := []*cloud.InstanceType{
		machineSpec{name: "m5.xlarge", cores: 4, memory: 16, price: 0.5, zones: zones, kinds: kinds}.instanceType(),
		machineSpec{name: "g5.xlarge", cores: 4, memory: 16, price: 1, zones: zones, kinds: kinds}.instanceType(),
		machineSpec{name: "g5.4xlarge", cores: 16, memory: 64, price: 4, zones: zones, kinds: kinds}.instanceType(),
	}
	for _, typ := range all {
		if len(devices[typ.Name]) > 0 {
			typ.Devices = described(t, gpuDriver, devices[typ.Name]...)
		}
	}
	s := &draScene{devices: plan.Devices{Claims: map[string]*resourcev1.ResourceClaim{}, Classes: map[string]*resourcev1.DeviceClass{
		gpuClass: {ObjectMeta: metav1.ObjectMeta{Name: gpuClass}, Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{
			{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "` + gpuDriver + `"`}}}}}}}}
	s.pools = []plan.Pool{{NodePool: nodePool("p"), Types: all}}
	s.bound = map[string][]*corev1.Pod{}
	return s
}

// template adds pods, each with a claim made for it from a template.
func (s *draScene) template(t testing.TB, count int, cpu, devices string) []*corev1.Pod {
	t.Helper()
	pods := manyPods(count, "pod", cpu, "1Gi", func(pod *corev1.Pod) {
		name, template := pod.Name+"-gpu", "gpu"
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}}
		pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: &name}}
	})
	for _, pod := range pods {
		claim := claimTo(t, pod.Name+"-gpu", devices)
		claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))}
		s.devices.Claims["default/"+claim.Name] = claim
	}
	s.pods = append(s.pods, pods...)
	return pods
}

// share adds pods that use one claim.
func (s *draScene) share(count int, cpu string, claim *resourcev1.ResourceClaim) []*corev1.Pod {
	s.devices.Claims["default/"+claim.Name] = claim
	pods := manyPods(count, claim.Name, cpu, "1Gi", func(pod *corev1.Pod) {
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim.Name}}
	})
	s.pods = append(s.pods, pods...)
	return pods
}

// node adds a node with published devices.
func (s *draScene) node(t testing.TB, name, instanceType string, devices ...string) *plan.Node {
	t.Helper()
	typ := pool(s.pools[0]).typeNamed(instanceType)
	labels := maps.Clone(typ.Labels)
	labels[hostname], labels[karpv1.NodePoolLabelKey], labels[corev1.LabelTopologyZone] = name, "p", "us-east-1a"
	labels[karpv1.CapacityTypeLabelKey] = "on-demand"
	n := &plan.Node{Name: name, Claim: "claim-" + name, Pool: "p", Labels: labels, InstanceType: instanceType, Zone: "us-east-1a", CapacityType: "on-demand",
		Capacity: plan.ResourcesOf(typ.Capacity), Allocatable: plan.ResourcesOf(typ.Allocatable), Launched: true, Registered: true, Initialized: true, Ready: true,
		Created: now, InitializedAt: now.Add(-1)}
	s.nodes = append(s.nodes, n)
	if len(devices) > 0 {
		s.devices.Slices = append(s.devices.Slices, published(t, name, devices...))
	}
	return n
}

func (s *draScene) input() plan.Input {
	in := s.world.input()
	in.Snapshot.Devices = &s.devices
	return in
}

// packed says what a plan does: "g5.xlarge 1, node-1 2" for a claim for one pod and two pods on a node, and why pods are left.
func packed(p plan.Plan) string {
	var said []string
	for _, claim := range p.Claims {
		said = append(said, fmt.Sprintf("%s %d", claim.InstanceTypes[0], len(claim.Pods)))
	}
	on := map[string]int{}
	for _, placement := range p.Placements {
		on[placement.Node]++
	}
	for _, node := range slices.Sorted(maps.Keys(on)) {
		said = append(said, fmt.Sprintf("%s %d", node, on[node]))
	}
	slices.Sort(said)
	for _, left := range p.Unplaced {
		said = append(said, "left: "+left.Reasons[0].Message)
	}
	return strings.Join(said, ", ")
}

// The types of these scenes: g5.xlarge has one device of model a, g5.4xlarge four, two of each model, on two NUMA nodes.
func usualDevices() map[string][]string {
	return map[string][]string{
		"g5.xlarge":  {graphics("gpu-0", "a", 0)},
		"g5.4xlarge": {graphics("gpu-0", "a", 0), graphics("gpu-1", "a", 1), graphics("gpu-2", "b", 0), graphics("gpu-3", "b", 1)},
	}
}

func TestResourceClaims(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		set    func(*testing.T, *draScene)
		want   string
	}{
		"OneDevice": {
			reason: "the cheapest type with the device is bought, and not the cheaper one without",
			set:    func(t *testing.T, s *draScene) { s.template(t, 1, "1", "{requests: ["+request("gpu", one)+"]}") },
			want:   "g5.xlarge 1",
		},
		"Selector": {
			reason: "a CEL selector leaves only the type whose devices meet it",
			set: func(t *testing.T, s *draScene) {
				s.template(t, 1, "1", "{requests: ["+request("gpu", one+withModel("b"))+"]}")
			},
			want: "g5.4xlarge 1",
		},
		"Count": {
			reason: "four devices are asked for, which only the large type has",
			set: func(t *testing.T, s *draScene) {
				s.template(t, 1, "1", "{requests: ["+request("gpu", ", allocationMode: ExactCount, count: 4")+"]}")
			},
			want: "g5.4xlarge 1",
		},
		"Occupied": {
			reason: "each node takes as many pods as it has devices of the model",
			set: func(t *testing.T, s *draScene) {
				s.template(t, 5, "1", "{requests: ["+request("gpu", one+withModel("b"))+"]}")
			},
			want: "g5.4xlarge 1, g5.4xlarge 2, g5.4xlarge 2",
		},
		"All": {
			reason: "all devices of a node are asked for, so that every pod needs a node of its own",
			set: func(t *testing.T, s *draScene) {
				s.template(t, 2, "1", "{requests: ["+request("gpu", ", allocationMode: All")+"]}")
			},
			want: "g5.xlarge 1, g5.xlarge 1",
		},
		"AdminAccess": {
			reason: "administrative access uses up no device, so that one node takes all",
			set: func(t *testing.T, s *draScene) {
				s.template(t, 3, "1", "{requests: ["+request("gpu", one+", adminAccess: true")+"]}")
			},
			want: "g5.xlarge 3",
		},
		"MatchAttribute": {
			reason: "two devices of one NUMA node are asked for, one of each model",
			set: func(t *testing.T, s *draScene) {
				s.template(t, 2, "1", "{requests: ["+request("x", one+withModel("a"))+", "+request("y", one+withModel("b"))+"], constraints: [{matchAttribute: "+gpuDriver+"/numa}]}")
			},
			want: "g5.4xlarge 2",
		},
		"MatchAttributeUnmet": {
			reason: "no NUMA node has two devices of one model",
			set: func(t *testing.T, s *draScene) {
				s.template(t, 1, "1", "{requests: ["+request("gpu", ", allocationMode: ExactCount, count: 2"+withModel("a"))+"], constraints: [{matchAttribute: "+gpuDriver+"/numa}]}")
			},
			want: `left: the devices of g5.4xlarge do not meet all requests and constraints of its resource claims at once`,
		},
		"FirstAvailable": {
			reason: "the second alternative is on the cheaper type",
			set: func(t *testing.T, s *draScene) {
				s.template(t, 1, "1", `{requests: [{name: gpu, firstAvailable: [`+
					`{name: best, deviceClassName: gpu, allocationMode: ExactCount, count: 1`+withModel("c")+`}, `+
					`{name: good, deviceClassName: gpu, allocationMode: ExactCount, count: 1`+withModel("a")+`}]}]}`)
			},
			want: "g5.xlarge 1",
		},
		"Shared": {
			reason: "pods that share a claim go to one node, although several smaller nodes would have been cheaper",
			set: func(t *testing.T, s *draScene) {
				s.share(4, "3", claimTo(t, "shared", "{requests: ["+request("gpu", one)+"]}"))
			},
			want: "g5.4xlarge 4",
		},
		"SharedTwice": {
			reason: "two claims, each shared by two pods, need one node each",
			set: func(t *testing.T, s *draScene) {
				s.share(2, "1", claimTo(t, "left", "{requests: ["+request("gpu", one)+"]}"))
				s.share(2, "1", claimTo(t, "right", "{requests: ["+request("gpu", one)+"]}"))
			},
			want: "g5.xlarge 2, g5.xlarge 2",
		},
		"NodeWithRoom": {
			reason: "free devices of a node are used before a node is bought",
			set: func(t *testing.T, s *draScene) {
				s.node(t, "n1", "g5.xlarge", graphics("gpu-0", "a", 0))
				s.template(t, 1, "1", "{requests: ["+request("gpu", one)+"]}")
			},
			want: "claim-n1 1",
		},
		"NodeOccupied": {
			reason: "a device that another claim has is not free",
			set: func(t *testing.T, s *draScene) {
				n := s.node(t, "n1", "g5.xlarge", graphics("gpu-0", "a", 0))
				running := s.template(t, 1, "1", "{requests: ["+request("gpu", one)+"]}")[0]
				s.pods = nil
				running.Name, running.UID, running.Spec.NodeName = "running", "uid-running", "n1"
				claim := s.devices.Claims["default/pod-0000-gpu"]
				claim.Name, claim.OwnerReferences = "running-gpu", []metav1.OwnerReference{*metav1.NewControllerRef(running, corev1.SchemeGroupVersion.WithKind("Pod"))}
				running.Status.ResourceClaimStatuses[0].ResourceClaimName = &claim.Name
				s.devices.Claims = map[string]*resourcev1.ResourceClaim{"default/running-gpu": allocatedOn(claim, "n1", []string{"running"}, "gpu-0")}
				s.bound[n.Key()] = []*corev1.Pod{running}
				s.template(t, 1, "1", "{requests: ["+request("gpu", one)+"]}")
			},
			want: "g5.xlarge 1",
		},
		"Allocated": {
			reason: "a claim that is allocated and used takes its pods to its node",
			set: func(t *testing.T, s *draScene) {
				s.node(t, "n1", "g5.4xlarge", usualDevices()["g5.4xlarge"]...)
				s.node(t, "n2", "g5.4xlarge", usualDevices()["g5.4xlarge"]...)
				s.share(2, "1", allocatedOn(claimTo(t, "shared", "{requests: ["+request("gpu", one)+"]}"), "n2", []string{"other"}, "gpu-0"))
			},
			want: "claim-n2 2",
		},
		"AllocatedElsewhere": {
			reason: "the node of an allocated claim is gone",
			set: func(t *testing.T, s *draScene) {
				s.share(1, "1", allocatedOn(claimTo(t, "shared", "{requests: ["+request("gpu", one)+"]}"), "n2", []string{"other"}, "gpu-0"))
			},
			want: `left: resource claim "gpu" is allocated to a node that is gone (ResourceClaim shared)`,
		},
		"Learnt": {
			reason: "what a driver published for a node of a type is what the next one will have, although no NodeOverlay says so",
			set: func(t *testing.T, s *draScene) {
				s.pools[0].Types[1].Devices, s.pools[0].Types[2].Devices = nil, nil
				s.node(t, "n1", "g5.xlarge", graphics("gpu-0", "a", 0)).Cordoned = true
				s.template(t, 1, "1", "{requests: ["+request("gpu", one)+"]}")
			},
			want: "g5.xlarge 1",
		},
		"OnItsWay": {
			reason: "a node whose driver has not published yet will have the devices of its template: no other is bought",
			set: func(t *testing.T, s *draScene) {
				n := s.node(t, "n1", "g5.xlarge")
				n.Initialized = false
				pods := s.template(t, 1, "1", "{requests: ["+request("gpu", one)+"]}")
				n.Promised = []types.UID{pods[0].UID}
			},
			want: "claim-n1 1",
		},
		"Network": {
			reason: "a device that every node reaches is there once, whatever is bought",
			set: func(t *testing.T, s *draScene) {
				everywhere, slice := true, described(t, gpuDriver, graphics("far", "a", 0))[0]
				slice.Name, slice.Spec.AllNodes = "far", &everywhere
				s.devices.Slices = append(s.devices.Slices, slice)
				s.pools[0].Types = s.pools[0].Types[:1]
				s.template(t, 2, "3", "{requests: ["+request("gpu", one)+"]}")
			},
			want: "m5.xlarge 1, left: other pods have the devices that its resource claims could be allocated",
		},
		"NetworkShared": {
			reason: "pods that share a claim to such a device may go to several nodes",
			set: func(t *testing.T, s *draScene) {
				everywhere, slice := true, described(t, gpuDriver, graphics("far", "a", 0))[0]
				slice.Name, slice.Spec.AllNodes = "far", &everywhere
				s.devices.Slices = append(s.devices.Slices, slice)
				s.pools[0].Types = s.pools[0].Types[:1]
				s.share(2, "3", claimTo(t, "shared", "{requests: ["+request("gpu", one)+"]}"))
			},
			want: "m5.xlarge 1, m5.xlarge 1",
		},
		"Crowded": {
			reason: "no more than 256 pods may use a claim",
			set: func(t *testing.T, s *draScene) {
				s.node(t, "n1", "g5.4xlarge", usualDevices()["g5.4xlarge"]...)
				users := make([]string, resourcev1.ResourceClaimReservedForMaxSize)
				for i := range users {
					users[i] = fmt.Sprintf("user-%d", i)
				}
				s.share(1, "1", allocatedOn(claimTo(t, "shared", "{requests: ["+request("gpu", one)+"]}"), "n1", users, "gpu-0"))
			},
			want: `left: resource claim "gpu" names ResourceClaim shared, which as many pods use as may (256)`,
		},
		"NoTemplate": {
			reason: "no type is known to have devices",
			set: func(t *testing.T, s *draScene) {
				s.pools[0].Types[1].Devices, s.pools[0].Types[2].Devices = nil, nil
				s.template(t, 1, "1", "{requests: ["+request("gpu", one)+"]}")
			},
			want: "left: no device is known of any instance type: annotate a NodeOverlay with tenon.sh/device-templates, or launch a node whose drivers publish its devices",
		},
		"NoSuchClass": {
			reason: "the class that a claim names is missing",
			set: func(t *testing.T, s *draScene) {
				delete(s.devices.Classes, gpuClass)
				s.template(t, 1, "1", "{requests: ["+request("gpu", one)+"]}")
			},
			want: `left: resource claim "gpu" names DeviceClass gpu, which does not exist`,
		},
		"NothingSelected": {
			reason: "the selector that no device meets is named",
			set: func(t *testing.T, s *draScene) {
				s.template(t, 1, "1", "{requests: ["+request("gpu", one+withModel("z"))+"]}")
			},
			want: `left: resource claim "gpu": no device of g5.4xlarge meets the selector of request "gpu": device.attributes["gpu.example.com"].model == "z"`,
		},
		"TooFew": {
			reason: "the number of devices is named",
			set: func(t *testing.T, s *draScene) {
				s.template(t, 1, "1", "{requests: ["+request("gpu", ", allocationMode: ExactCount, count: 8")+"]}")
			},
			want: `left: resource claim "gpu": request "gpu" asks for 8 devices of DeviceClass gpu, and g5.4xlarge has 4 that match`,
		},
		"NotCreated": {
			reason: "the claim has not been created from its template",
			set: func(t *testing.T, s *draScene) {
				s.template(t, 1, "1", "{requests: ["+request("gpu", one)+"]}")[0].Status.ResourceClaimStatuses = nil
			},
			want: `left: resource claim "gpu" has not been created from ResourceClaimTemplate gpu yet`,
		},
		"Unneeded": {
			reason: "the claim turned out to be unnecessary, so that any type will do",
			set: func(t *testing.T, s *draScene) {
				s.template(t, 1, "1", "{requests: ["+request("gpu", one)+"]}")[0].Status.ResourceClaimStatuses[0].ResourceClaimName = nil
			},
			want: "m5.xlarge 1",
		},
		"BesideOthers": {
			reason: "pods without claims take what is cheapest for them",
			set: func(t *testing.T, s *draScene) {
				s.template(t, 1, "3500m", "{requests: ["+request("gpu", one)+"]}")
				s.pods = append(s.pods, manyPods(1, "plain", "3", "1Gi")...)
			},
			want: "g5.xlarge 1, m5.xlarge 1",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scene := newDRAScene(t, usualDevices())
			test.set(t, scene)
			if got := packed(plan.Pack(scene.input())); got != test.want {
				t.Errorf("%s:\ngot  %s\nwant %s", test.reason, got, test.want)
			}
		})
	}
}

// TestResourceClaimsAreGated checks that nothing is planned for pods with claims while the feature gate is off.
func TestResourceClaimsAreGated(t *testing.T) {
	t.Parallel()
	scene := newDRAScene(t, usualDevices())
	scene.template(t, 1, "1", "{requests: ["+request("gpu", one)+"]}")
	want := "left: it asks for devices by dynamic resource allocation, which is not planned for while the feature gate DynamicResources is off"
	if got := packed(plan.Pack(scene.world.input())); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestClaimsNameTheirDrivers checks that a NodeClaim says whose devices have to be published before its node serves.
func TestClaimsNameTheirDrivers(t *testing.T) {
	t.Parallel()
	scene := newDRAScene(t, usualDevices())
	scene.template(t, 1, "1", "{requests: ["+request("gpu", one)+"]}")
	scene.pods = append(scene.pods, newPod("plain", "3500m", "1Gi"))
	drivers := map[string]string{}
	for _, claim := range plan.Pack(scene.input()).Claims {
		object, err := claim.NodeClaim(scene.pools[0].NodePool, "x")
		if err != nil {
			t.Fatal(err)
		}
		drivers[claim.InstanceTypes[0]] = object.Annotations[karpv1.DRADriversAnnotationKey]
	}
	if diff := cmp.Diff(map[string]string{"g5.xlarge": gpuDriver, "m5.xlarge": ""}, drivers); diff != "" {
		t.Errorf("drivers (-want +got):\n%s", diff)
	}
}

// TestOverlaysDescribeDevices checks whose description of a driver's devices counts.
func TestOverlaysDescribeDevices(t *testing.T) {
	t.Parallel()
	describing := func(driver, device string) func(*v1alpha1.NodeOverlay) {
		return func(o *v1alpha1.NodeOverlay) {
			o.Annotations = map[string]string{v1alpha1.DeviceTemplatesAnnotationKey: fmt.Sprintf("[{driver: %s, devices: [{name: %s}]}]", driver, device)}
		}
	}
	for name, test := range map[string]struct {
		reason   string
		overlays []*v1alpha1.NodeOverlay
		want     string
		problem  string
	}{
		"Weight": {reason: "the higher weight wins", want: "a.example.com high", overlays: []*v1alpha1.NodeOverlay{
			nodeOverlay("x", describing("a.example.com", "low"), weighing(1)), nodeOverlay("y", describing("a.example.com", "high"), weighing(2))}},
		"Merge": {reason: "each driver is described separately", want: "a.example.com one, b.example.com two", overlays: []*v1alpha1.NodeOverlay{
			nodeOverlay("y", describing("a.example.com", "one"), weighing(1)), nodeOverlay("x", describing("b.example.com", "two"), weighing(1))}},
		"Conflict": {reason: "of equals the last of the alphabet applies", want: "a.example.com two",
			problem: "sets the devices of a.example.com of m5.large in NodePool web, too", overlays: []*v1alpha1.NodeOverlay{
				nodeOverlay("x", describing("a.example.com", "one"), weighing(1)), nodeOverlay("y", describing("a.example.com", "two"), weighing(1))}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pools := []plan.Pool{{NodePool: nodePool("web"), Types: shopWindow()[:1]}}
			overlays, problems := plan.NewOverlays(nodeclass.Labels(), test.overlays, pools)
			var got []string
			for _, s := range overlays.Apply(pools[0].NodePool, pools[0].Types)[0].Devices {
				got = append(got, s.Spec.Driver+" "+s.Spec.Devices[0].Name)
			}
			slices.Sort(got)
			if all := strings.Join(got, ", "); all != test.want || !strings.Contains(problems["x"].Message, test.problem) {
				t.Errorf("%s: got %s and %v, want %s", test.reason, all, problems, test.want)
			}
		})
	}
}

// TestConsolidationMovesClaims removes a node whose pod can have a device elsewhere, and no other.
func TestConsolidationMovesClaims(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason string
		// made says that the claim was made from a template for the pod.
		made bool
		// room are the devices of the other node.
		room []string
		want bool
	}{
		"Moves":  {reason: "the claim is made again with the pod, and the other node has a free device", made: true, room: []string{graphics("gpu-0", "a", 0)}, want: true},
		"NoRoom": {reason: "the other node has no device", made: true, want: false},
		"ByHand": {reason: "the claim was made by hand, and stays where it is allocated", room: []string{graphics("gpu-0", "a", 0)}, want: false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scene := newDRAScene(t, usualDevices())
			from := scene.node(t, "from", "g5.xlarge", graphics("gpu-0", "a", 0))
			to := scene.node(t, "to", "g5.4xlarge", test.room...)
			var pod *corev1.Pod
			if test.made {
				pod = scene.template(t, 1, "1", "{requests: ["+request("gpu", one)+"]}")[0]
			} else {
				pod = scene.share(1, "1", claimTo(t, "mine", "{requests: ["+request("gpu", one)+"]}"))[0]
			}
			scene.pods = nil
			pod.Spec.NodeName, pod.OwnerReferences = "from", []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: new(true)}}
			for key, claim := range scene.devices.Claims {
				scene.devices.Claims[key] = allocatedOn(claim, "from", []string{pod.Name}, "gpu-0")
			}
			other := newPod("other", "8", "8Gi", ownedByReplicaSet("other"))
			other.Spec.NodeName = "to"
			scene.bound[from.Key()], scene.bound[to.Key()] = []*corev1.Pod{pod}, []*corev1.Pod{other}
			found := plan.Disrupt(scene.input())
			got := slices.ContainsFunc(found.Commands, func(c plan.Command) bool { return slices.Contains(c.Nodes, from.Key()) && len(c.Replacements) == 0 })
			if got != test.want {
				t.Errorf("%s: removed is %t, want %t: %+v", test.reason, got, test.want, found.Verdicts)
			}
		})
	}
}
