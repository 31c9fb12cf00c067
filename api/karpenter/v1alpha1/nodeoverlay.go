package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Annotations of a NodeClaim that was planned with overlays: "true" where one changed a price, or a capacity, of its
// instance types.
const (
	// PriceOverlayAppliedAnnotationKey is "true" on a claim where an overlay changed a price.
	PriceOverlayAppliedAnnotationKey = karpv1.Group + "/price-overlay-applied"
	// CapacityOverlayAppliedAnnotationKey is "true" on a claim where an overlay changed a capacity.
	CapacityOverlayAppliedAnnotationKey = karpv1.Group + "/capacity-overlay-applied"
)

// Reasons of the condition ValidationSucceeded of a NodeOverlay that is False.
const (
	// ReasonRuntimeValidation says that the overlay breaks a rule that the API server could not check.
	ReasonRuntimeValidation = "RuntimeValidation"
	// ReasonConflict says that another overlay of the same weight sets the same thing.
	ReasonConflict = "Conflict"
)

// NodeOverlay changes what planning takes instance types for: their prices, and what extended resources they have.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=nodeoverlays,scope=Cluster,categories=karpenter,shortName=overlays
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Weight",type="integer",priority=1,JSONPath=".spec.weight"
type NodeOverlay struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:XValidation:message="cannot set both 'price' and 'priceAdjustment'",rule="!has(self.price) || !has(self.priceAdjustment)"
	// +required
	Spec NodeOverlaySpec `json:"spec"`
	// +optional
	Status NodeOverlayStatus `json:"status,omitempty"`
}

// NodeOverlayList is a list of NodeOverlays.
// +kubebuilder:object:root=true
type NodeOverlayList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeOverlay `json:"items"`
}

// NodeOverlaySpec is what is changed, and of which nodes.
type NodeOverlaySpec struct {
	// requirements say which nodes the overlay is about, by the labels that are known before a launch: the well-known ones,
	// and those of the NodePool's template. Without any it is about all.
	// +kubebuilder:validation:XValidation:message="requirements with operator 'NotIn' must have a value defined",rule="self.all(x, x.operator == 'NotIn' ? x.values.size() != 0 : true)"
	// +kubebuilder:validation:XValidation:message="requirements with operator 'In' must have a value defined",rule="self.all(x, x.operator == 'In' ? x.values.size() != 0 : true)"
	// +kubebuilder:validation:XValidation:message="requirements operator 'Gt', 'Lt', 'Gte' or 'Lte' must have a single positive integer value",rule="self.all(x, (x.operator == 'Gt' || x.operator == 'Lt' || x.operator == 'Gte' || x.operator == 'Lte') ? (x.values.size() == 1 && int(x.values[0]) >= 0) : true)"
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +required
	Requirements []NodeSelectorRequirement `json:"requirements"`

	// priceAdjustment changes the price: by an amount in US dollars per hour (+0.5, -0.25), or by a share (+10%, -30%). No
	// price falls below zero.
	// +kubebuilder:validation:Pattern=`^(([+-]{1}(\d*\.?\d+))|(\+{1}\d*\.?\d+%)|(^(-\d{1,2}(\.\d+)?%)$)|(-100%))$`
	// +optional
	PriceAdjustment *string `json:"priceAdjustment,omitempty"`

	// price replaces the price, in US dollars per hour.
	// +kubebuilder:validation:Pattern=`^\d+(\.\d+)?$`
	// +optional
	Price *string `json:"price,omitempty"`

	// capacity is what nodes have of extended resources. It changes no cpu, memory, ephemeral-storage or pods.
	// +kubebuilder:validation:XValidation:message="invalid resource restricted",rule="self.all(x, !(x in ['cpu', 'memory', 'ephemeral-storage', 'pods']))"
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// weight decides between overlays that set the same thing: the highest wins. It is 0 where it is absent. Of overlays of
	// one weight that set the same thing only one applies.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Weight *int32 `json:"weight,omitempty"`
}

// NodeSelectorRequirement narrows the nodes by a label.
type NodeSelectorRequirement struct {
	// key is the label the requirement applies to.
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`
	// +kubebuilder:validation:XValidation:message="label domain \"karpenter.sh\" is restricted",rule="self in [\"karpenter.sh/capacity-type\", \"karpenter.sh/nodepool\"] || !self.find(\"^([^/]+)\").endsWith(\"karpenter.sh\")"
	// +kubebuilder:validation:XValidation:message="label \"kubernetes.io/hostname\" is restricted",rule="self != \"kubernetes.io/hostname\""
	// +kubebuilder:validation:XValidation:message="label domain \"karpenter.k8s.aws\" is restricted",rule="self in [\"karpenter.k8s.aws/capacity-reservation-id\", \"karpenter.k8s.aws/capacity-reservation-interruptible\", \"karpenter.k8s.aws/capacity-reservation-type\", \"karpenter.k8s.aws/ec2nodeclass\", \"karpenter.k8s.aws/instance-accelerator-count\", \"karpenter.k8s.aws/instance-accelerator-manufacturer\", \"karpenter.k8s.aws/instance-accelerator-name\", \"karpenter.k8s.aws/instance-capability-flex\", \"karpenter.k8s.aws/instance-category\", \"karpenter.k8s.aws/instance-cpu\", \"karpenter.k8s.aws/instance-cpu-manufacturer\", \"karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz\", \"karpenter.k8s.aws/instance-ebs-bandwidth\", \"karpenter.k8s.aws/instance-encryption-in-transit-supported\", \"karpenter.k8s.aws/instance-family\", \"karpenter.k8s.aws/instance-generation\", \"karpenter.k8s.aws/instance-gpu-count\", \"karpenter.k8s.aws/instance-gpu-manufacturer\", \"karpenter.k8s.aws/instance-gpu-memory\", \"karpenter.k8s.aws/instance-gpu-name\", \"karpenter.k8s.aws/instance-hypervisor\", \"karpenter.k8s.aws/instance-local-nvme\", \"karpenter.k8s.aws/instance-memory\", \"karpenter.k8s.aws/instance-network-bandwidth\", \"karpenter.k8s.aws/instance-size\", \"karpenter.k8s.aws/instance-tenancy\", \"karpenter.k8s.aws/placement-group-id\", \"karpenter.k8s.aws/placement-group-partition\"] || !self.find(\"^([^/]+)\").endsWith(\"karpenter.k8s.aws\")"
	// +required
	Key string `json:"key"`

	// operator relates the label's value to values: In, NotIn, Exists, DoesNotExist, or, for labels whose values are
	// integers, Gt, Lt, Gte and Lte.
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist;Gt;Lt;Gte;Lte
	// +required
	Operator corev1.NodeSelectorOperator `json:"operator"`

	// values are what In and NotIn choose from, at least one; the single integer Gt, Lt, Gte and Lte compare with; and none
	// for Exists and DoesNotExist.
	// +listType=atomic
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
	// +optional
	Values []string `json:"values,omitempty"`
}

// NodeOverlayStatus is what is known about an overlay.
type NodeOverlayStatus struct {
	// conditions say whether the overlay applies, and why not.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ReadyParts returns the conditions whose roll-up is Ready.
func (in *NodeOverlay) ReadyParts() []string {
	return []string{karpv1.ConditionTypeValidationSucceeded}
}

// Condition returns the condition of a type, or nil. It points into the status.
func (in *NodeOverlay) Condition(conditionType string) *metav1.Condition {
	return meta.FindStatusCondition(in.Status.Conditions, conditionType)
}

// SetCondition sets a condition (an empty reason becomes the type), rolls Ready up again and tells whether anything changed.
func (in *NodeOverlay) SetCondition(c metav1.Condition) bool {
	return karpv1.SetCondition(&in.Status.Conditions, in.Generation, c, in.ReadyParts)
}
