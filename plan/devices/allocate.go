package devices

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// allocator allocates claims from the devices that a node can reach. It returns one result for each claim, or none if the
// devices do not satisfy them. An error means that the claims, their classes or the slices are faulty.
type allocator interface {
	allocate(node *corev1.Node, slices []*resourcev1.ResourceSlice, used usage, claims []*resourcev1.ResourceClaim) ([]resourcev1.AllocationResult, error)
}

// usage is the devices that claims have taken, as the kube-scheduler counts them. It is immutable.
type usage struct {
	devices  sets.Set[structured.DeviceID]
	shares   sets.Set[structured.SharedDeviceID]
	capacity structured.ConsumedCapacityCollection
}

// with returns the usage with the devices of some allocations added. Administrative access uses up nothing.
func (u usage) with(results ...*resourcev1.AllocationResult) usage {
	more := usage{devices: maps.Clone(u.devices), shares: maps.Clone(u.shares), capacity: u.capacity.Clone()}
	if more.devices == nil {
		more.devices, more.shares = sets.New[structured.DeviceID](), sets.New[structured.SharedDeviceID]()
	}
	for _, allocation := range results {
		for i := range allocation.Devices.Results {
			device := &allocation.Devices.Results[i]
			id := idOf(device)
			switch {
			case device.AdminAccess != nil && *device.AdminAccess:
			case device.ShareID != nil:
				more.shares.Insert(structured.MakeSharedDeviceID(id, device.ShareID))
				more.capacity.Insert(structured.NewDeviceConsumedCapacity(id, device.ConsumedCapacity))
			default:
				more.devices.Insert(id)
			}
		}
	}
	return more
}

// idOf identifies an allocated device.
func idOf(device *resourcev1.DeviceRequestAllocationResult) structured.DeviceID {
	return structured.MakeDeviceID(device.Driver, device.Pool, device.Device)
}

// features are those of the kube-scheduler that Kubernetes 1.36 turns on by default.
var features = structured.Features{
	AdminAccess: true, ConsumableCapacity: true, DeviceBindingAndStatus: true, DeviceTaints: true, PartitionableDevices: true, PrioritizedList: true,
}

// upstream is the allocator of the kube-scheduler.
type upstream struct {
	classes  classes
	compiled *cel.Cache
}

// maxExpressions limits the compiled selectors that are kept.
const maxExpressions = 256

func newUpstream(all map[string]*resourcev1.DeviceClass) *upstream {
	return &upstream{classes: all, compiled: cel.NewCache(maxExpressions, cel.Features{EnableConsumableCapacity: features.ConsumableCapacity})}
}

func (u *upstream) allocate(node *corev1.Node, published []*resourcev1.ResourceSlice, used usage, claims []*resourcev1.ResourceClaim,
) ([]resourcev1.AllocationResult, error) {
	state := structured.AllocatedState{AllocatedDevices: used.devices, AllocatedSharedDeviceIDs: used.shares, AggregatedCapacity: used.capacity}
	allocating, err := structured.NewAllocator(context.Background(), features, state, u.classes, published, u.compiled)
	if err != nil {
		return nil, fmt.Errorf("prepare the allocation of devices: %w", err)
	}
	results, err := allocating.Allocate(context.Background(), node, claims)
	if err != nil {
		return nil, fmt.Errorf("allocate devices: %w", err)
	}
	return results, nil
}

// classes are the DeviceClasses by name, as the allocator asks for them.
type classes map[string]*resourcev1.DeviceClass

// List implements structured.DeviceClassLister.
func (c classes) List() ([]*resourcev1.DeviceClass, error) {
	all := slices.Collect(maps.Values(c))
	slices.SortFunc(all, func(a, b *resourcev1.DeviceClass) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Get implements structured.DeviceClassLister.
func (c classes) Get(name string) (*resourcev1.DeviceClass, error) {
	if class := c[name]; class != nil {
		return class, nil
	}
	return nil, fmt.Errorf("DeviceClass %s does not exist", name)
}
