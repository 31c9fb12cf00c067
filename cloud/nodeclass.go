package cloud

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// NodeClass is an object of a provider's own kind that says how its nodes are set up, such as an EC2NodeClass. What Tenon
// needs to know of it is here; the rest of its spec and status is between the object and its provider.
type NodeClass interface {
	metav1.Object
	runtime.Object

	// Hash returns the hash of the parts of the spec whose change makes nodes drift. caBundle is the cluster's certificate
	// bundle in base64 where the worker knows it, else "".
	Hash(caBundle string) (string, error)
	// Images returns the images that nodes were last found to boot from, and Selected the ids of whatever else the class was
	// last found to select whose change makes nodes drift. Neither has an order.
	Images() []karpv1.Image
	Selected() []string
	// StatusConditions returns the conditions of the status, one of which is Ready, to be read and changed in place.
	StatusConditions() *[]metav1.Condition
	// Condition returns the condition of a type, or nil. It points into the status.
	Condition(conditionType string) *metav1.Condition
	// IsTrue tells whether the condition of a type is True.
	IsTrue(conditionType string) bool
}

// Kind describes the node classes of a provider, and the labels and annotations that it gives to nodes and claims. It is
// known before there is a provider: a mirror watches the node classes by it.
type Kind struct {
	schema.GroupVersionKind
	// Resource is the plural under which the API server serves the kind, such as ec2nodeclasses.
	Resource string
	// New returns an empty node class, and AddToScheme adds the kind and its list to a scheme.
	New         func() NodeClass
	AddToScheme func(*runtime.Scheme) error

	// Finalizer is on a node class until what the provider made for it is gone.
	Finalizer string
	// HashKey and HashVersionKey are the annotations with NodeClass.Hash and its version, on a node class and on the claims
	// launched from it. Hashes of different versions say nothing about each other; HashVersion is the present one.
	HashKey, HashVersionKey, HashVersion string
	// ProfileKey is the annotation for Instance.Profile on a claim; empty if instances have none.
	ProfileKey string
	// Labels are the keys of the provider's labels.
	Labels LabelKeys
}

// LabelKeys are the keys of those labels of nodes that mean something to Tenon and that every provider calls by a name of
// its own. A key is empty where the provider has nothing of the kind.
type LabelKeys struct {
	// OfType are those labels of instance types that Karpenter's API does not list (WellKnownLabels in api/karpenter/v1).
	OfType []string
	// ZoneID is for Offering.ZoneID.
	ZoneID string
	// Tenancy is for LaunchSpec.Tenancy.
	Tenancy string
	// PlacementGroup is for InstanceType.PlacementGroup, and Partition for one of InstanceType.Partitions.
	PlacementGroup, Partition string
	// Family is for the family of an instance type: types of one family differ in size alone.
	Family string
	// ReservationID, ReservationType and ReservationInterruptible are for the fields of Offering of these names.
	ReservationID, ReservationType, ReservationInterruptible string
}

// OfReservation says whether a label describes a capacity reservation.
func (k LabelKeys) OfReservation(key string) bool {
	return key != "" && (key == k.ReservationID || key == k.ReservationType || key == k.ReservationInterruptible)
}

// Values of Offering.ReservationType.
const (
	// ReservationDefault is capacity that stays reserved until its owner gives it up.
	ReservationDefault = "default"
	// ReservationBlock is capacity for a fixed time. One launch can use only one such reservation.
	ReservationBlock = "capacity-block"
)
