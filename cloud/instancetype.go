package cloud

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// InstanceType is one kind of machine as a node of one node class.
type InstanceType struct {
	// Name is the cloud's name, such as m6g.xlarge.
	Name string
	// Labels are the well-known labels every node of this type has whatever its offering: architecture, operating
	// system, instance type, and the provider's own. NodePools and pods may select nodes by any of them.
	Labels map[string]string
	// Capacity is what the node will report as capacity.
	Capacity corev1.ResourceList
	// Allocatable is Capacity minus what is reserved for the kubelet, the system and eviction thresholds.
	Allocatable corev1.ResourceList
	// Offerings are the ways to buy it, ordered by zone and capacity type. Those of capacity reservations come last.
	Offerings []Offering
	// PlacementGroup is the placement group that the class's nodes are launched into; empty if it names none.
	PlacementGroup string
	// Partitions are the partitions of that group, as values of the label LabelKeys.Partition. A
	// launch may ask for one of them. It is nil if the group has none.
	Partitions []string
	// OnRequest are the resources of Capacity that a node has only if its claim asks for them, such as vpc.amazonaws.com/efa.
	OnRequest []corev1.ResourceName
	// BareMetal says that it is a whole host without a hypervisor.
	BareMetal bool
	// Overlaid are the extended resources that a NodeOverlay has set. A provider leaves it empty.
	Overlaid map[corev1.ResourceName]bool
	// Devices are the ResourceSlices that drivers will publish for a node, as a NodeOverlay describes them. A provider leaves
	// it empty.
	Devices []*resourcev1.ResourceSlice
}

// Exclusion is an instance type, or a device of one, that a node class excludes.
type Exclusion struct {
	// InstanceType is the type's name, and Labels are those that its nodes would have. They are shared and must not be
	// modified.
	InstanceType string
	Labels       map[string]string
	// Resource is the device that nodes of the type do not have; empty if the type cannot be launched at all.
	Resource corev1.ResourceName
	// Why says it of instance types in the plural, and names the field of the class: "have no Nitro hypervisor, which
	// spec.connectionTracking needs".
	Why string
}

// Offering is one way to buy an instance type.
type Offering struct {
	// CapacityType is on-demand, spot or reserved.
	CapacityType string `json:"capacityType"`
	// Zone is the availability zone's name, such as us-east-1a.
	Zone string `json:"zone"`
	// ZoneID is the zone's identity across accounts, such as use1-az1.
	ZoneID string `json:"zoneID,omitempty"`
	// Price is per hour, in the region's currency: US dollars, and yuan in China.
	Price float64 `json:"price"`
	// Overlaid says that a NodeOverlay sets the price. A provider leaves it false.
	Overlaid bool `json:"overlaid,omitempty"`
	// Available is false while the cloud is known to have no capacity for it.
	Available bool `json:"available"`
	// ShiftedUntil is until when traffic is shifted away from the zone, which makes the offering unavailable; zero if it is
	// not.
	ShiftedUntil time.Time `json:"shiftedUntil,omitzero"`
	// ReservationID is the capacity reservation that a reserved offering uses; on-demand and spot have none. An
	// instance type has one reserved offering in a zone for each reservation. Its price is nominal: the reservation is
	// paid for whether it is used or not.
	ReservationID string `json:"reservationID,omitempty"`
	// ReservationCapacity is how many more instances the reservation had room for when it was last read; others may use
	// that room as well. An offering without room is still Available, because room may become free.
	ReservationCapacity int `json:"reservationCapacity,omitempty"`
	// ReservationType is ReservationDefault or ReservationBlock.
	ReservationType string `json:"reservationType,omitempty"`
	// ReservationInterruptible says that the owner of the reservation may take its capacity back.
	ReservationInterruptible bool `json:"reservationInterruptible,omitempty"`
}

// NodeReport is what a registered node says about itself.
type NodeReport struct {
	// InstanceType and Image are what it was launched as.
	InstanceType, Image string
	// Memory is its capacity in bytes.
	Memory int64
}

// OfferingKey names an offering of an instance type.
type OfferingKey struct {
	InstanceType string `json:"instanceType"`
	Zone         string `json:"zone"`
	CapacityType string `json:"capacityType"`
	// ReservationID tells reserved offerings of one type and zone apart; empty for on-demand and spot.
	ReservationID string `json:"reservationID,omitempty"`
	// PlacementGroup is the placement group of the launch, because it may have no room where others have; empty without one.
	PlacementGroup string `json:"placementGroup,omitempty"`
}

// Ungrouped names the same offering without a placement group. What is refused there is refused in the group as well.
func (k OfferingKey) Ungrouped() OfferingKey {
	k.PlacementGroup = ""
	return k
}

// Key names the offering of an instance type.
func (o *Offering) Key(of *InstanceType) OfferingKey {
	return OfferingKey{
		InstanceType: of.Name, Zone: o.Zone, CapacityType: o.CapacityType, ReservationID: o.ReservationID, PlacementGroup: of.PlacementGroup,
	}
}
