package model

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Plan is what Pack decided.
type Plan struct {
	// Claims are the nodes to create, alike ones next to each other.
	Claims []Claim
	// Placements are the pods that fit on nodes which exist or are on their way.
	Placements []Placement
	// Unplaced are the pods nothing could be done for.
	Unplaced []Unplaced
	// Unsellable are the NodePools of which nothing can be launched now, whatever pods ask for.
	Unsellable []Unsellable
}

// Unsellable is a NodePool whose requirements no instance type meets that is available.
type Unsellable struct {
	NodePool string
	// MinValues says that instance types do, but too few different ones for its minValues.
	MinValues bool
}

// PricePerHour is what the plan's claims cost, in US dollars, when each gets its cheapest offering.
func (p Plan) PricePerHour() float64 {
	sum := 0.0
	for i := range p.Claims {
		sum += p.Claims[i].PricePerHour
	}
	return sum
}

// Observation is what would be done for a NodePool.
type Observation struct {
	// Launches and Removals each have one sentence for a node to launch, or for a command that removes nodes.
	Launches, Removals []string
	// PricePerHour is what the launches would cost and SavesPerHour what the removals would save, per hour in the currency of
	// Zone.
	PricePerHour, SavesPerHour float64
	Zone                       string
}

// Placement is a pod that fits on a node which exists or is on its way.
type Placement struct {
	Pod *Pod
	// Node is the Key of the Node.
	Node string
}

// Unplaced is a pod that stays without a node, and why.
type Unplaced struct {
	Pod *Pod
	// Reasons are shared between pods of one class: one for each NodePool, or a single one without NodePool when
	// there is no NodePool, or none could ever help. The pool that came nearest to serving the pod is first.
	Reasons []Reason
}

// Reason is why a NodePool cannot serve a pod.
type Reason struct {
	NodePool string
	Message  string
}

// Claim is one node to create.
type Claim struct {
	NodePool  string
	NodeClass string
	// CapacityType is the one to buy.
	CapacityType string
	// Reservation is the capacity reservation a reserved claim is launched into; empty for others.
	Reservation string
	// InstanceTypes may be launched, the cheapest first, MaxInstanceTypes at most.
	InstanceTypes []string
	// Zones may be launched into, ordered by name.
	Zones []string
	// Requirements are the NodeClaim's: the pool's, narrowed to the fields above.
	Requirements []karpv1.NodeSelectorRequirementWithMinValues
	// Requests are the sum of the pods and of the DaemonSets the cheapest type will run.
	Requests corev1.ResourceList
	// Labels are what the claim and its node carry beyond what the instance type and offering say.
	Labels map[string]string
	// Pods are the pods the node is for.
	Pods []types.UID
	// PricePerHour is the price of the cheapest offering, in US dollars. MaxPricePerHour is what on-demand would cost
	// instead of spot: more expensive spot is not launched. It is zero if the claim is not for spot, or only spot will do.
	PricePerHour, MaxPricePerHour float64
	// Group is equal for claims that can be launched by one call.
	Group string
	// MinValuesRelaxed says that the pool's minValues could not be met.
	MinValuesRelaxed bool
	// Drivers are the drivers of the devices that its pods claim, ordered by name.
	Drivers []string
}
