package v1

import corev1 "k8s.io/api/core/v1"

// Well-known labels of EC2 instance types and offerings. Numbers are decimal integers.
const (
	// LabelNodeClass names the EC2NodeClass of a node or claim.
	LabelNodeClass = Group + "/ec2nodeclass"

	// LabelInstanceCategory is the letters an instance type's name begins with, such as "m".
	LabelInstanceCategory = Group + "/instance-category"
	// LabelInstanceFamily is the part of an instance type's name before the dot, such as "m6g".
	LabelInstanceFamily = Group + "/instance-family"
	// LabelInstanceGeneration is the number in an instance family's name, such as "6".
	LabelInstanceGeneration = Group + "/instance-generation"
	// LabelInstanceSize is the part of an instance type's name after the dot, such as "xlarge".
	LabelInstanceSize = Group + "/instance-size"
	// LabelInstanceCapabilityFlex is "true" for flex instance types, else "false".
	LabelInstanceCapabilityFlex = Group + "/instance-capability-flex"
	// LabelInstanceHypervisor is "nitro", "xen", or "" for bare metal.
	LabelInstanceHypervisor = Group + "/instance-hypervisor"
	// LabelInstanceEncryptionInTransitSupported is "true" or "false".
	LabelInstanceEncryptionInTransitSupported = Group + "/instance-encryption-in-transit-supported"
	// LabelInstanceCPU is the number of vCPUs.
	LabelInstanceCPU = Group + "/instance-cpu"
	// LabelInstanceCPUManufacturer is "aws", "intel" or "amd".
	LabelInstanceCPUManufacturer = Group + "/instance-cpu-manufacturer"
	// LabelInstanceCPUSustainedClockSpeedMhz is the sustained clock speed in MHz.
	LabelInstanceCPUSustainedClockSpeedMhz = Group + "/instance-cpu-sustained-clock-speed-mhz"
	// LabelInstanceMemory is the memory in MiB.
	LabelInstanceMemory = Group + "/instance-memory"
	// LabelInstanceEBSBandwidth is the maximum EBS bandwidth in Mbit/s.
	LabelInstanceEBSBandwidth = Group + "/instance-ebs-bandwidth"
	// LabelInstanceNetworkBandwidth is the baseline network bandwidth in Mbit/s, where AWS's documentation states it.
	LabelInstanceNetworkBandwidth = Group + "/instance-network-bandwidth"
	// LabelInstanceGPUName is the GPU's model, such as "t4".
	LabelInstanceGPUName = Group + "/instance-gpu-name"
	// LabelInstanceGPUManufacturer is the GPU's maker, such as "nvidia".
	LabelInstanceGPUManufacturer = Group + "/instance-gpu-manufacturer"
	// LabelInstanceGPUCount is the number of GPUs.
	LabelInstanceGPUCount = Group + "/instance-gpu-count"
	// LabelInstanceGPUMemory is the memory of one GPU in MiB.
	LabelInstanceGPUMemory = Group + "/instance-gpu-memory"
	// LabelInstanceAcceleratorName is the accelerator's model, such as "inferentia".
	LabelInstanceAcceleratorName = Group + "/instance-accelerator-name"
	// LabelInstanceAcceleratorManufacturer is the accelerator's maker, such as "aws".
	LabelInstanceAcceleratorManufacturer = Group + "/instance-accelerator-manufacturer"
	// LabelInstanceAcceleratorCount is the number of accelerators.
	LabelInstanceAcceleratorCount = Group + "/instance-accelerator-count"
	// LabelInstanceLocalNVME is the size of the local NVMe disks in GiB.
	LabelInstanceLocalNVME = Group + "/instance-local-nvme"
	// LabelInstanceTenancy is "default" or "dedicated".
	LabelInstanceTenancy = Group + "/instance-tenancy"

	// LabelCapacityReservationID is the reservation a reserved instance runs in.
	LabelCapacityReservationID = Group + "/capacity-reservation-id"
	// LabelCapacityReservationType is "default" or "capacity-block".
	LabelCapacityReservationType = Group + "/capacity-reservation-type"
	// LabelCapacityReservationInterruptible is "true" or "false".
	LabelCapacityReservationInterruptible = Group + "/capacity-reservation-interruptible"
	// LabelPlacementGroupID is the placement group of the instance.
	LabelPlacementGroupID = Group + "/placement-group-id"
	// LabelPlacementGroupPartition is the number of the instance's partition in its placement group.
	LabelPlacementGroupPartition = Group + "/placement-group-partition"

	// LabelTopologyZoneID is the zone's identity across accounts, such as use1-az1.
	LabelTopologyZoneID = "topology.k8s.aws/zone-id"
)

// Annotations of the AWS provider on node classes, claims and nodes.
const (
	// AnnotationEC2NodeClassHash holds the class's hash, on the class and on claims launched from it.
	AnnotationEC2NodeClassHash = Group + "/ec2nodeclass-hash"
	// AnnotationEC2NodeClassHashVersion holds the version of that hash.
	AnnotationEC2NodeClassHashVersion = Group + "/ec2nodeclass-hash-version"
	// AnnotationInstanceTagged is "true" on claims whose instance carries their name and their node's.
	AnnotationInstanceTagged = Group + "/tagged"
	// AnnotationInstanceProfile is the instance profile a claim was launched with.
	AnnotationInstanceProfile = Group + "/instance-profile-name"
)

// TerminationFinalizer is on an EC2NodeClass until what was made for it on AWS is gone.
const TerminationFinalizer = Group + "/termination"

// Tags on everything launched for a node.
const (
	// NodePoolTagKey names the NodePool.
	NodePoolTagKey = "karpenter.sh/nodepool"
	// NodeClaimTagKey names the NodeClaim.
	NodeClaimTagKey = "karpenter.sh/nodeclaim"
	// NodeClassTagKey names the EC2NodeClass.
	NodeClassTagKey = LabelNodeClass
	// EKSClusterNameTagKey names the cluster.
	EKSClusterNameTagKey = "eks:eks-cluster-name"
	// NameTagKey is the tag the EC2 console shows as the instance's name.
	NameTagKey = "Name"
	// clusterTagPrefix begins the key of the tag that says which cluster owns a resource.
	clusterTagPrefix = "kubernetes.io/cluster/"
)

// ClusterTagKey returns the key of the tag that, with the value "owned", makes a resource the cluster's.
func ClusterTagKey(cluster string) string { return clusterTagPrefix + cluster }

// Extended resources of EC2 instance types.
const (
	ResourceNVIDIAGPU          corev1.ResourceName = "nvidia.com/gpu"
	ResourceAMDGPU             corev1.ResourceName = "amd.com/gpu"
	ResourceAWSNeuron          corev1.ResourceName = "aws.amazon.com/neuron"
	ResourceAWSNeuronCore      corev1.ResourceName = "aws.amazon.com/neuroncore"
	ResourceHabanaGaudi        corev1.ResourceName = "habana.ai/gaudi"
	ResourceAWSPodENI          corev1.ResourceName = "vpc.amazonaws.com/pod-eni"
	ResourcePrivateIPv4Address corev1.ResourceName = "vpc.amazonaws.com/PrivateIPv4Address"
	ResourceEFA                corev1.ResourceName = "vpc.amazonaws.com/efa"
	// ResourceNIPSlots is what pods request whose node needs Nitro Enclaves. No instance type has it by itself: a
	// NodeOverlay has to say which do.
	ResourceNIPSlots corev1.ResourceName = "eks.amazonaws.com/nip-slots"
)
