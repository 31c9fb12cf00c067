package workflows

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// PlannedClaim is a NodeClaim that a replacement is to create: the planner's claim, frozen in a history under field names of
// its own. Package activities converts between the two types, which compiles only while both have the same fields.
type PlannedClaim struct {
	NodePool  string `json:"nodePool"`
	NodeClass string `json:"nodeClass,omitempty"`
	// CapacityType is the one to buy, Reservation the capacity reservation of a reserved claim.
	CapacityType string `json:"capacityType,omitempty"`
	Reservation  string `json:"reservation,omitempty"`
	// InstanceTypes are the types that may be launched, the cheapest first, and Zones are where.
	InstanceTypes []string `json:"instanceTypes,omitempty"`
	Zones         []string `json:"zones,omitempty"`
	// Requirements, Requests and Labels are the NodeClaim's.
	Requirements []karpv1.NodeSelectorRequirementWithMinValues `json:"requirements,omitempty"`
	Requests     corev1.ResourceList                           `json:"requests,omitempty"`
	Labels       map[string]string                             `json:"labels,omitempty"`
	// Pods are the pods the node is for.
	Pods []types.UID `json:"pods,omitempty"`
	// PricePerHour is the price of the cheapest offering, and MaxPricePerHour is what on-demand would cost instead of spot;
	// zero means no limit. Both are in US dollars.
	PricePerHour    float64 `json:"pricePerHour,omitempty"`
	MaxPricePerHour float64 `json:"maxPricePerHour,omitempty"`
	// Group is equal for claims that can be launched by one call.
	Group string `json:"group,omitempty"`
	// MinValuesRelaxed says that the pool's minValues could not be met.
	MinValuesRelaxed bool `json:"minValuesRelaxed,omitempty"`
	// Drivers are the drivers of the devices that its pods claim.
	Drivers []string `json:"drivers,omitempty"`
}
