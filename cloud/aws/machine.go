package aws

import (
	"cmp"
	"context"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tenon-sh/tenon/cloud/aws/amifamily"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloud/aws/calls"
)

// machine is what this package keeps of an EC2 instance type. The descriptions of a region's 700 or more types are
// reduced on arrival, because they live as long as the worker.
type machine struct {
	name string
	// labels are those every node of the type has, whatever its class.
	labels map[string]string
	// extended are the devices it advertises: GPUs, Neuron devices and cores.
	extended  corev1.ResourceList
	arm64     bool
	bareMetal bool
	vcpus     int64
	memoryMiB int64
	storeGB   int64
	// enis is how many network interfaces the default network card has; the VPC CNI gives pods addresses from that card
	// only.
	enis       int64
	ipv4PerENI int64
	// ipv6PerENI is how many IPv6 addresses a network interface takes; 0 if the type has no IPv6. xen says that its
	// hypervisor is not Nitro.
	ipv6PerENI int64
	xen        bool
	// cards is how many network interfaces each network card takes, by its index; nil if the type has no ENA.
	cards map[int32]int32
	// efas is how many EFA interfaces it takes; nested says whether it can run virtual machines of its own.
	efas   int32
	nested bool
	// strategies are the placement strategies of groups that it can be launched into.
	strategies []types.PlacementGroupStrategy
	// usage is the set of capacity types it is sold as.
	usage []string
	// zones are the names of the zones it is offered in, sorted.
	zones []string
}

// exotic reports whether the machine has accelerators or is bare metal, which nobody wants by accident.
func (m *machine) exotic() bool { return m.bareMetal || len(m.extended) > 0 }

// eniPods returns the number of pods the VPC CNI has addresses for: each network interface keeps one address for
// itself, and two more pods run on the host's network (https://github.com/awslabs/amazon-eks-ami, eni-max-pods).
func (m *machine) eniPods(reservedENIs int64) int64 {
	enis := m.enis - reservedENIs
	if enis <= 0 {
		return 0
	}
	return enis*(m.ipv4PerENI-1) + 2
}

// discoverMachines asks EC2 for all types of the region and the zones each is offered in.
func discoverMachines(ctx context.Context, api *calls.EC2, region string) ([]*machine, error) {
	zones, err := discoverOfferings(ctx, api)
	if err != nil {
		return nil, err
	}
	var machines []*machine
	pages := ec2.NewDescribeInstanceTypesPaginator(api.DescribeInstanceTypes, &ec2.DescribeInstanceTypesInput{
		Filters: []types.Filter{
			filter("supported-virtualization-type", "hvm"),
			filter("processor-info.supported-architecture", "x86_64", "arm64"),
		},
		MaxResults: aws.Int32(100),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, classify("DescribeInstanceTypes", err)
		}
		for i := range page.InstanceTypes {
			info := &page.InstanceTypes[i]
			if m, ok := reduce(info, zones[string(info.InstanceType)]); ok {
				m.labels[corev1.LabelTopologyRegion] = region
				machines = append(machines, m)
			}
		}
	}
	slices.SortFunc(machines, func(a, b *machine) int { return cmp.Compare(a.name, b.name) })
	return machines, nil
}

// discoverOfferings returns the zones of each instance type, sorted.
func discoverOfferings(ctx context.Context, api *calls.EC2) (map[string][]string, error) {
	zones := make(map[string][]string)
	pages := ec2.NewDescribeInstanceTypeOfferingsPaginator(api.DescribeInstanceTypeOfferings, &ec2.DescribeInstanceTypeOfferingsInput{
		LocationType: types.LocationTypeAvailabilityZone,
		MaxResults:   aws.Int32(1000),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, classify("DescribeInstanceTypeOfferings", err)
		}
		for _, o := range page.InstanceTypeOfferings {
			name := string(o.InstanceType)
			zones[name] = append(zones[name], aws.ToString(o.Location))
		}
	}
	for name := range zones {
		slices.Sort(zones[name])
	}
	return zones, nil
}

// reduce keeps what planning and launching need of a description. It returns false if the description is incomplete or
// the type is offered nowhere.
func reduce(info *types.InstanceTypeInfo, zones []string) (*machine, bool) {
	if len(zones) == 0 || info.VCpuInfo == nil || info.MemoryInfo == nil || info.ProcessorInfo == nil || info.NetworkInfo == nil {
		return nil, false
	}
	m := &machine{
		name:       string(info.InstanceType),
		extended:   devices(info),
		arm64:      slices.Contains(info.ProcessorInfo.SupportedArchitectures, types.ArchitectureTypeArm64),
		bareMetal:  aws.ToBool(info.BareMetal),
		vcpus:      int64(aws.ToInt32(info.VCpuInfo.DefaultVCpus)),
		memoryMiB:  aws.ToInt64(info.MemoryInfo.SizeInMiB),
		enis:       int64(aws.ToInt32(info.NetworkInfo.MaximumNetworkInterfaces)),
		ipv4PerENI: int64(aws.ToInt32(info.NetworkInfo.Ipv4AddressesPerInterface)),
		zones:      zones,
	}
	m.xen = info.Hypervisor == types.InstanceTypeHypervisorXen
	if aws.ToBool(info.NetworkInfo.Ipv6Supported) {
		m.ipv6PerENI = int64(aws.ToInt32(info.NetworkInfo.Ipv6AddressesPerInterface))
	}
	m.efas = mostEFAs(info.NetworkInfo)
	if info.PlacementGroupInfo != nil {
		m.strategies = info.PlacementGroupInfo.SupportedStrategies
	}
	m.nested = slices.Contains(info.ProcessorInfo.SupportedFeatures, types.SupportedAdditionalProcessorFeatureNestedVirtualization)
	if info.NetworkInfo.EnaSupport != types.EnaSupportUnsupported {
		m.cards = make(map[int32]int32, len(info.NetworkInfo.NetworkCards))
	}
	for _, card := range info.NetworkInfo.NetworkCards {
		if m.cards != nil {
			m.cards[aws.ToInt32(card.NetworkCardIndex)] = aws.ToInt32(card.MaximumNetworkInterfaces)
		}
		if aws.ToInt32(card.NetworkCardIndex) == aws.ToInt32(info.NetworkInfo.DefaultNetworkCardIndex) {
			m.enis = int64(aws.ToInt32(card.MaximumNetworkInterfaces))
		}
	}
	if info.InstanceStorageInfo != nil {
		m.storeGB = aws.ToInt64(info.InstanceStorageInfo.TotalSizeInGB)
	}
	for _, usage := range info.SupportedUsageClasses {
		if usage == types.UsageClassTypeOnDemand || usage == types.UsageClassTypeSpot {
			m.usage = append(m.usage, string(usage))
		}
	}
	slices.Sort(m.usage)
	m.labels = machineLabels(info, m)
	return m, true
}

// mostEFAs returns how many EFA interfaces a type takes.
func mostEFAs(network *types.NetworkInfo) int32 {
	if network.EfaInfo == nil {
		return 0
	}
	return aws.ToInt32(network.EfaInfo.MaximumEfaInterfaces)
}

// devices returns the extended resources that the device plugins of EKS advertise for a type.
func devices(info *types.InstanceTypeInfo) corev1.ResourceList {
	counts := make(map[corev1.ResourceName]int64)
	if info.GpuInfo != nil {
		for _, gpu := range info.GpuInfo.Gpus {
			count := int64(aws.ToInt32(gpu.Count))
			switch aws.ToString(gpu.Manufacturer) {
			case "NVIDIA":
				// A type with a share of a GPU has a count of 0 and advertises one logical GPU.
				counts[awsv1.ResourceNVIDIAGPU] += max(count, int64(aws.ToInt32(gpu.LogicalGpuCount)))
			case "AMD":
				counts[awsv1.ResourceAMDGPU] += count
			case "Habana":
				counts[awsv1.ResourceHabanaGaudi] += count
			}
		}
	}
	if info.NeuronInfo != nil {
		for _, device := range info.NeuronInfo.NeuronDevices {
			count := int64(aws.ToInt32(device.Count))
			counts[awsv1.ResourceAWSNeuron] += count
			if device.CoreInfo != nil {
				counts[awsv1.ResourceAWSNeuronCore] += count * int64(aws.ToInt32(device.CoreInfo.Count))
			}
		}
	}
	list := corev1.ResourceList{}
	for name, count := range counts {
		if count > 0 {
			list[name] = *resource.NewQuantity(count, resource.DecimalSI)
		}
	}
	return list
}

// typeName splits a type's name before the dot into category, generation, and any variants. The names of high memory
// types contain their size after the category (u-6tb1).
var typeName = regexp.MustCompile(`^([a-z]+)(?:-[0-9]+tb)?([0-9]+)[^.]*\.`)

// machineLabels returns the well-known labels of a type (reference section 5). A label that does not apply is left out.
func machineLabels(info *types.InstanceTypeInfo, m *machine) map[string]string {
	arch := "amd64"
	if m.arm64 {
		arch = "arm64"
	}
	family, size, _ := strings.Cut(m.name, ".")
	set := map[string]string{
		corev1.LabelInstanceTypeStable: m.name,
		corev1.LabelArchStable:         arch,
		corev1.LabelOSStable:           string(corev1.Linux),

		awsv1.LabelInstanceFamily:         family,
		awsv1.LabelInstanceSize:           size,
		awsv1.LabelInstanceCPU:            strconv.FormatInt(m.vcpus, 10),
		awsv1.LabelInstanceMemory:         strconv.FormatInt(m.memoryMiB, 10),
		awsv1.LabelInstanceHypervisor:     string(info.Hypervisor),
		awsv1.LabelInstanceCapabilityFlex: strconv.FormatBool(strings.HasSuffix(family, "-flex")),
		awsv1.LabelInstanceEncryptionInTransitSupported: strconv.FormatBool(
			aws.ToBool(info.NetworkInfo.EncryptionInTransitSupported)),
	}
	if parts := typeName.FindStringSubmatch(m.name); parts != nil {
		set[awsv1.LabelInstanceCategory] = parts[1]
		set[awsv1.LabelInstanceGeneration] = parts[2]
	}
	if manufacturer := aws.ToString(info.ProcessorInfo.Manufacturer); manufacturer != "" {
		set[awsv1.LabelInstanceCPUManufacturer] = labelValue(manufacturer)
	}
	if ghz := aws.ToFloat64(info.ProcessorInfo.SustainedClockSpeedInGhz); ghz > 0 {
		set[awsv1.LabelInstanceCPUSustainedClockSpeedMhz] = strconv.Itoa(int(math.Round(ghz * 1000)))
	}
	if ebs := info.EbsInfo; ebs != nil && ebs.EbsOptimizedInfo != nil && ebs.EbsOptimizedSupport == types.EbsOptimizedSupportDefault {
		set[awsv1.LabelInstanceEBSBandwidth] = strconv.Itoa(int(aws.ToInt32(ebs.EbsOptimizedInfo.MaximumBandwidthInMbps)))
	}
	if mbps, ok := networkBandwidth(m.name); ok {
		set[awsv1.LabelInstanceNetworkBandwidth] = strconv.FormatInt(mbps, 10)
	}
	if store := info.InstanceStorageInfo; store != nil && store.NvmeSupport != types.EphemeralNvmeSupportUnsupported {
		set[awsv1.LabelInstanceLocalNVME] = strconv.FormatInt(m.storeGB, 10)
	}
	acceleratorLabels(info, set)
	return set
}

// labelsAs returns the labels of the machine as a node of a family: those of all families, and those of its operating system.
func (m *machine) labelsAs(family *amifamily.Family) map[string]string {
	if family.OS == m.labels[corev1.LabelOSStable] {
		return m.labels // shared by all classes: there are many types
	}
	set := maps.Clone(m.labels)
	set[corev1.LabelOSStable] = family.OS
	if family.WindowsBuild != "" {
		set[corev1.LabelWindowsBuild] = family.WindowsBuild
	}
	return set
}

// acceleratorLabels adds the labels of a type's GPUs, and of its Neuron devices or other accelerators, such as those of dl2q.
func acceleratorLabels(info *types.InstanceTypeInfo, set map[string]string) {
	if info.GpuInfo != nil && len(info.GpuInfo.Gpus) == 1 {
		gpu := info.GpuInfo.Gpus[0]
		count := max(aws.ToInt32(gpu.Count), aws.ToInt32(gpu.LogicalGpuCount))
		set[awsv1.LabelInstanceGPUName] = labelValue(aws.ToString(gpu.Name))
		set[awsv1.LabelInstanceGPUManufacturer] = labelValue(aws.ToString(gpu.Manufacturer))
		set[awsv1.LabelInstanceGPUCount] = strconv.Itoa(int(count))
		if gpu.MemoryInfo != nil {
			set[awsv1.LabelInstanceGPUMemory] = strconv.Itoa(int(aws.ToInt32(gpu.MemoryInfo.SizeInMiB)))
		}
	}
	if info.NeuronInfo != nil && len(info.NeuronInfo.NeuronDevices) == 1 {
		device := info.NeuronInfo.NeuronDevices[0]
		set[awsv1.LabelInstanceAcceleratorName] = labelValue(aws.ToString(device.Name))
		set[awsv1.LabelInstanceAcceleratorManufacturer] = "aws"
		set[awsv1.LabelInstanceAcceleratorCount] = strconv.Itoa(int(aws.ToInt32(device.Count)))
	} else if other := info.InferenceAcceleratorInfo; info.NeuronInfo == nil && other != nil && len(other.Accelerators) == 1 {
		device := other.Accelerators[0]
		set[awsv1.LabelInstanceAcceleratorName] = labelValue(aws.ToString(device.Name))
		set[awsv1.LabelInstanceAcceleratorManufacturer] = labelValue(aws.ToString(device.Manufacturer))
		set[awsv1.LabelInstanceAcceleratorCount] = strconv.Itoa(int(aws.ToInt32(device.Count)))
	}
}

// labelValue turns the name of a manufacturer or a product into a label value.
func labelValue(name string) string { return strings.ToLower(strings.ReplaceAll(name, " ", "-")) }

// filter returns an EC2 filter.
func filter(name string, values ...string) types.Filter {
	return types.Filter{Name: aws.String(name), Values: values}
}
