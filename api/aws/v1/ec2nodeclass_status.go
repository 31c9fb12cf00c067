package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Conditions of an EC2NodeClass. All but CapacityReservationsReady make up Ready; that one does where it is present.
const (
	// ConditionTypeAMIsReady is True when at least one image was found.
	ConditionTypeAMIsReady = "AMIsReady"
	// ConditionTypeSubnetsReady is True when at least one subnet was found.
	ConditionTypeSubnetsReady = "SubnetsReady"
	// ConditionTypeSecurityGroupsReady is True when at least one security group was found.
	ConditionTypeSecurityGroupsReady = "SecurityGroupsReady"
	// ConditionTypeInstanceProfileReady is True when the instance profile exists.
	ConditionTypeInstanceProfileReady = "InstanceProfileReady"
	// ConditionTypeValidationSucceeded is True when EC2 would accept launches of the class.
	ConditionTypeValidationSucceeded = "ValidationSucceeded"
	// ConditionTypePlacementGroupReady is True when the placement group was found, or none is asked for.
	ConditionTypePlacementGroupReady = "PlacementGroupReady"
	// ConditionTypeCapacityReservationsReady is True when the capacity reservations were looked up.
	ConditionTypeCapacityReservationsReady = "CapacityReservationsReady"
)

// EC2NodeClassStatus is what a class's selectors meant when they were last resolved.
type EC2NodeClassStatus struct {
	// subnets that were selected, those with most free addresses first.
	// +optional
	Subnets []Subnet `json:"subnets,omitempty"`

	// securityGroups that were selected.
	// +optional
	SecurityGroups []SecurityGroup `json:"securityGroups,omitempty"`

	// capacityReservations that were selected.
	// +optional
	CapacityReservations []CapacityReservation `json:"capacityReservations,omitempty"`

	// amis that were selected, the preferred first.
	// +optional
	AMIs []AMI `json:"amis,omitempty"`

	// instanceProfile nodes are launched with.
	// +optional
	InstanceProfile string `json:"instanceProfile,omitempty"`

	// conditions say whether nodes can be launched, and why not.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Subnet is a subnet that was selected.
type Subnet struct {
	// id of the subnet.
	// +required
	ID string `json:"id"`
	// zone is the name of its availability zone, such as us-east-1a.
	// +required
	Zone string `json:"zone"`
	// zoneID is the zone's identity across accounts, such as use1-az1.
	// +optional
	ZoneID string `json:"zoneID,omitempty"`
}

// SecurityGroup is a security group that was selected.
type SecurityGroup struct {
	// id of the security group.
	// +required
	ID string `json:"id"`
	// name of the security group.
	// +optional
	Name string `json:"name,omitempty"`
}

// AMI is an image that was selected, and the nodes it is for.
type AMI struct {
	// id of the image.
	// +required
	ID string `json:"id"`
	// deprecated images are used only where there is no other.
	// +optional
	Deprecated bool `json:"deprecated,omitempty"`
	// name of the image.
	// +optional
	Name string `json:"name,omitempty"`
	// requirements on the labels of instance types the image runs on.
	// +required
	Requirements []corev1.NodeSelectorRequirement `json:"requirements"`
}

// CapacityReservationType is the kind of a capacity reservation.
// +kubebuilder:validation:Enum=default;capacity-block
type CapacityReservationType string

// The kinds of capacity reservations.
const (
	CapacityReservationTypeDefault       CapacityReservationType = "default"
	CapacityReservationTypeCapacityBlock CapacityReservationType = "capacity-block"
)

// CapacityReservationState says whether a capacity reservation is still of use.
// +kubebuilder:validation:Enum=active;expiring
type CapacityReservationState string

// The states of capacity reservations.
const (
	// CapacityReservationStateActive takes new instances.
	CapacityReservationStateActive CapacityReservationState = "active"
	// CapacityReservationStateExpiring is a capacity block that EC2 is about to empty.
	CapacityReservationStateExpiring CapacityReservationState = "expiring"
)

// CapacityReservation is a capacity reservation that was selected.
type CapacityReservation struct {
	// availabilityZone is the zone's name.
	// +required
	AvailabilityZone string `json:"availabilityZone"`
	// endTime is when the reservation ends; without one it does not.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty" hash:"ignore"`
	// id of the reservation.
	// +kubebuilder:validation:Pattern=`^cr-[0-9a-z]+$`
	// +required
	ID string `json:"id"`
	// instanceMatchCriteria is open or targeted.
	// +kubebuilder:validation:Enum=open;targeted
	// +required
	InstanceMatchCriteria string `json:"instanceMatchCriteria"`
	// instanceType that is reserved.
	// +required
	InstanceType string `json:"instanceType"`
	// ownerID is the account the reservation belongs to.
	// +kubebuilder:validation:Pattern=`^[0-9]{12}$`
	// +required
	OwnerID string `json:"ownerID"`
	// reservationType is the kind of reservation.
	// +kubebuilder:default=default
	// +optional
	ReservationType CapacityReservationType `json:"reservationType,omitempty"`
	// state of the reservation.
	// +kubebuilder:default=active
	// +optional
	State CapacityReservationState `json:"state,omitempty"`
	// interruptible reservations may be taken back.
	// +optional
	Interruptible bool `json:"interruptible,omitempty"`
}

// ReadyParts returns the conditions whose roll-up is Ready.
func (in *EC2NodeClass) ReadyParts() []string {
	parts := []string{
		ConditionTypeAMIsReady,
		ConditionTypeSubnetsReady,
		ConditionTypeSecurityGroupsReady,
		ConditionTypeInstanceProfileReady,
		ConditionTypeValidationSucceeded,
		ConditionTypePlacementGroupReady,
	}
	if in.Condition(ConditionTypeCapacityReservationsReady) != nil {
		parts = append(parts, ConditionTypeCapacityReservationsReady)
	}
	return parts
}

// Images returns the images that were selected.
func (in *EC2NodeClass) Images() []karpv1.Image {
	var images []karpv1.Image
	for i := range in.Status.AMIs {
		images = append(images, karpv1.Image{ID: in.Status.AMIs[i].ID, Name: in.Status.AMIs[i].Name})
	}
	return images
}

// Selected returns the ids of the security groups, subnets and capacity reservations that were selected.
func (in *EC2NodeClass) Selected() []string {
	var ids []string
	for i := range in.Status.SecurityGroups {
		ids = append(ids, in.Status.SecurityGroups[i].ID)
	}
	for i := range in.Status.Subnets {
		ids = append(ids, in.Status.Subnets[i].ID)
	}
	for i := range in.Status.CapacityReservations {
		ids = append(ids, in.Status.CapacityReservations[i].ID)
	}
	return ids
}

// StatusConditions returns the conditions, to be read and changed in place.
func (in *EC2NodeClass) StatusConditions() *[]metav1.Condition { return &in.Status.Conditions }

// Condition returns the condition of a type, or nil. It points into the status.
func (in *EC2NodeClass) Condition(conditionType string) *metav1.Condition {
	return meta.FindStatusCondition(in.Status.Conditions, conditionType)
}

// IsTrue tells whether the condition of a type is True.
func (in *EC2NodeClass) IsTrue(conditionType string) bool {
	return meta.IsStatusConditionTrue(in.Status.Conditions, conditionType)
}

// SetCondition sets a condition (Type, Status, Reason and Message; an empty reason becomes the type), rolls Ready up
// again and tells whether anything changed. LastTransitionTime is kept while the status stays the same; set it in c to
// have it taken instead of the clock when the status changes.
func (in *EC2NodeClass) SetCondition(c metav1.Condition) bool {
	return karpv1.SetCondition(&in.Status.Conditions, in.Generation, c, in.ReadyParts)
}

// ClearCondition removes a condition and tells whether it was there.
func (in *EC2NodeClass) ClearCondition(conditionType string) bool {
	return meta.RemoveStatusCondition(&in.Status.Conditions, conditionType)
}
