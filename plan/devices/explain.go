package devices

import (
	"context"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

// Why do the devices of a node not satisfy the claims of a pod? The allocator only says that they do not. The first condition
// that no device meets is the reason: a selector of a class, a selector of a request, or the number of devices.

// shortage is why a node lacks devices. A higher rank means that it came nearer to having them.
type shortage struct {
	rank int
	why  string
}

// The ranks of shortages.
const (
	unknownDevices = iota
	faulty
	noneOfClass
	noneSelected
	tooFew
	together
)

// Explain says why none of some new nodes have devices for a pod. It tells of the node that came nearest.
func Explain(n *Needs, rooms map[string]*Room) string {
	nearest := shortage{why: "no device is known of any instance type: annotate a NodeOverlay with tenon.sh/device-templates, or launch a node whose drivers publish its devices"}
	first := true
	for _, name := range sortedNames(rooms) {
		if s := rooms[name].shortageOf(n, name); first || s.rank > nearest.rank {
			if s.rank > unknownDevices {
				nearest = s
			}
			first = false
		}
	}
	return nearest.why
}

func sortedNames(rooms map[string]*Room) []string {
	names := make([]string, 0, len(rooms))
	for name := range rooms {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// shortageOf says what an instance type lacks for a pod.
func (r *Room) shortageOf(n *Needs, instanceType string) shortage {
	if r == nil || len(r.kinds) == 0 || len(r.kinds[0].slices) == 0 {
		return shortage{rank: unknownDevices}
	}
	v := &r.kinds[0]
	claims := n.all()
	if err := r.index.problems[keyOf(claims)]; err != nil {
		return shortage{faulty, err.Error()}
	}
	worst := shortage{together, "the devices of " + instanceType + " do not meet all requests and constraints of its resource claims at once" + someTaint(v)}
	for i := range claims {
		for j := range claims[i].claim.Spec.Devices.Requests {
			request := &claims[i].claim.Spec.Devices.Requests[j]
			if s := r.index.shortageFor(v, request, instanceType); s != nil && s.rank < worst.rank {
				worst = shortage{s.rank, fmt.Sprintf("resource claim %q: %s", claims[i].entry, s.why)}
			}
		}
	}
	return worst
}

// shortageFor says what a request lacks; nil if that is not clear. Of several alternatives it tells of the first.
func (x *Index) shortageFor(v *view, request *resourcev1.DeviceRequest, instanceType string) *shortage {
	name, exact := request.Name, request.Exactly
	if exact == nil {
		sub := &request.FirstAvailable[0]
		name += "/" + sub.Name
		exact = &resourcev1.ExactDeviceRequest{DeviceClassName: sub.DeviceClassName, Selectors: sub.Selectors, AllocationMode: sub.AllocationMode, Count: sub.Count}
	}
	class := x.known.Classes[exact.DeviceClassName]
	if class == nil {
		return nil
	}
	left := devicesOf(v)
	for _, one := range []struct {
		rank      int
		whose     string
		selectors []resourcev1.DeviceSelector
	}{
		{noneOfClass, "DeviceClass " + class.Name, class.Spec.Selectors},
		{noneSelected, fmt.Sprintf("request %q", name), exact.Selectors},
	} {
		for _, selector := range one.selectors {
			if selector.CEL == nil {
				continue
			}
			left = slices.DeleteFunc(left, func(d cel.Device) bool { return !x.matches(selector.CEL.Expression, d) })
			if len(left) == 0 {
				return &shortage{one.rank, fmt.Sprintf("no device of %s meets the selector of %s: %s", instanceType, one.whose, selector.CEL.Expression)}
			}
		}
	}
	if count := exact.Count; exact.AllocationMode != resourcev1.DeviceAllocationModeAll && int64(len(left)) < count {
		return &shortage{tooFew, fmt.Sprintf("request %q asks for %d devices of DeviceClass %s, and %s has %d that match", name, count, class.Name, instanceType, len(left))}
	}
	return nil
}

// devicesOf lists the devices of a view.
func devicesOf(v *view) []cel.Device {
	var all []cel.Device
	for _, s := range v.slices {
		for i := range s.Spec.Devices {
			d := &s.Spec.Devices[i]
			all = append(all, cel.Device{Driver: s.Spec.Driver, AllowMultipleAllocations: d.AllowMultipleAllocations, Attributes: d.Attributes, Capacity: d.Capacity})
		}
	}
	return all
}

// someTaint ends a sentence with the first taint of a view's devices that keeps claims away; empty if there is none.
func someTaint(v *view) string {
	for _, s := range v.slices {
		for i := range s.Spec.Devices {
			for _, taint := range s.Spec.Devices[i].Taints {
				if taint.Effect == resourcev1.DeviceTaintEffectNoSchedule || taint.Effect == resourcev1.DeviceTaintEffectNoExecute {
					return fmt.Sprintf(", as some have the taint %s:%s", taint.Key, taint.Effect)
				}
			}
		}
	}
	return ""
}

// matches says whether a device meets a selector. One that cannot be evaluated matches nothing.
func (x *Index) matches(expression string, device cel.Device) bool {
	compiled := x.compiled.compiled.GetOrCompile(expression)
	if compiled.Error != nil {
		return false
	}
	matches, _, err := compiled.DeviceMatches(context.Background(), device)
	return err == nil && matches
}
