package ec2sim

import (
	"slices"
	"strconv"
	"strings"
)

type instanceTypeXML struct {
	Type              string        `xml:"instanceType"`
	CurrentGeneration bool          `xml:"currentGeneration"`
	FreeTier          bool          `xml:"freeTierEligible"`
	UsageClasses      []string      `xml:"supportedUsageClasses>item"`
	RootDevices       []string      `xml:"supportedRootDeviceTypes>item"`
	Virtualization    []string      `xml:"supportedVirtualizationTypes>item"`
	BareMetal         bool          `xml:"bareMetal"`
	Hypervisor        string        `xml:"hypervisor,omitempty"`
	Processor         processorXML  `xml:"processorInfo"`
	VCPU              vcpuXML       `xml:"vCpuInfo"`
	MemoryMiB         int64         `xml:"memoryInfo>sizeInMiB"`
	StorageSupported  bool          `xml:"instanceStorageSupported"`
	Storage           *storageXML   `xml:"instanceStorageInfo"`
	EBS               ebsInfoXML    `xml:"ebsInfo"`
	Network           networkXML    `xml:"networkInfo"`
	GPU               *gpuXML       `xml:"gpuInfo"`
	Inference         *inferenceXML `xml:"inferenceAcceleratorInfo"`
	Neuron            *neuronXML    `xml:"neuronInfo"`
	Placement         []string      `xml:"placementGroupInfo>supportedStrategies>item"`
	Hibernation       bool          `xml:"hibernationSupported"`
	Burstable         bool          `xml:"burstablePerformanceSupported"`
	DedicatedHosts    bool          `xml:"dedicatedHostsSupported"`
	AutoRecovery      bool          `xml:"autoRecoverySupported"`
	BootModes         []string      `xml:"supportedBootModes>item"`
	Enclaves          string        `xml:"nitroEnclavesSupport"`
}

type processorXML struct {
	Architectures []string `xml:"supportedArchitectures>item"`
	GHz           float64  `xml:"sustainedClockSpeedInGhz,omitempty"`
	Manufacturer  string   `xml:"manufacturer"`
	Features      []string `xml:"supportedFeatures>item,omitempty"`
}

type vcpuXML struct {
	VCPUs   int `xml:"defaultVCpus"`
	Cores   int `xml:"defaultCores"`
	Threads int `xml:"defaultThreadsPerCore"`
}

type storageXML struct {
	TotalGB    int64     `xml:"totalSizeInGB"`
	Disks      []diskXML `xml:"disks>item"`
	NVMe       string    `xml:"nvmeSupport"`
	Encryption string    `xml:"encryptionSupport"`
}

type diskXML struct {
	SizeGB int64  `xml:"sizeInGB"`
	Count  int    `xml:"count"`
	Type   string `xml:"type"`
}

type ebsInfoXML struct {
	Optimized  string           `xml:"ebsOptimizedSupport"`
	Encryption string           `xml:"encryptionSupport"`
	Bandwidth  *ebsBandwidthXML `xml:"ebsOptimizedInfo"`
	NVMe       string           `xml:"nvmeSupport"`
}

type ebsBandwidthXML struct {
	BaselineMbps int64   `xml:"baselineBandwidthInMbps"`
	BaselineMBps float64 `xml:"baselineThroughputInMBps"`
	MaximumMbps  int64   `xml:"maximumBandwidthInMbps"`
	MaximumMBps  float64 `xml:"maximumThroughputInMBps"`
}

type networkXML struct {
	Performance       string           `xml:"networkPerformance"`
	MaxInterfaces     int              `xml:"maximumNetworkInterfaces"`
	MaxCards          int              `xml:"maximumNetworkCards"`
	DefaultCard       int              `xml:"defaultNetworkCardIndex"`
	Cards             []networkCardXML `xml:"networkCards>item"`
	IPv4PerInterface  int              `xml:"ipv4AddressesPerInterface"`
	IPv6PerInterface  int              `xml:"ipv6AddressesPerInterface"`
	IPv6              bool             `xml:"ipv6Supported"`
	ENA               string           `xml:"enaSupport"`
	EFA               bool             `xml:"efaSupported"`
	EFAInfo           *efaXML          `xml:"efaInfo"`
	EncryptionTransit bool             `xml:"encryptionInTransitSupported"`
}

type networkCardXML struct {
	Index         int     `xml:"networkCardIndex"`
	Performance   string  `xml:"networkPerformance"`
	MaxInterfaces int     `xml:"maximumNetworkInterfaces"`
	BaselineGbps  float64 `xml:"baselineBandwidthInGbps"`
	PeakGbps      float64 `xml:"peakBandwidthInGbps"`
}

type efaXML struct {
	MaxInterfaces int `xml:"maximumEfaInterfaces"`
}

type deviceMemoryXML struct {
	SizeMiB int64 `xml:"sizeInMiB"`
}

type gpuXML struct {
	GPUs     []gpuDeviceXML `xml:"gpus>item"`
	TotalMiB int64          `xml:"totalGpuMemoryInMiB"`
}

type gpuDeviceXML struct {
	Name         string          `xml:"name"`
	Manufacturer string          `xml:"manufacturer"`
	Count        int             `xml:"count"`
	Memory       deviceMemoryXML `xml:"memoryInfo"`
}

// inferenceXML names its items member: the model gives the items of InferenceDeviceInfoList no name, unlike those of its
// other lists.
type inferenceXML struct {
	Devices  []gpuDeviceXML `xml:"accelerators>member"`
	TotalMiB int64          `xml:"totalInferenceMemoryInMiB"`
}

type neuronXML struct {
	Devices  []neuronDeviceXML `xml:"neuronDevices>item"`
	TotalMiB int64             `xml:"totalNeuronDeviceMemoryInMiB"`
}

type neuronDeviceXML struct {
	Name   string          `xml:"name"`
	Count  int             `xml:"count"`
	Cores  neuronCoresXML  `xml:"coreInfo"`
	Memory deviceMemoryXML `xml:"memoryInfo"`
}

type neuronCoresXML struct {
	Count   int `xml:"count"`
	Version int `xml:"version"`
}

func typeXML(t *InstanceType) instanceTypeXML {
	cpu := cpuOptions(t)
	x := instanceTypeXML{
		Type: t.Name, CurrentGeneration: t.CurrentGeneration, FreeTier: t.Name == "t2.micro" || t.Name == "t3.micro",
		UsageClasses: t.UsageClasses, RootDevices: []string{"ebs"}, Virtualization: []string{"hvm"}, BareMetal: t.BareMetal,
		Hypervisor: t.Hypervisor, Processor: processorXML{[]string{t.EC2Arch()}, t.ClockGHz, t.CPUManufacturer, t.ProcessorFeatures()},
		VCPU: vcpuXML{t.VCPUs, cpu.Cores, cpu.Threads}, MemoryMiB: t.MemoryMiB, Placement: t.PlacementStrategies(),
		Burstable: t.Burstable, DedicatedHosts: !t.Burstable, AutoRecovery: t.NVMeGB+t.DiskGB == 0, BootModes: t.BootModes(),
		Enclaves: "unsupported", Network: networkOf(t), EBS: ebsOf(t),
	}
	if t.Enclaves() {
		x.Enclaves = "supported"
	}
	switch {
	case t.NVMeGB > 0:
		x.Storage = &storageXML{t.NVMeGB, []diskXML{{t.NVMeGB, 1, "ssd"}}, "required", "required"}
	case t.DiskGB > 0:
		x.Storage = &storageXML{t.DiskGB, []diskXML{{t.DiskGB, 1, "hdd"}}, "unsupported", "unsupported"}
	}
	x.StorageSupported = x.Storage != nil
	if t.GPUs > 0 {
		x.GPU = &gpuXML{
			[]gpuDeviceXML{{t.GPUName, t.GPUManufacturer, t.GPUs, deviceMemoryXML{t.GPUMemoryMiB}}}, int64(t.GPUs) * t.GPUMemoryMiB,
		}
	}
	if t.Neurons > 0 {
		total := int64(t.Neurons) * t.NeuronMemoryMiB
		x.Neuron = &neuronXML{[]neuronDeviceXML{{t.NeuronName, t.Neurons, neuronCoresXML{t.NeuronCores, 2}, deviceMemoryXML{t.NeuronMemoryMiB}}}, total}
		if strings.HasPrefix(t.NeuronName, "Inferentia") {
			x.Inference = &inferenceXML{[]gpuDeviceXML{{t.NeuronName, "AWS", t.Neurons, deviceMemoryXML{t.NeuronMemoryMiB}}}, total}
		}
	}
	return x
}

func networkOf(t *InstanceType) networkXML {
	cards := t.NetworkCards()
	x := networkXML{
		Performance: t.NetworkText, MaxInterfaces: t.MaxENIs, MaxCards: len(cards), IPv4PerInterface: t.IPv4PerENI,
		IPv6PerInterface: t.IPv4PerENI, IPv6: true, ENA: "required", EFA: t.EFAs > 0, EncryptionTransit: t.EncryptionTransit,
	}
	if t.EFAs > 0 {
		x.EFAInfo = &efaXML{t.EFAs}
	}
	if t.Hypervisor == "xen" {
		x.ENA = "supported"
	}
	for n, card := range cards {
		x.Cards = append(x.Cards, networkCardXML{n, t.NetworkText, card.Interfaces, card.BaselineGbps, card.PeakGbps})
	}
	return x
}

func ebsOf(t *InstanceType) ebsInfoXML {
	x := ebsInfoXML{Optimized: "default", Encryption: "supported", NVMe: "required"}
	if t.Hypervisor == "xen" {
		x.NVMe = "unsupported"
	}
	if t.EBSMbps == 0 {
		x.Optimized = "unsupported"
		return x
	}
	x.Bandwidth = &ebsBandwidthXML{t.EBSBaselineMbps, float64(t.EBSBaselineMbps) / 8, t.EBSMbps, float64(t.EBSMbps) / 8}
	return x
}

// instanceTypes handles the EC2 actions on instance types.
type instanceTypes struct {
	account   *account
	catalogue *Catalogue
}

type describeInstanceTypesXML struct {
	Types []instanceTypeXML `xml:"instanceTypeSet>item"`
	Next  string            `xml:"nextToken,omitempty"`
}

func (it *instanceTypes) describe(c *call) (any, error) {
	names := c.form.strings("InstanceType")
	if len(names) > 0 && c.form.has("MaxResults") {
		return nil, refuse("InvalidParameterCombination", "The parameter instanceTypesSet cannot be used with the parameter maxResults")
	}
	if len(names) > 100 {
		return nil, invalidValue("At most 100 instance types can be named")
	}
	for _, name := range names {
		if it.catalogue.Type(name) == nil {
			return nil, refuse("InvalidInstanceType", "The following supplied instance types do not exist: [%s]", name)
		}
	}
	found := it.catalogue.Types()
	if len(names) > 0 {
		found = slices.DeleteFunc(slices.Clone(found), func(t *InstanceType) bool { return !slices.Contains(names, t.Name) })
	}
	found, err := sift(found, parseFilters(c.form), attributesOf)
	if err != nil {
		return nil, err
	}
	page, next, err := pageOf(c.form, found, 5, 100, func(t *InstanceType) string { return t.Name })
	if err != nil {
		return nil, err
	}
	out := describeInstanceTypesXML{Next: next}
	for _, t := range page {
		out.Types = append(out.Types, typeXML(t))
	}
	return out, nil
}

// attributesOf returns the type's values for the filters of DescribeInstanceTypes.
func attributesOf(t *InstanceType) attributes {
	cpu := cpuOptions(t)
	return func(name string) ([]string, bool) {
		one := func(v string) ([]string, bool) { return []string{v}, true }
		yes := func(b bool) ([]string, bool) { return one(strconv.FormatBool(b)) }
		number := func(n int64) ([]string, bool) { return one(strconv.FormatInt(n, 10)) }
		switch name {
		case "instance-type":
			return one(t.Name)
		case "bare-metal":
			return yes(t.BareMetal)
		case "burstable-performance-supported":
			return yes(t.Burstable)
		case "current-generation":
			return yes(t.CurrentGeneration)
		case "dedicated-hosts-supported":
			return yes(!t.Burstable)
		case "free-tier-eligible":
			return yes(t.Name == "t2.micro" || t.Name == "t3.micro")
		case "hypervisor":
			return one(t.Hypervisor)
		case "instance-storage-supported":
			return yes(t.NVMeGB+t.DiskGB > 0)
		case "instance-storage-info.total-size-in-gb":
			return number(t.NVMeGB + t.DiskGB)
		case "memory-info.size-in-mib":
			return number(t.MemoryMiB)
		case "processor-info.supported-architecture":
			return one(t.EC2Arch())
		case "processor-info.sustained-clock-speed-in-ghz":
			return one(strconv.FormatFloat(t.ClockGHz, 'f', -1, 64))
		case "supported-root-device-type":
			return one("ebs")
		case "supported-usage-class":
			return t.UsageClasses, true
		case "supported-virtualization-type":
			return one("hvm")
		case "supported-boot-mode":
			return t.BootModes(), true
		case "vcpu-info.default-vcpus":
			return number(int64(t.VCPUs))
		case "vcpu-info.default-cores":
			return number(int64(cpu.Cores))
		case "vcpu-info.default-threads-per-core":
			return number(int64(cpu.Threads))
		case "network-info.efa-supported":
			return yes(t.EFAs > 0)
		case "network-info.maximum-network-interfaces":
			return number(int64(t.MaxENIs))
		case "network-info.ipv4-addresses-per-interface":
			return number(int64(t.IPv4PerENI))
		case "network-info.network-performance":
			return one(t.NetworkText)
		case "network-info.encryption-in-transit-supported":
			return yes(t.EncryptionTransit)
		}
		return nil, false
	}
}

type offeringXML struct {
	Type         string `xml:"instanceType"`
	LocationType string `xml:"locationType"`
	Location     string `xml:"location"`
}

type describeOfferingsXML struct {
	Offerings []offeringXML `xml:"instanceTypeOfferingSet>item"`
	Next      string        `xml:"nextToken,omitempty"`
}

func (it *instanceTypes) describeOfferings(c *call) (any, error) {
	kind := c.form.str("LocationType")
	setDefault(&kind, "region")
	var all []offeringXML
	for _, t := range it.catalogue.Types() {
		if kind == "region" {
			all = append(all, offeringXML{t.Name, kind, it.account.region})
			continue
		}
		for _, z := range it.account.zones {
			location, ok := map[string]string{"availability-zone": z.Name, "availability-zone-id": z.ID}[kind]
			if !ok {
				return nil, invalidValue("The location type '%s' is not valid", kind)
			}
			if it.account.offered(t, z.Name) {
				all = append(all, offeringXML{t.Name, kind, location})
			}
		}
	}
	all, err := sift(all, parseFilters(c.form), func(o offeringXML) attributes {
		return func(name string) ([]string, bool) {
			v, ok := map[string]string{"instance-type": o.Type, "location": o.Location}[name]
			return []string{v}, ok
		}
	})
	if err != nil {
		return nil, err
	}
	page, next, err := pageOf(c.form, all, 5, 1000, func(o offeringXML) string { return o.Type + "\x00" + o.Location })
	return describeOfferingsXML{page, next}, err
}
