package view

import (
	"slices"

	"github.com/tenon-sh/tenon/plan"
)

// Amounts are quantities of resources.
type Amounts struct {
	// CPU is in thousandths of a core, Memory in bytes.
	CPU    int64 `json:"cpu"`
	Memory int64 `json:"memory"`
	Pods   int64 `json:"pods"`
	// Others are extended resources, by name: devices, or bytes of huge pages.
	Others []Amount `json:"others,omitempty"`
}

// Amount is a quantity of one extended resource.
type Amount struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
}

func amountsOf(r plan.Resources) Amounts {
	a := Amounts{CPU: r.CPU, Memory: r.Memory, Pods: r.Pods}
	for _, other := range r.Extended {
		a.Others = append(a.Others, Amount{other.Name, other.Value})
	}
	return a
}

func (a Amounts) equal(b Amounts) bool {
	return a.CPU == b.CPU && a.Memory == b.Memory && a.Pods == b.Pods && slices.Equal(a.Others, b.Others)
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
