package oracle

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Label is a row of the table of labels: what a label says about a node's instance. A test selects each label's value in a
// pod on a laboratory, and compares the label of the node that comes up with what EC2 says about the instance.
type Label struct {
	Key string
	// Value is the value that the test selects. It is empty if the value is not known beforehand.
	Value string
	// Class is a specification put over that of the test's EC2NodeClass, if the value needs one. There is a capacity
	// reservation with the tag for=${NAME}, and a placement group ${NAME} with three partitions. CapacityTypes are those of the NodePool; on-demand if there are none.
	Class         string
	CapacityTypes []string
	// Seen is where EC2 says it, and Read reads the value there, "" if there is none; nil takes it as it is.
	Seen Place
	Read func(string) string
	// Mark says when a label is set that tells how far a node is, and that nobody selects.
	Mark string
	// Scene is the scene that requires the label, in which Karpenter is asked the same.
	Scene string
	// Karpenter says what Karpenter does, if not the same and no row of Differences says it.
	Karpenter string
}

// Selectable reports whether NodePools and pods can select nodes by the label.
func (l *Label) Selectable() bool { return l.Mark == "" }

// Name is the part of the key after the domain.
func (l *Label) Name() string { return l.Key[strings.LastIndexByte(l.Key, '/')+1:] }

// OfNode returns the value that a node must have for what EC2 says at Seen.
func (l *Label) OfNode(said string) string {
	if l.Read == nil {
		return said
	}
	return l.Read(said)
}

// InUserData is the place of the label among those with which a node registers.
func (l *Label) InUserData() Place {
	return Place{Action: "CreateLaunchTemplate", Path: nodeConfig + ".spec.kubelet.flags[--node-labels][" + l.Key + "]"}
}

// LabelsScene is the scene that requires many labels, each in a NodePool of its own.
const LabelsScene = "labels"

const (
	aws      = "karpenter.k8s.aws/"
	ourOwn   = "karpenter.sh/"
	topology = "topology.kubernetes.io/"
)

// ofType is a place in what EC2 says about an instance type.
func ofType(path string) Place { return Place{Action: "DescribeInstanceTypes", Path: path} }

// Classes that some labels need.
const (
	windowsClass  = "amiSelectorTerms: [{alias: windows2022@latest}]"
	groupClass    = "placementGroupSelector: {name: \"${NAME}\"}"
	reservedClass = "capacityReservationSelectorTerms: [{tags: {for: \"${NAME}\"}}]"
)

// Labels is the table of labels.
var Labels = []Label{
	{Key: ourOwn + "nodepool", Value: "label-rows", Seen: ofInstance("Tags[karpenter.sh/nodepool]"), Scene: "every field"},
	{Key: ourOwn + "capacity-type", Value: "spot", Seen: ofInstance("InstanceLifecycle"), Read: otherwise("on-demand"), Scene: "spot of one type"},
	{Key: ourOwn + "registered", Value: "true", Mark: "once the node has joined and has its labels and taints"},
	{Key: ourOwn + "initialized", Value: "true", Mark: "once the node is ready for pods"},
	{Key: topology + "zone", Value: "us-east-1b", Seen: ofInstance("Placement.AvailabilityZone"), Scene: LabelsScene},
	{Key: topology + "region", Value: "us-east-1", Seen: ofInstance("Placement.AvailabilityZone"), Read: matched(`^(.*)[a-z]$`), Scene: LabelsScene},
	{Key: "topology.k8s.aws/zone-id", Value: "use1-az3", Seen: ofInstance("Placement.AvailabilityZoneId"), Scene: LabelsScene},
	{Key: "node.kubernetes.io/instance-type", Value: "m5.xlarge", Seen: ofInstance("InstanceType"), Scene: "every field"},
	{Key: "kubernetes.io/arch", Value: "arm64", Seen: ofInstance("Architecture"), Read: oneOf(map[string]string{"x86_64": "amd64", "arm64": "arm64"}), Scene: LabelsScene},
	{Key: "kubernetes.io/os", Value: "windows", Class: windowsClass, Seen: ofInstance("PlatformDetails"),
		Read: oneOf(map[string]string{"Linux/UNIX": "linux", "Windows": "windows"}), Scene: "Windows by its labels"},
	{Key: "node.kubernetes.io/windows-build", Value: "10.0.20348", Class: windowsClass, Seen: Place{Action: "DescribeImages", Path: "Name"},
		Read: windowsBuild, Scene: "Windows by its labels"},
	{Key: aws + "ec2nodeclass", Value: "default", Seen: ofInstance("Tags[karpenter.k8s.aws/ec2nodeclass]"), Scene: "every field"},
	{Key: aws + "capacity-reservation-id", Class: reservedClass, CapacityTypes: []string{"reserved"}, Seen: ofInstance("CapacityReservationId"), Scene: "reservation by its labels"},
	{Key: aws + "capacity-reservation-type", Value: "default", Class: reservedClass, CapacityTypes: []string{"reserved"}, Seen: ofInstance("InstanceLifecycle"),
		Read: otherwise("default"), Scene: "reservation by its labels"},
	{Key: aws + "capacity-reservation-interruptible", Value: "false", Class: reservedClass, CapacityTypes: []string{"reserved"}, Seen: ofInstance("InstanceLifecycle"),
		Read: whether("interruptible-capacity-reservation"), Scene: "reservation by its labels"},
	{Key: aws + "placement-group-id", Class: groupClass, CapacityTypes: []string{"on-demand"}, Seen: ofInstance("Placement.GroupId"), Scene: "spread placement group by its label"},
	{Key: aws + "placement-group-partition", Value: "2", Class: groupClass, CapacityTypes: []string{"on-demand"}, Seen: ofInstance("Placement.PartitionNumber"),
		Scene: "partition placement group by id, in one partition"},
	{Key: aws + "instance-tenancy", Value: "dedicated", Seen: ofInstance("Placement.Tenancy"), Scene: "dedicated tenancy"},
	{Key: aws + "instance-category", Value: "r", Seen: ofType("InstanceType"), Read: matched(`^([a-z]+)`), Scene: LabelsScene},
	{Key: aws + "instance-family", Value: "c6i", Seen: ofType("InstanceType"), Read: matched(`^(.*)\.`), Scene: LabelsScene},
	{Key: aws + "instance-generation", Value: "6", Seen: ofType("InstanceType"), Read: matched(`^[a-z]+([0-9]+)`), Scene: LabelsScene},
	{Key: aws + "instance-size", Value: "2xlarge", Seen: ofType("InstanceType"), Read: matched(`\.(.*)$`), Scene: LabelsScene},
	{Key: aws + "instance-capability-flex", Value: "true", Seen: ofType("InstanceType"), Read: whether("-flex"), Scene: LabelsScene},
	{Key: aws + "instance-hypervisor", Value: "xen", Seen: ofType("Hypervisor"), Scene: LabelsScene},
	{Key: aws + "instance-encryption-in-transit-supported", Value: "true", Seen: ofType("NetworkInfo.EncryptionInTransitSupported"), Scene: LabelsScene},
	{Key: aws + "instance-cpu", Value: "16", Seen: ofType("VCpuInfo.DefaultVCpus"), Scene: LabelsScene},
	{Key: aws + "instance-cpu-manufacturer", Value: "amd", Seen: ofType("ProcessorInfo.Manufacturer"), Read: lowered, Scene: LabelsScene},
	{Key: aws + "instance-cpu-sustained-clock-speed-mhz", Value: "2500", Seen: ofType("ProcessorInfo.SustainedClockSpeedInGhz"), Read: thousandfold, Scene: LabelsScene},
	{Key: aws + "instance-memory", Value: "65536", Seen: ofType("MemoryInfo.SizeInMiB"), Scene: LabelsScene},
	{Key: aws + "instance-ebs-bandwidth", Value: "9500", Seen: ofType("EbsInfo.EbsOptimizedInfo.MaximumBandwidthInMbps"), Scene: LabelsScene},
	// EC2 says it, but both Karpenter and Tenon go by what AWS's documentation says.
	{Key: aws + "instance-network-bandwidth", Value: "750", Seen: ofType("NetworkInfo.NetworkCards[0].BaselineBandwidthInGbps"), Read: thousandfold, Scene: LabelsScene},
	{Key: aws + "instance-local-nvme", Value: "75", Seen: ofType("InstanceStorageInfo.TotalSizeInGB"), Scene: LabelsScene},
	{Key: aws + "instance-gpu-name", Value: "t4", Seen: ofType("GpuInfo.Gpus[0].Name"), Read: lowered, Scene: LabelsScene},
	{Key: aws + "instance-gpu-manufacturer", Value: "nvidia", Seen: ofType("GpuInfo.Gpus[0].Manufacturer"), Read: lowered, Scene: LabelsScene},
	{Key: aws + "instance-gpu-count", Value: "4", Seen: ofType("GpuInfo.Gpus[0].Count"), Scene: LabelsScene,
		Karpenter: "the same, but a share of a GPU counts as none; with Tenon as one, which the node advertises"},
	{Key: aws + "instance-gpu-memory", Value: "16384", Seen: ofType("GpuInfo.Gpus[0].MemoryInfo.SizeInMiB"), Scene: LabelsScene},
	{Key: aws + "instance-accelerator-name", Value: "inferentia", Seen: ofType("NeuronInfo.NeuronDevices[0].Name"), Read: lowered, Scene: LabelsScene},
	{Key: aws + "instance-accelerator-manufacturer", Value: "aws", Seen: ofType("NeuronInfo.NeuronDevices[0].Name").as("NeuronInfo"),
		Read: oneOf(map[string]string{"Inferentia": "aws", "Inferentia2": "aws", "Trainium": "aws"}), Scene: LabelsScene},
	{Key: aws + "instance-accelerator-count", Value: "1", Seen: ofType("NeuronInfo.NeuronDevices[0].Count"), Scene: LabelsScene},
}

// LabelAliases are other keys of labels, which NodePools and pods may use instead, with the key that is meant.
var LabelAliases = map[string]string{
	"failure-domain.beta.kubernetes.io/zone":   topology + "zone",
	"failure-domain.beta.kubernetes.io/region": topology + "region",
	"beta.kubernetes.io/instance-type":         "node.kubernetes.io/instance-type",
	"beta.kubernetes.io/arch":                  "kubernetes.io/arch",
	"beta.kubernetes.io/os":                    "kubernetes.io/os",
	"topology.ebs.csi.aws.com/zone":            topology + "zone",
}

// The functions that read values for labels.

func lowered(said string) string { return strings.ReplaceAll(strings.ToLower(said), " ", "-") }

func thousandfold(said string) string {
	number, err := strconv.ParseFloat(said, 64)
	if err != nil {
		return err.Error()
	}
	return strconv.Itoa(int(math.Round(1000 * number)))
}

func matched(pattern string) func(string) string {
	return func(said string) string {
		if parts := regexp.MustCompile(pattern).FindStringSubmatch(said); parts != nil {
			return parts[1]
		}
		return ""
	}
}

func otherwise(value string) func(string) string {
	return func(said string) string {
		if said == "" {
			return value
		}
		return said
	}
}

func whether(part string) func(string) string {
	return func(said string) string { return strconv.FormatBool(strings.Contains(said, part)) }
}

func oneOf(values map[string]string) func(string) string {
	return func(said string) string { return values[said] }
}

// windowsBuild reads the build of Windows from the name of one of Amazon's images.
func windowsBuild(name string) string {
	year := matched(`^Windows_Server-([0-9]+)-`)(name)
	return map[string]string{"2019": "10.0.17763", "2022": "10.0.20348", "2025": "10.0.26100"}[year]
}
