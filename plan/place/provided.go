package place

import (
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/tenon-sh/tenon/plan/model"
)

// providersOf returns the DeviceClasses that provide an extended resource, by the name of the resource. Of several with one name
// it returns the newest, and of those the first, as the API of DeviceClasses has it.
func providersOf(known *model.Devices) map[string]string {
	providers := map[string]string{}
	for _, name := range model.SortedKeys(known.Classes) {
		class := known.Classes[name]
		if class.Spec.ExtendedResourceName == nil {
			continue
		}
		resource := *class.Spec.ExtendedResourceName
		if other := known.Classes[providers[resource]]; other == nil || other.CreationTimestamp.Before(&class.CreationTimestamp) {
			providers[resource] = name
		}
	}
	return providers
}

// WithProvided returns an input whose pods claim the extended resources that only DeviceClasses provide, instead of requesting
// them: as many devices of the class as the pod requests in all, which is what the kube-scheduler claims for it. If a node or an
// instance type has the resource by itself, it is left to device plugins. Nothing of the argument is changed.
func WithProvided(in model.Input) model.Input {
	if in.Snapshot.Devices == nil {
		return in
	}
	x := &extending{providers: providersOf(in.Snapshot.Devices), classes: in.Snapshot.Devices.Classes, own: map[string]bool{}, without: map[*model.Class]*model.Class{}, claims: map[*model.Class][]model.PodClaim{}}
	for i := range in.Pools {
		for _, typ := range in.Pools[i].Types {
			for name := range typ.Capacity {
				x.own[string(name)] = true
			}
		}
	}
	for _, n := range in.Snapshot.Nodes {
		for _, amount := range n.Allocatable.Extended {
			x.own[amount.Name] = true
		}
	}
	snapshot := *in.Snapshot
	snapshot.Pending = x.pods(snapshot.Pending)
	snapshot.Nodes = slices.Clone(snapshot.Nodes)
	for i, n := range snapshot.Nodes {
		snapshot.Nodes[i] = n.WithPods(x.pods(n.Pods))
	}
	in.Snapshot = &snapshot
	return in
}

// extending replaces requests by claims.
type extending struct {
	providers map[string]string
	classes   map[string]*resourcev1.DeviceClass
	// own are the resources that nodes or instance types have by themselves.
	own map[string]bool
	// without are the classes of pods without what they claim, and claims what that is; both by the original class.
	without map[*model.Class]*model.Class
	claims  map[*model.Class][]model.PodClaim
}

// pods returns pods with claims instead of requests, the same slice if no pod has any.
func (x *extending) pods(all []*model.Pod) []*model.Pod {
	extended := all
	for i, pod := range all {
		class := x.class(pod.Class)
		if class == pod.Class {
			continue
		}
		if &extended[0] == &all[0] {
			extended = slices.Clone(all)
		}
		claiming := *pod
		claiming.Class = class
		for _, claim := range x.claims[pod.Class] {
			claiming.Claims = claiming.Claims.And(claim)
		}
		extended[i] = &claiming
	}
	return extended
}

// class returns a class without the resources that DeviceClasses provide; itself if it requests none.
func (x *extending) class(class *model.Class) *model.Class {
	if known := x.without[class]; known != nil {
		return known
	}
	var left []model.Amount
	for _, amount := range class.Requests.Extended {
		provider := x.provider(amount.Name)
		if provider == "" {
			left = append(left, amount)
			continue
		}
		x.claims[class] = append(x.claims[class], model.PodClaim{Entry: amount.Name, Spec: &resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
			Requests: []resourcev1.DeviceRequest{{Name: "request", Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: provider, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: amount.Value}}}}}})
	}
	x.without[class] = class
	if len(x.claims[class]) > 0 {
		claiming := *class
		claiming.Requests.Extended, claiming.ResourceClaims, claiming.ID = left, true, class.ID+"\x00claiming"
		x.without[class] = &claiming
	}
	return x.without[class]
}

// provider returns the DeviceClass that provides a resource; empty if none does, or if nodes have it by themselves.
func (x *extending) provider(resource string) string {
	if x.own[resource] {
		return ""
	}
	if class := x.providers[resource]; class != "" {
		return class
	}
	if class, is := strings.CutPrefix(resource, resourcev1.ResourceDeviceClassPrefix); is && x.classes[class] != nil {
		return class
	}
	return ""
}
