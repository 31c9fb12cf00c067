package model

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Resources is an amount of everything a pod can ask for, in integers. The zero value is nothing at all.
// Values are never modified once they are shared.
type Resources struct {
	// CPU is in thousandths of a core.
	CPU int64
	// Memory is in bytes.
	Memory int64
	// EphemeralStorage is in bytes.
	EphemeralStorage int64
	// Pods is a count.
	Pods int64
	// Extended are all other resources, such as nvidia.com/gpu and hugepages-2Mi, ordered by name and none of them zero.
	Extended []Amount
}

// Amount is a quantity of one extended resource.
type Amount struct {
	Name string
	// Value is in units of the resource: devices, or bytes for hugepages.
	Value int64
}

// ResourcesOf reduces a list of quantities. Fractions of a unit are rounded up, as the kube-scheduler does.
func ResourcesOf(list corev1.ResourceList) Resources {
	var r Resources
	for name, quantity := range list {
		switch name {
		case corev1.ResourceCPU:
			r.CPU = quantity.MilliValue()
		case corev1.ResourceMemory:
			r.Memory = quantity.Value()
		case corev1.ResourceEphemeralStorage:
			r.EphemeralStorage = quantity.Value()
		case corev1.ResourcePods:
			r.Pods = quantity.Value()
		default:
			if value := quantity.Value(); value != 0 {
				r.Extended = append(r.Extended, Amount{Name: string(name), Value: value})
			}
		}
	}
	slices.SortFunc(r.Extended, func(a, b Amount) int { return cmp.Compare(a.Name, b.Name) })
	return r
}

// List is the inverse of ResourcesOf. Zero amounts are left out.
func (r Resources) List() corev1.ResourceList {
	list := corev1.ResourceList{}
	if r.CPU != 0 {
		list[corev1.ResourceCPU] = *resource.NewMilliQuantity(r.CPU, resource.DecimalSI)
	}
	if r.Memory != 0 {
		list[corev1.ResourceMemory] = *resource.NewQuantity(r.Memory, resource.BinarySI)
	}
	if r.EphemeralStorage != 0 {
		list[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(r.EphemeralStorage, resource.BinarySI)
	}
	if r.Pods != 0 {
		list[corev1.ResourcePods] = *resource.NewQuantity(r.Pods, resource.DecimalSI)
	}
	for _, amount := range r.Extended {
		list[corev1.ResourceName(amount.Name)] = *resource.NewQuantity(amount.Value, resource.DecimalSI)
	}
	return list
}

// Get returns the amount of one resource by its Kubernetes name: cpu in thousandths, the rest in units.
func (r Resources) Get(name string) int64 {
	switch corev1.ResourceName(name) {
	case corev1.ResourceCPU:
		return r.CPU
	case corev1.ResourceMemory:
		return r.Memory
	case corev1.ResourceEphemeralStorage:
		return r.EphemeralStorage
	case corev1.ResourcePods:
		return r.Pods
	}
	if i, found := slices.BinarySearchFunc(r.Extended, name, compareAmount); found {
		return r.Extended[i].Value
	}
	return 0
}

func compareAmount(a Amount, name string) int { return cmp.Compare(a.Name, name) }

// Equal says whether two are the same amounts.
func (r Resources) Equal(other Resources) bool {
	return r.CPU == other.CPU && r.Memory == other.Memory && r.EphemeralStorage == other.EphemeralStorage && r.Pods == other.Pods &&
		slices.Equal(r.Extended, other.Extended)
}

// Add returns the sum. Sums saturate instead of overflowing.
func (r Resources) Add(other Resources) Resources { return r.combine(other, SaturatingAdd) }

// Max returns the larger amount of each resource.
func (r Resources) Max(other Resources) Resources {
	return r.combine(other, func(a, b int64) int64 { return max(a, b) })
}

// holds says whether a request finds room beside what is used. What is not asked for may be overdrawn.
func (r Resources) holds(request, used Resources) bool {
	room := func(request, used, all int64) bool { return request <= 0 || SaturatingAdd(request, used) <= all }
	for _, amount := range request.Extended {
		if !room(amount.Value, used.Get(amount.Name), r.Get(amount.Name)) {
			return false
		}
	}
	return room(request.CPU, used.CPU, r.CPU) && room(request.Memory, used.Memory, r.Memory) &&
		room(request.EphemeralStorage, used.EphemeralStorage, r.EphemeralStorage) && room(request.Pods, used.Pods, r.Pods)
}

func (r Resources) combine(other Resources, op func(a, b int64) int64) Resources {
	sum := Resources{
		CPU:              op(r.CPU, other.CPU),
		Memory:           op(r.Memory, other.Memory),
		EphemeralStorage: op(r.EphemeralStorage, other.EphemeralStorage),
		Pods:             op(r.Pods, other.Pods),
	}
	if len(other.Extended) == 0 && len(r.Extended) == 0 {
		return sum
	}
	sum.Extended = make([]Amount, 0, len(r.Extended)+len(other.Extended))
	a, b := r.Extended, other.Extended
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Name < b[0].Name:
			sum.Extended = append(sum.Extended, Amount{a[0].Name, op(a[0].Value, 0)})
			a = a[1:]
		case len(a) == 0 || b[0].Name < a[0].Name:
			sum.Extended = append(sum.Extended, Amount{b[0].Name, op(0, b[0].Value)})
			b = b[1:]
		default:
			sum.Extended = append(sum.Extended, Amount{a[0].Name, op(a[0].Value, b[0].Value)})
			a, b = a[1:], b[1:]
		}
	}
	return sum
}

// SaturatingAdd is the sum, as far as it can be written.
func SaturatingAdd(a, b int64) int64 {
	sum := a + b
	switch {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	}
	return sum
}

// String is for people: "cpu 250m, memory 1Gi, pods 1".
func (r Resources) String() string {
	var parts []string
	list := r.List()
	names := make([]string, 0, len(list))
	for name := range list {
		names = append(names, string(name))
	}
	slices.Sort(names)
	for _, name := range names {
		quantity := list[corev1.ResourceName(name)]
		parts = append(parts, fmt.Sprintf("%s %s", name, quantity.String()))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// Quantity writes an amount of a resource for people.
func Quantity(name string, value int64) string {
	q := resource.NewQuantity(value, resource.DecimalSI)
	switch {
	case name == string(corev1.ResourceCPU) && value >= 1000:
		return strconv.FormatFloat(float64(value)/1000, 'f', -1, 64) // neither 5k nor 382970m
	case name == string(corev1.ResourceCPU):
		q = resource.NewMilliQuantity(value, resource.DecimalSI)
	case name == string(corev1.ResourceMemory) || name == string(corev1.ResourceEphemeralStorage):
		if value >= 1<<30 {
			// More precision than a tenth of a GiB only hides the figure.
			return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(value)/(1<<30)), ".0") + "Gi"
		}
		q = resource.NewQuantity(value, resource.BinarySI)
	}
	return q.String()
}

// SortedKeys are a map's keys in order.
func SortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
