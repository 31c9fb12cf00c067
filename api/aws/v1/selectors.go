package v1

// SubnetSelectorTerm matches subnets by id, or by tags that all have to be there. The value "*" matches any.
type SubnetSelectorTerm struct {
	// tags a subnet must have.
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:message="empty tag keys or values aren't supported",rule="self.all(k, k != '' && self[k] != '')"
	// +optional
	Tags map[string]string `json:"tags,omitempty"`

	// id of one subnet.
	// +kubebuilder:validation:Pattern=`subnet-[0-9a-z]+`
	// +optional
	ID string `json:"id,omitempty"`
}

// SecurityGroupSelectorTerm matches security groups by id, by name, or by tags that all have to be there. The value "*"
// matches any.
type SecurityGroupSelectorTerm struct {
	// tags a security group must have.
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:message="empty tag keys or values aren't supported",rule="self.all(k, k != '' && self[k] != '')"
	// +optional
	Tags map[string]string `json:"tags,omitempty"`

	// id of one security group.
	// +kubebuilder:validation:Pattern=`sg-[0-9a-z]+`
	// +optional
	ID string `json:"id,omitempty"`

	// name is the group's own name, not its tag Name.
	// +optional
	Name string `json:"name,omitempty"`
}

// CapacityReservationSelectorTerm matches capacity reservations by id, or by tags, owner and match criteria together.
type CapacityReservationSelectorTerm struct {
	// tags a reservation must have.
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:message="empty tag keys or values aren't supported",rule="self.all(k, k != '' && self[k] != '')"
	// +optional
	Tags map[string]string `json:"tags,omitempty"`

	// id of one reservation.
	// +kubebuilder:validation:Pattern=`^cr-[0-9a-z]+$`
	// +optional
	ID string `json:"id,omitempty"`

	// ownerID is the account a reservation belongs to.
	// +kubebuilder:validation:Pattern=`^[0-9]{12}$`
	// +optional
	OwnerID string `json:"ownerID,omitempty"`

	// instanceMatchCriteria tells reservations any matching instance uses (open) from those that have to be asked for
	// (targeted).
	// +kubebuilder:validation:Enum=open;targeted
	// +optional
	InstanceMatchCriteria string `json:"instanceMatchCriteria,omitempty"`
}

// PlacementGroupSelector names one placement group.
type PlacementGroupSelector struct {
	// name of the placement group.
	// +kubebuilder:validation:MinLength=1
	// +optional
	Name *string `json:"name,omitempty"`

	// id of the placement group.
	// +kubebuilder:validation:Pattern=`^pg-[0-9a-z]+$`
	// +optional
	ID *string `json:"id,omitempty"`
}

// AMISelectorTerm matches images.
type AMISelectorTerm struct {
	// alias is a family and a version of its EKS-optimized images, such as al2023@latest.
	// +kubebuilder:validation:MaxLength=30
	// +kubebuilder:validation:XValidation:message="'alias' is improperly formatted, must match the format 'family@version'",rule="self.matches('^[a-zA-Z0-9]+@.+$')"
	// +kubebuilder:validation:XValidation:message="family is not supported, must be one of the following: 'al2', 'al2023', 'bottlerocket', 'windows2019', 'windows2022', 'windows2025'",rule="self.split('@')[0] in ['al2','al2023','bottlerocket','windows2019','windows2022','windows2025']"
	// +kubebuilder:validation:XValidation:message="windows families may only specify version 'latest'",rule="self.split('@')[0] in ['windows2019','windows2022','windows2025'] ? self.split('@')[1] == 'latest' : true"
	// +optional
	Alias string `json:"alias,omitempty"`

	// tags an image must have; the value "*" matches any.
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:message="empty tag keys or values aren't supported",rule="self.all(k, k != '' && self[k] != '')"
	// +optional
	Tags map[string]string `json:"tags,omitempty"`

	// id of one image.
	// +kubebuilder:validation:Pattern=`ami-[0-9a-z]+`
	// +optional
	ID string `json:"id,omitempty"`

	// name is the image's own name, not its tag Name; "*" stands for any characters.
	// +optional
	Name string `json:"name,omitempty"`

	// owner is an account id, "self" or "amazon"; without it images of the last two are considered.
	// +optional
	Owner string `json:"owner,omitempty"`

	// ssmParameter is the name or ARN of an SSM parameter that holds the image's id.
	// +optional
	SSMParameter string `json:"ssmParameter,omitempty"`
}
