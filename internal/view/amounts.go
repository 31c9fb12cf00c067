package view

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan"
)

// Amounts are quantities of resources.
type Amounts struct {
	// CPU is in thousandths of a core, Memory and EphemeralStorage in bytes.
	CPU              int64 `json:"cpu"`
	Memory           int64 `json:"memory"`
	EphemeralStorage int64 `json:"ephemeralStorage,omitempty"`
	Pods             int64 `json:"pods"`
	// Others are extended resources, by name: devices, or bytes of huge pages.
	Others []Amount `json:"others,omitempty"`
}

// Amount is a quantity of one extended resource.
type Amount struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
}

func amountsOf(r plan.Resources) Amounts {
	a := Amounts{CPU: r.CPU, Memory: r.Memory, EphemeralStorage: r.EphemeralStorage, Pods: r.Pods}
	for _, other := range r.Extended {
		a.Others = append(a.Others, Amount{other.Name, other.Value})
	}
	return a
}

// Of returns the amount of a resource by its name in Kubernetes, in the units of the fields; zero for what is not there.
func (a Amounts) Of(resource string) int64 {
	switch corev1.ResourceName(resource) {
	case corev1.ResourceCPU:
		return a.CPU
	case corev1.ResourceMemory:
		return a.Memory
	case corev1.ResourceEphemeralStorage:
		return a.EphemeralStorage
	case corev1.ResourcePods:
		return a.Pods
	}
	for _, other := range a.Others {
		if other.Name == resource {
			return other.Value
		}
	}
	return 0
}

func (a Amounts) equal(b Amounts) bool {
	return a.CPU == b.CPU && a.Memory == b.Memory && a.EphemeralStorage == b.EphemeralStorage && a.Pods == b.Pods && slices.Equal(a.Others, b.Others)
}

// Fill is the share of what can be allocated that is requested, from 0 to 1 and more where a node is overcommitted.
type Fill struct {
	CPU    float64 `json:"cpu"`
	Memory float64 `json:"memory"`
	Pods   float64 `json:"pods"`
}

// fillOf is zero for resources of which nothing can be allocated.
func fillOf(requested, allocatable Amounts) Fill {
	return Fill{CPU: share(requested.CPU, allocatable.CPU), Memory: share(requested.Memory, allocatable.Memory), Pods: share(requested.Pods, allocatable.Pods)}
}

func share(part, whole int64) float64 {
	if whole <= 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
