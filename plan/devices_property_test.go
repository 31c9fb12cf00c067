package plan_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"pgregory.net/rapid"

	"github.com/tenon-sh/tenon/plan"
)

// lister lists the classes of a scene for the kube-scheduler's allocator.
type lister map[string]*resourcev1.DeviceClass

func (l lister) List() ([]*resourcev1.DeviceClass, error) { return nil, nil }

func (l lister) Get(name string) (*resourcev1.DeviceClass, error) { return l[name], nil }

// TestPlannedClaimsCanBeAllocated draws devices and claims, and has the kube-scheduler's allocator allocate the claims of the
// pods of every planned node, on each machine that the node may become.
func TestPlannedClaimsCanBeAllocated(t *testing.T) {
	t.Parallel()
	compiled := cel.NewCache(100, cel.Features{})
	rapid.Check(t, func(rt *rapid.T) {
		models := rapid.SampledFrom([]string{"a", "b"})
		devices := map[string][]string{}
		for _, name := range []string{"m5.xlarge", "g5.xlarge", "g5.4xlarge"} {
			for i := range rapid.IntRange(0, 4).Draw(rt, "devices of "+name) {
				devices[name] = append(devices[name], graphics(fmt.Sprintf("gpu-%d", i), models.Draw(rt, "model"), rapid.IntRange(0, 1).Draw(rt, "numa")))
			}
		}
		scene := newDRAScene(t, devices)
		for i := range rapid.IntRange(1, 4).Draw(rt, "workloads") {
			count := rapid.IntRange(1, 3).Draw(rt, "count")
			asks := fmt.Sprintf(", allocationMode: ExactCount, count: %d", rapid.IntRange(1, 2).Draw(rt, "each"))
			if rapid.Bool().Draw(rt, "all") && rapid.Bool().Draw(rt, "really") {
				asks = ", allocationMode: All"
			}
			if rapid.Bool().Draw(rt, "picky") {
				asks += withModel(models.Draw(rt, "wanted"))
			}
			spec := "{requests: [" + request("gpu", asks) + "]"
			if rapid.Bool().Draw(rt, "near") {
				spec += ", constraints: [{matchAttribute: " + gpuDriver + "/numa}]"
			}
			if spec += "}"; rapid.Bool().Draw(rt, "shared") {
				scene.share(count, "1", claimTo(t, fmt.Sprintf("shared-%d", i), spec))
				continue
			}
			for _, pod := range scene.template(t, count, "1", spec) {
				scene.rename(pod, fmt.Sprintf("own-%d-%s", i, pod.Name))
			}
		}
		byUID := map[string]*corev1.Pod{}
		for _, pod := range scene.pods {
			byUID[string(pod.UID)] = pod
		}
		homes := map[string]int{}
		for c, claim := range plan.Pack(scene.input()).Claims {
			for _, instanceType := range claim.InstanceTypes {
				node := "new"
				var slicesOf []*resourcev1.ResourceSlice
				if len(devices[instanceType]) > 0 {
					slicesOf = append(slicesOf, published(t, node, devices[instanceType]...))
				}
				taken, done := sets.New[structured.DeviceID](), map[string]bool{}
				for _, uid := range claim.Pods {
					object := scene.claimOf(byUID[string(uid)])
					if done[object.Name] {
						continue
					}
					done[object.Name] = true
					if home, known := homes[object.Name]; known && home != c {
						rt.Fatalf("ResourceClaim %s is planned for two nodes", object.Name)
					}
					homes[object.Name] = c
					allocating, err := structured.NewAllocator(context.Background(), structured.Features{}, structured.AllocatedState{AllocatedDevices: taken},
						lister(scene.devices.Classes), slicesOf, compiled)
					if err != nil {
						rt.Fatal(err)
					}
					results, err := allocating.Allocate(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, []*resourcev1.ResourceClaim{object})
					if err != nil || len(results) != 1 {
						rt.Fatalf("%s has no devices left for ResourceClaim %s of its pods %v: %v", instanceType, object.Name, claim.Pods, err)
					}
					for _, device := range results[0].Devices.Results {
						taken.Insert(structured.MakeDeviceID(device.Driver, device.Pool, device.Device))
					}
				}
			}
		}
	})
}

// rename gives a pod with a claim from a template another name, and its claim as well.
func (s *draScene) rename(pod *corev1.Pod, name string) {
	claim := s.claimOf(pod)
	delete(s.devices.Claims, "default/"+claim.Name)
	pod.Name, pod.UID = name, types.UID("uid-"+name)
	claim.Name = name + "-gpu"
	pod.Status.ResourceClaimStatuses = slices.Clone(pod.Status.ResourceClaimStatuses)
	pod.Status.ResourceClaimStatuses[0].ResourceClaimName = &claim.Name
	claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))}
	s.devices.Claims["default/"+claim.Name] = claim
}

// claimOf returns the claim of a pod.
func (s *draScene) claimOf(pod *corev1.Pod) *resourcev1.ResourceClaim {
	if entry := pod.Spec.ResourceClaims[0]; entry.ResourceClaimName != nil {
		return s.devices.Claims["default/"+*entry.ResourceClaimName]
	}
	return s.devices.Claims["default/"+*pod.Status.ResourceClaimStatuses[0].ResourceClaimName]
}
