package v1

import "k8s.io/apimachinery/pkg/api/resource"

// MetadataOptions say how the instance metadata service answers.
type MetadataOptions struct {
	// httpEndpoint turns the service on or off.
	// +kubebuilder:default=enabled
	// +kubebuilder:validation:Enum=enabled;disabled
	// +optional
	HTTPEndpoint *string `json:"httpEndpoint,omitempty"`

	// httpProtocolIPv6 turns the service's IPv6 address on or off.
	// +kubebuilder:default=disabled
	// +kubebuilder:validation:Enum=enabled;disabled
	// +optional
	HTTPProtocolIPv6 *string `json:"httpProtocolIPv6,omitempty"`

	// httpPutResponseHopLimit is how many network hops a session token may travel; 1 keeps it from pods that are not
	// on the host's network.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +optional
	HTTPPutResponseHopLimit *int64 `json:"httpPutResponseHopLimit,omitempty"`

	// httpTokens says whether session tokens (version 2 of the service) are required or optional.
	// +kubebuilder:default=required
	// +kubebuilder:validation:Enum=required;optional
	// +optional
	HTTPTokens *string `json:"httpTokens,omitempty"`
}

// CPUOptions are processor options of instances.
type CPUOptions struct {
	// nestedVirtualization turns nested virtualization on or off, for instance types that have it.
	// +kubebuilder:validation:Enum=enabled;disabled
	// +optional
	NestedVirtualization *string `json:"nestedVirtualization,omitempty"`
}

// ConnectionTracking sets how long, in seconds, idle connections are tracked on Nitro instances.
// +kubebuilder:validation:XValidation:message="at least one of tcpEstablishedTimeout, udpStreamTimeout, or udpTimeout must be set",rule="has(self.tcpEstablishedTimeout) || has(self.udpStreamTimeout) || has(self.udpTimeout)"
type ConnectionTracking struct {
	// tcpEstablishedTimeout is for established TCP connections.
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=432000
	// +optional
	TCPEstablishedTimeout *int32 `json:"tcpEstablishedTimeout,omitempty"`

	// udpStreamTimeout is for UDP flows that have seen more than one exchange.
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=180
	// +optional
	UDPStreamTimeout *int32 `json:"udpStreamTimeout,omitempty"`

	// udpTimeout is for UDP flows that have seen one exchange, or one direction only.
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=60
	// +optional
	UDPTimeout *int32 `json:"udpTimeout,omitempty"`
}

// BlockDeviceMapping is one disk of an instance.
type BlockDeviceMapping struct {
	// deviceName is the name the disk has on the instance, such as /dev/xvda.
	// +optional
	DeviceName *string `json:"deviceName,omitempty"`

	// ebs describes the volume.
	// +kubebuilder:validation:XValidation:message="snapshotID or volumeSize must be defined",rule="has(self.snapshotID) || has(self.volumeSize)"
	// +kubebuilder:validation:XValidation:message="snapshotID must be set when volumeInitializationRate is set",rule="!has(self.volumeInitializationRate) || (has(self.snapshotID) && self.snapshotID != '')"
	// +optional
	EBS *BlockDevice `json:"ebs,omitempty"`

	// rootVolume marks the volume that kubelet and container runtime keep their data on. Without a mark it is the one
	// the AMI family uses.
	// +optional
	RootVolume bool `json:"rootVolume,omitempty"`
}

// BlockDevice is an EBS volume.
type BlockDevice struct {
	// deleteOnTermination removes the volume with the instance.
	// +optional
	DeleteOnTermination *bool `json:"deleteOnTermination,omitempty"`

	// encrypted turns encryption on.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`

	// iops are the provisioned I/O operations per second, for the volume types that take them.
	// +optional
	IOPS *int64 `json:"iops,omitempty"`

	// kmsKeyID is the key to encrypt with.
	// +optional
	KMSKeyID *string `json:"kmsKeyID,omitempty"`

	// snapshotID is the snapshot the volume is made from.
	// +optional
	SnapshotID *string `json:"snapshotID,omitempty"`

	// throughput in MiB/s, for gp3 volumes.
	// +optional
	Throughput *int64 `json:"throughput,omitempty"`

	// volumeInitializationRate in MiB/s, at which the snapshot is brought onto the volume.
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=300
	// +optional
	VolumeInitializationRate *int32 `json:"volumeInitializationRate,omitempty"`

	// volumeSize is a whole number of Gi, G, Ti or T. Without it the volume is as large as its snapshot.
	// +kubebuilder:validation:Pattern=`^((?:[1-9][0-9]{0,3}|[1-4][0-9]{4}|[5][0-8][0-9]{3}|59000)Gi|(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|[6][0-3][0-9]{3}|64000)G|([1-9]||[1-5][0-7]|58)Ti|([1-9]||[1-5][0-9]|6[0-3]|64)T)$`
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +optional
	VolumeSize *resource.Quantity `json:"volumeSize,omitempty" hash:"string"`

	// volumeType is the kind of volume.
	// +kubebuilder:validation:Enum=standard;io1;io2;gp2;sc1;st1;gp3
	// +optional
	VolumeType *string `json:"volumeType,omitempty"`
}

// InstanceStorePolicy says what becomes of the disks that belong to an instance itself.
// +kubebuilder:validation:Enum=RAID0
type InstanceStorePolicy string

// InstanceStorePolicyRAID0 joins the disks into one and keeps pods' ephemeral storage and images on it.
const InstanceStorePolicyRAID0 InstanceStorePolicy = "RAID0"

// InterfaceType is the kind of a network interface.
// +kubebuilder:validation:Enum=interface;efa-only
type InterfaceType string

// The kinds of network interfaces.
const (
	// InterfaceTypeInterface is an ordinary interface with IP addresses.
	InterfaceTypeInterface InterfaceType = "interface"
	// InterfaceTypeEFAOnly is an Elastic Fabric Adapter without IP addresses.
	InterfaceTypeEFAOnly InterfaceType = "efa-only"
)

// NetworkInterface is one network interface of an instance.
type NetworkInterface struct {
	// networkCardIndex is the card the interface is on.
	// +kubebuilder:validation:Minimum=0
	// +required
	NetworkCardIndex int32 `json:"networkCardIndex"`

	// deviceIndex is the interface's place on its card.
	// +kubebuilder:validation:Minimum=0
	// +required
	DeviceIndex int32 `json:"deviceIndex"`

	// interfaceType is the kind of interface.
	// +required
	InterfaceType InterfaceType `json:"interfaceType"`
}
