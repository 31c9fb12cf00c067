package devices

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// view is the devices that a node of one kind reaches.
type view struct {
	node   *corev1.Node
	slices []*resourcev1.ResourceSlice
	// used are the devices that are taken, those of other nodes included.
	used usage
	// remote are the devices taken here that are not local to the node.
	remote []resourcev1.DeviceRequestAllocationResult
	// drivers are the drivers of the node's own devices that are taken here.
	drivers []string
	// key is equal for views that give the same answers.
	key string
}

// local says that a device is the node's own.
func (v *view) local(device *resourcev1.DeviceRequestAllocationResult) bool {
	return slices.ContainsFunc(v.slices, func(s *resourcev1.ResourceSlice) bool {
		return s.Spec.Driver == device.Driver && s.Spec.Pool.Name == device.Pool && s.Spec.NodeName != nil
	})
}

// take returns the view after some allocations.
func (v *view) take(results []resourcev1.AllocationResult) view {
	next := *v
	next.drivers = slices.Clone(v.drivers)
	var said strings.Builder
	for i := range results {
		next.used = next.used.with(&results[i])
		for _, device := range results[i].Devices.Results {
			local := v.local(&device)
			if local {
				next.drivers = append(next.drivers, device.Driver)
			}
			if ptr.Deref(device.AdminAccess, false) {
				continue
			}
			fmt.Fprintf(&said, "\x01%s\x00%s\x00%s", device.Driver, device.Pool, device.Device)
			for _, name := range slices.Sorted(maps.Keys(device.ConsumedCapacity)) {
				amount := device.ConsumedCapacity[name]
				said.WriteString("\x00" + string(name) + "=" + amount.String())
			}
			if !local {
				next.remote = append(slices.Clip(next.remote), device)
			}
		}
	}
	slices.Sort(next.drivers)
	next.drivers, next.key = slices.Compact(next.drivers), v.key+said.String()
	return next
}

// newNode is the name of a new node, and the prefix of its pools. No object can have it.
const newNode = "new:"

func nodeNamed(name string, labels map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// renamed returns a slice of a template as a node would publish it.
func renamed(s *resourcev1.ResourceSlice, node string) *resourcev1.ResourceSlice {
	own := *s
	own.Spec.NodeName, own.Spec.Pool.Name = &node, newNode+s.Spec.Pool.Name
	return &own
}
