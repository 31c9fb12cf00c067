package market

import (
	"slices"

	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
	"github.com/tenon-sh/tenon/plan/solve"
)

// Bitset is a set of machines or of zones.
type Bitset = solve.Bitset

// NewBitset returns an empty set of numbers below size.
func NewBitset(size int) Bitset { return solve.NewBitset(size) }

// The first dimensions of every vector; extended resources follow.
const (
	DimCPU = iota
	DimMemory
	dimStorage
	dimPods
	DimExtended
)

// Dimensions numbers the resources that matter to one Pack: the four every node has, and the extended ones that some
// pod or DaemonSet asks for.
type Dimensions struct {
	// resources are the Kubernetes names of the four and of the extended ones.
	resources []string
	Extended  []string
	// Caps are the bounds on groups of pods that count as resources; they come after the extended ones.
	Caps []rules.HostCap
	// Claims are the kinds of claims to devices, by devices.Needs.Key; they come last. A node has as much of each as it has
	// devices for pods of that kind.
	Claims []string
}

// NewDimensions numbers the resources that some classes ask for, followed by the bounds on groups of pods.
func NewDimensions(classes []*model.Class, caps ...rules.HostCap) *Dimensions {
	asked := map[string]bool{}
	for _, class := range classes {
		for _, amount := range class.Requests.Extended {
			asked[amount.Name] = true
		}
	}
	resources := append([]string{DimCPU: "cpu", DimMemory: "memory", dimStorage: "ephemeral-storage", dimPods: "pods"}, model.SortedKeys(asked)...)
	return &Dimensions{resources: resources, Extended: resources[DimExtended:], Caps: caps}
}

// Count is the length of a vector.
func (d *Dimensions) Count() int { return len(d.resources) + len(d.Caps) + len(d.Claims) }

// Name is the Kubernetes name of a dimension.
func (d *Dimensions) Name(dim int) string {
	if dim < len(d.resources) {
		return d.resources[dim]
	}
	if dim >= d.Claimed(0) {
		return "resource claims"
	}
	return "pods of a kind"
}

// Vector lays resources out by dimension.
func (d *Dimensions) Vector(r model.Resources) []int64 {
	v := make([]int64, d.Count())
	v[DimCPU], v[DimMemory], v[dimStorage], v[dimPods] = r.CPU, r.Memory, r.EphemeralStorage, r.Pods
	for i, name := range d.Extended {
		v[DimExtended+i] = r.Get(name)
	}
	return v
}

// Cap is the dimension of a bound.
func (d *Dimensions) Cap(i int) int { return len(d.resources) + i }

// Claimed is the dimension of a kind of claims.
func (d *Dimensions) Claimed(i int) int { return len(d.resources) + len(d.Caps) + i }

// ClaimCaps writes into a pod's request what it takes of the bounds. Of the pod's bounds that do not count as resources it
// returns the lowest; zero if there is none.
func (d *Dimensions) ClaimCaps(request []int64, r *rules.Rules) int {
	most := 0
	for _, c := range r.Caps() {
		for i, known := range d.Caps {
			// A pod counts against its own bound and looser ones: pods with a looser bound may join those with a stricter
			// one, but not the other way round.
			if known.Group == c.Group && known.Most >= c.Most {
				request[d.Cap(i)] = 1
			}
		}
		if !slices.Contains(d.Caps, c) && (most == 0 || c.Most < most) {
			most = c.Most
		}
	}
	return most
}

// Resources is the inverse of Vector.
func (d *Dimensions) Resources(v []int64) model.Resources {
	r := model.Resources{CPU: v[DimCPU], Memory: v[DimMemory], EphemeralStorage: v[dimStorage], Pods: v[dimPods]}
	for i, name := range d.Extended {
		if value := v[DimExtended+i]; value != 0 {
			r.Extended = append(r.Extended, model.Amount{Name: name, Value: value})
		}
	}
	return r
}
