// Package cloud is the contract between Tenon and a cloud provider.
//
// A provider answers questions: what a node class currently selects (ResolveNodeClass), what can be launched for it and
// at which price (InstanceTypes), what exactly a launch will request (PrepareLaunch), what is running (Instances), how
// an instance differs from what its class asks for now (Drift), what is left of earlier classes (Leftovers), and when a
// node counts as lost (RepairPolicies). It also acts: it launches (Launch), tags (Tag) and terminates (Terminate)
// instances, and removes what it created for a class (ReleaseNodeClass, RemoveLeftover).
//
// # Exactly once
//
// Launch is the only call whose repetition could cost money, so it is split in two. PrepareLaunch turns names into a
// LaunchRequest in which everything is resolved, such as subnets, images, tags and prices. The workflow records the request
// before anything is launched. Launch then sends exactly that request with a client token chosen by the workflow. After
// a lost reply, a timeout or a killed worker, the workflow sends it again: the same token with the same request
// launches nothing new and returns the instances of the first call. Where the cloud cannot answer that way (ErrorKind
// ParameterMismatch, or a token too old to be remembered), the instances are found by the launch group in their tags,
// which they have from creation: Instances with Query.LaunchGroup. A new token is used only after the old one is known
// to have launched nothing.
//
// # Ownership
//
// Every instance carries, from the moment of its creation, the tags of its owner: cluster, NodePool, node class and
// launch group. A provider never lists, tags or terminates an instance without the tag of its own cluster.
//
// # Errors
//
// Every error a provider returns is classified once, at its boundary, as an ErrorKind (KindOf). The kinds say what the
// caller has to do next, not what the cloud called it; the cloud's own code stays in the message.
package cloud

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Provider is everything Tenon asks of a cloud. All methods are safe for concurrent use and idempotent. Consumers
// declare the few methods they need themselves; cloud/cloudtest tests every provider against this interface.
type Provider interface {
	// Kind describes the provider's node classes. It is always the same. A class that is passed to the other methods is of
	// this kind.
	Kind() Kind

	// ResolveNodeClass resolves what the class selects to what that is now, such as subnets and images, and makes what it
	// needs in the cloud. It returns a copy of class with the complete status, with one condition per part and Ready
	// over all of them; a selector that matches nothing is a False condition, not an error. It does not modify class. A
	// part of the status that has not changed is as it was in class, in the same order.
	ResolveNodeClass(ctx context.Context, class NodeClass) (NodeClass, error)

	// ReleaseNodeClass removes what the provider created for a class that is being deleted. It succeeds if nothing is left.
	ReleaseNodeClass(ctx context.Context, class NodeClass) error

	// InstanceTypes returns what can be launched for a class, ordered by name, with the capacity and allocatable a node
	// of that class will have. Offerings that recently had no capacity are included, marked as not available. The
	// values are shared between callers and must not be modified. If the class's status is not resolved, the error is
	// NodeClassNotReady.
	InstanceTypes(ctx context.Context, class NodeClass) ([]*InstanceType, error)

	// Excluded returns what the class keeps its nodes from having, and why: types of the region that cannot be launched for
	// it, and devices that types would otherwise have. It is what the last InstanceTypes of the class left out, empty
	// before the first, and does not call the cloud.
	Excluded(class NodeClass) []Exclusion

	// VolumePrice returns what the volumes of one node of a class cost per hour, in the currency of the region's
	// prices. It does not call the cloud.
	VolumePrice(class NodeClass) float64

	// Drift compares claims launched from a class, and their instances, with what the class asks for now. It returns
	// one answer for each question. The reasons are the provider's own; if several apply, the first one is returned.
	// What the selectors match is taken from the class's status, and Drift makes no calls to the cloud that
	// InstanceTypes does not make. A part of the status that is not resolved is not compared.
	Drift(ctx context.Context, class NodeClass, questions []DriftQuestion) ([]Drift, error)

	// PrepareLaunch resolves a launch into the complete request, and makes what the request refers to. It launches
	// nothing and may be repeated at will.
	PrepareLaunch(ctx context.Context, spec LaunchSpec) (LaunchRequest, error)

	// Launch sends the request. A reply with fewer instances than asked for is not an error: the offerings that were
	// refused are in LaunchResult.Refused, and they count as unavailable for the next three minutes; a full
	// reservation, until its room is read again. The error is InsufficientCapacity only when nothing was launched at
	// all for lack of capacity; LaunchResult.Refused then lists the offerings that the reply names.
	Launch(ctx context.Context, request LaunchRequest) (LaunchResult, error)

	// Instances returns this cluster's instances that match the query, ordered by id.
	Instances(ctx context.Context, query Query) ([]Instance, error)

	// Terminate terminates the instances with these ids. Ids that are unknown or already gone are not an error. An
	// instance without this cluster's ownership tags is refused with the kind Forbidden.
	Terminate(ctx context.Context, ids []string) error

	// Tag adds tags to one instance of this cluster.
	Tag(ctx context.Context, id string, tags map[string]string) error

	// Leftovers returns what was made for node classes of this cluster and is of no use any more, because no class needs it
	// and no instance has it. classes are all that exist. What was made since they were read may be among the answer, so
	// only what is returned again and again is certain.
	Leftovers(ctx context.Context, classes []NodeClass) ([]Leftover, error)

	// RemoveLeftover removes one of them. It succeeds if it is gone already. What lacks this cluster's ownership tags is
	// refused with the kind Forbidden, and what has come into use with the kind Transient.
	RemoveLeftover(ctx context.Context, leftover Leftover) error

	// RepairPolicies says which conditions of a Node mean that its instance will not recover.
	RepairPolicies() []RepairPolicy
}

// Leftover names something that was made for a node class and is of no use any more.
type Leftover struct {
	// Kind is the cloud's word for it, such as launch template.
	Kind string
	Name string
}

// String returns the kind and the name.
func (l Leftover) String() string { return l.Kind + " " + l.Name }

// RepairPolicy is a condition of a Node that is tolerated for a while.
type RepairPolicy struct {
	Condition corev1.NodeConditionType
	Status    corev1.ConditionStatus
	// Tolerated is for how long the condition may last before the node counts as lost.
	Tolerated time.Duration
}

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

// LaunchSpec is a launch in Kubernetes' terms: what PrepareLaunch resolves.
type LaunchSpec struct {
	// Group is the launch group: unique within the cluster, at most 63 characters of a label value.
	Group string
	// Count is how many instances are wanted, at least 1.
	Count int
	// Class is the node class, with its status resolved.
	Class NodeClass
	// NodePool is the pool the instances are tagged with; empty for claims without one.
	NodePool string
	// CapacityType is the one capacity type that is bought.
	CapacityType string
	// Tenancy is default or dedicated: whether the hardware may be shared with other accounts. Empty means default, and is
	// what a provider without LabelKeys.Tenancy gets.
	Tenancy string
	// Partition is the partition of the class's placement group; empty leaves it to the cloud.
	Partition string
	// Offerings are the acceptable ones, the preferred first, at most a few hundred.
	Offerings []OfferingKey
	// Prices replace the cloud's prices of some offerings, per hour in the region's currency. If there are any, the
	// cloud is told to choose by the prices in the request, because it would otherwise choose by its own.
	Prices map[OfferingKey]float64
	// Labels and Taints are what the node registers with, before registration adds the rest.
	Labels map[string]string
	Taints []corev1.Taint
	// Requests are the names of the resources that the claims request. Some devices are attached only on request, such
	// as vpc.amazonaws.com/efa.
	Requests []corev1.ResourceName
}

// LaunchResult is the outcome of a launch.
type LaunchResult struct {
	// Instances are ordered by id, so that everyone who asks pairs them with claims in the same way.
	Instances []Instance `json:"instances"`
	// Refused are the offerings that had no capacity.
	Refused []Refusal `json:"refused,omitempty"`
}

// Refusal is an offering the cloud could not serve.
type Refusal struct {
	OfferingKey
	// Code is the cloud's own error code.
	Code string `json:"code"`
	// Message is the cloud's own error message.
	Message string `json:"message,omitempty"`
}

// DriftNodeClass is the reason of a Drift found only by the class's hash, so that its message cannot name a field.
const DriftNodeClass = "NodeClassDrift"

// DriftQuestion is a claim and the instance launched for it. While the instance is not known (its ID is empty), only what
// the claim says is compared.
type DriftQuestion struct {
	Claim    *karpv1.NodeClaim
	Instance Instance
}

// Drift is how a node differs from what would be launched now. The zero Drift means that it does not differ.
type Drift struct {
	// Reason is one word, for the condition Drifted.
	Reason string
	// Message is for people, and names the field and both values.
	Message string
}

// Query selects instances of this cluster. The zero Query selects all of them.
type Query struct {
	// IDs, when not empty, are the only instances wanted. Unknown ids are left out of the answer.
	IDs []string
	// LaunchGroup, when not empty, selects the instances tagged with that group.
	LaunchGroup string
	// Terminating includes instances that are shutting down, and those that are terminated for as long as the cloud
	// still shows them; without it only pending, running, stopping and stopped ones are returned.
	Terminating bool
}

// Instance is one machine.
type Instance struct {
	// ID is the cloud's id, such as i-0123456789abcdef0.
	ID string `json:"id"`
	// ProviderID is the Node's spec.providerID, such as aws:///us-east-1a/i-0123456789abcdef0.
	ProviderID   string `json:"providerID"`
	InstanceType string `json:"instanceType"`
	Zone         string `json:"zone"`
	ZoneID       string `json:"zoneID,omitempty"`
	CapacityType string `json:"capacityType"`
	// Reservation is the capacity reservation the instance runs in; empty for on-demand and spot.
	Reservation string `json:"reservation,omitempty"`
	// PlacementGroup is the placement group the instance runs in, and Partition its partition there; empty without one. The
	// reply to a launch has no partition unless the request named one.
	PlacementGroup string `json:"placementGroup,omitempty"`
	Partition      string `json:"partition,omitempty"`
	Image          string `json:"image"`
	// Profile is the identity with which it runs, such as an EC2 instance profile.
	Profile string `json:"profile,omitempty"`
	// Price is what it costs per hour, in the region's currency, as far as its request says; only Launch tells it.
	Price float64 `json:"price,omitempty"`
	// State is pending, running, shutting-down, terminated, stopping or stopped.
	State string `json:"state"`
	// LaunchTime is when the cloud accepted the launch.
	LaunchTime time.Time `json:"launchTime"`
	// Subnet and SecurityGroups are what Provider.Drift may compare.
	Subnet         string   `json:"subnet,omitempty"`
	SecurityGroups []string `json:"securityGroups,omitempty"`
	// LaunchGroup and NodePool are read from the ownership tags.
	LaunchGroup string `json:"launchGroup,omitempty"`
	NodePool    string `json:"nodePool,omitempty"`
	// Tags are all tags of the instance.
	Tags map[string]string `json:"tags,omitempty"`
}

// InstanceID returns the cloud's own id from a provider id: i-0123 from aws:///us-east-1a/i-0123.
func InstanceID(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}
