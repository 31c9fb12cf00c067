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
	slices.SortFunc(r.Extended, compareAmounts)
	return r
}

// List is the inverse of ResourcesOf. Zero amounts are left out.
func (r Resources) List() corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, amount := range r.amounts() {
		list[corev1.ResourceName(amount.Name)] = *quantity(amount.Name, amount.Value)
	}
	return list
}

// Amounts returns all amounts that are not zero, ordered by name: cpu in thousandths, the rest in units.
func (r Resources) Amounts() []Amount { return r.amounts() }

// Minus returns the difference.
func (r Resources) Minus(other Resources) Resources {
	return r.combine(other, func(a, b int64) int64 { return a - b })
}

// amounts returns all amounts that are not zero, ordered by name: cpu in thousandths, the rest in units.
func (r Resources) amounts() []Amount {
	all := append([]Amount{
		{Name: string(corev1.ResourceCPU), Value: r.CPU},
		{Name: string(corev1.ResourceEphemeralStorage), Value: r.EphemeralStorage},
		{Name: string(corev1.ResourceMemory), Value: r.Memory},
		{Name: string(corev1.ResourcePods), Value: r.Pods},
	}, r.Extended...)
	slices.SortFunc(all, compareAmounts)
	return slices.DeleteFunc(all, func(a Amount) bool { return a.Value == 0 })
}

func quantity(name string, value int64) *resource.Quantity {
	switch corev1.ResourceName(name) {
	case corev1.ResourceCPU:
		return resource.NewMilliQuantity(value, resource.DecimalSI)
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return resource.NewQuantity(value, resource.BinarySI)
	}
	return resource.NewQuantity(value, resource.DecimalSI)
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
	if i, found := slices.BinarySearchFunc(r.Extended, Amount{Name: name}, compareAmounts); found {
		return r.Extended[i].Value
	}
	return 0
}

func compareAmounts(a, b Amount) int { return cmp.Compare(a.Name, b.Name) }

// Add returns the sum. Sums saturate instead of overflowing.
func (r Resources) Add(other Resources) Resources { return r.combine(other, SaturatingAdd) }

// Max returns the larger amount of each resource.
func (r Resources) Max(other Resources) Resources {
	return r.combine(other, func(a, b int64) int64 { return max(a, b) })
}

// Equal says whether both have the same amounts.
func (r Resources) Equal(other Resources) bool { return slices.Equal(r.amounts(), other.amounts()) }

// or returns r, with the other's amount of each resource that r has none of.
func (r Resources) or(other Resources) Resources {
	return r.combine(other, func(a, b int64) int64 { return cmp.Or(a, b) })
}

// holds says whether a request fits beside what is used. A resource that is not requested may be overdrawn.
func (r Resources) holds(request, used Resources) bool {
	return !slices.ContainsFunc(request.amounts(), func(asked Amount) bool {
		return asked.Value > 0 && SaturatingAdd(asked.Value, used.Get(asked.Name)) > r.Get(asked.Name)
	})
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
	sum.Extended = slices.Concat(r.Extended, other.Extended)
	slices.SortFunc(sum.Extended, compareAmounts)
	sum.Extended = slices.CompactFunc(sum.Extended, func(a, b Amount) bool { return a.Name == b.Name })
	for i := range sum.Extended {
		amount := &sum.Extended[i]
		amount.Value = op(r.Get(amount.Name), other.Get(amount.Name))
	}
	return sum
}

// SaturatingAdd returns the sum, limited to the range of int64.
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
	for _, amount := range r.amounts() {
		parts = append(parts, amount.Name+" "+quantity(amount.Name, amount.Value).String())
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing")
}

// Quantity writes an amount of a resource for people.
func Quantity(name string, value int64) string {
	switch corev1.ResourceName(name) {
	case corev1.ResourceCPU:
		if value >= 1000 {
			return strconv.FormatFloat(float64(value)/1000, 'f', -1, 64) // neither 5k nor 382970m
		}
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		if value >= 1<<30 {
			// More precision than a tenth of a GiB only hides the figure.
			return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(value)/(1<<30)), ".0") + "Gi"
		}
	}
	return quantity(name, value).String()
}

// HasDevice says whether the amounts include a device: a resource that makes a machine expensive, and that not every
// machine has.
func (r Resources) HasDevice() bool {
	return slices.ContainsFunc(r.Extended, func(a Amount) bool {
		return !strings.HasPrefix(a.Name, "vpc.amazonaws.com/") && !strings.HasPrefix(a.Name, "hugepages-")
	})
}

// SortedKeys are a map's keys in order.
func SortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
