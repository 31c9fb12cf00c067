package plan

import (
	"maps"
	"math"
	"slices"
)

// The first dimensions of every vector; extended resources follow.
const (
	dimCPU = iota
	dimMemory
	dimStorage
	dimPods
	dimExtended
)

// dimensions numbers the resources that matter to one Pack: the four every node has, and the extended ones that some
// pod or DaemonSet asks for.
type dimensions struct {
	extended []string
	index    map[string]int
	// caps are the bounds on groups of pods that count as resources; they come after the extended ones.
	caps []hostCap
}

func newDimensions(classes []*Class, caps ...hostCap) *dimensions {
	index := map[string]int{}
	for _, class := range classes {
		for _, amount := range class.Requests.Extended {
			index[amount.Name] = 0
		}
	}
	d := &dimensions{extended: slices.Sorted(maps.Keys(index)), index: index, caps: caps}
	for i, name := range d.extended {
		index[name] = dimExtended + i
	}
	return d
}

func (d *dimensions) count() int { return dimExtended + len(d.extended) + len(d.caps) }

// name is the Kubernetes name of a dimension.
func (d *dimensions) name(dim int) string {
	switch dim {
	case dimCPU:
		return "cpu"
	case dimMemory:
		return "memory"
	case dimStorage:
		return "ephemeral-storage"
	case dimPods:
		return "pods"
	}
	if dim -= dimExtended; dim < len(d.extended) {
		return d.extended[dim]
	}
	return "pods of a kind"
}

// vector lays resources out by dimension.
func (d *dimensions) vector(r Resources) []int64 {
	v := make([]int64, d.count())
	v[dimCPU], v[dimMemory], v[dimStorage], v[dimPods] = r.CPU, r.Memory, r.EphemeralStorage, r.Pods
	for _, amount := range r.Extended {
		if i, ok := d.index[amount.Name]; ok {
			v[i] = amount.Value
		}
	}
	return v
}

// machine lays out what a new machine has: the bounds on groups of pods are whole.
func (d *dimensions) machine(r Resources) []int64 {
	v := d.vector(r)
	for i := range d.caps {
		v[d.cap(i)] = int64(d.caps[i].most)
	}
	return v
}

// unbounded lifts the bounds: where groups are counted one by one, they say nothing.
func (d *dimensions) unbounded(v []int64) {
	for i := range d.caps {
		v[d.cap(i)] = math.MaxInt32
	}
}

// resources is the inverse of vector.
func (d *dimensions) resources(v []int64) Resources {
	r := Resources{CPU: v[dimCPU], Memory: v[dimMemory], EphemeralStorage: v[dimStorage], Pods: v[dimPods]}
	for i, name := range d.extended {
		if value := v[dimExtended+i]; value != 0 {
			r.Extended = append(r.Extended, Amount{Name: name, Value: value})
		}
	}
	return r
}

// fits says whether a request fits into what is free. What is not asked for may be overdrawn.
func fits(request, free []int64) bool {
	for d, amount := range request {
		if amount > 0 && amount > free[d] {
			return false
		}
	}
	return true
}

// times says how often a request fits into what is free.
func times(request, free []int64) int {
	count := int64(math.MaxInt32)
	for d, amount := range request {
		if amount <= 0 {
			continue
		}
		if free[d] < amount {
			return 0
		}
		if n := free[d] / amount; n < count {
			count = n
		}
	}
	return int(count)
}

// take subtracts a request n times.
func take(free, request []int64, n int) {
	for d, amount := range request {
		free[d] -= amount * int64(n)
	}
}
