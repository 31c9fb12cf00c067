package offline

import (
	"strings"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloud/catalogue"
)

// describe says of a type what the provider reads of EC2's description.
func describe(t *catalogue.InstanceType) ec2types.InstanceTypeInfo {
	info := ec2types.InstanceTypeInfo{
		InstanceType:          ec2types.InstanceType(t.Name),
		CurrentGeneration:     awssdk.Bool(t.CurrentGeneration),
		BareMetal:             awssdk.Bool(t.BareMetal),
		Hypervisor:            ec2types.InstanceTypeHypervisor(t.Hypervisor),
		SupportedUsageClasses: converted[ec2types.UsageClassType](t.UsageClasses),
		ProcessorInfo: &ec2types.ProcessorInfo{
			SupportedArchitectures: []ec2types.ArchitectureType{ec2types.ArchitectureType(t.EC2Arch())}, Manufacturer: awssdk.String(t.CPUManufacturer),
			SupportedFeatures: converted[ec2types.SupportedAdditionalProcessorFeature](t.ProcessorFeatures()),
		},
		VCpuInfo:           &ec2types.VCpuInfo{DefaultVCpus: awssdk.Int32(int32(t.VCPUs))},
		MemoryInfo:         &ec2types.MemoryInfo{SizeInMiB: awssdk.Int64(t.MemoryMiB)},
		PlacementGroupInfo: &ec2types.PlacementGroupInfo{SupportedStrategies: converted[ec2types.PlacementGroupStrategy](t.PlacementStrategies())},
		NetworkInfo:        network(t),
		EbsInfo:            &ec2types.EbsInfo{EbsOptimizedSupport: ec2types.EbsOptimizedSupportUnsupported},
	}
	if t.ClockGHz > 0 {
		info.ProcessorInfo.SustainedClockSpeedInGhz = awssdk.Float64(t.ClockGHz)
	}
	if t.EBSMbps > 0 {
		info.EbsInfo.EbsOptimizedSupport = ec2types.EbsOptimizedSupportDefault
		info.EbsInfo.EbsOptimizedInfo = &ec2types.EbsOptimizedInfo{
			BaselineBandwidthInMbps: awssdk.Int32(int32(t.EBSBaselineMbps)), MaximumBandwidthInMbps: awssdk.Int32(int32(t.EBSMbps)),
		}
	}
	switch {
	case t.NVMeGB > 0:
		info.InstanceStorageInfo = &ec2types.InstanceStorageInfo{TotalSizeInGB: awssdk.Int64(t.NVMeGB), NvmeSupport: ec2types.EphemeralNvmeSupportRequired}
	case t.DiskGB > 0:
		info.InstanceStorageInfo = &ec2types.InstanceStorageInfo{TotalSizeInGB: awssdk.Int64(t.DiskGB), NvmeSupport: ec2types.EphemeralNvmeSupportUnsupported}
	}
	accelerators(&info, t)
	return info
}

func network(t *catalogue.InstanceType) *ec2types.NetworkInfo {
	info := &ec2types.NetworkInfo{
		NetworkPerformance: awssdk.String(t.NetworkText), MaximumNetworkInterfaces: awssdk.Int32(int32(t.MaxENIs)), DefaultNetworkCardIndex: awssdk.Int32(0),
		Ipv4AddressesPerInterface: awssdk.Int32(int32(t.IPv4PerENI)), Ipv6AddressesPerInterface: awssdk.Int32(int32(t.IPv4PerENI)), Ipv6Supported: awssdk.Bool(true),
		EnaSupport: ec2types.EnaSupportRequired, EfaSupported: awssdk.Bool(t.EFAs > 0), EncryptionInTransitSupported: awssdk.Bool(t.EncryptionTransit),
	}
	if t.EFAs > 0 {
		info.EfaInfo = &ec2types.EfaInfo{MaximumEfaInterfaces: awssdk.Int32(int32(t.EFAs))}
	}
	for n, card := range t.NetworkCards() {
		info.NetworkCards = append(info.NetworkCards, ec2types.NetworkCardInfo{
			NetworkCardIndex: awssdk.Int32(int32(n)), MaximumNetworkInterfaces: awssdk.Int32(int32(card.Interfaces)),
			BaselineBandwidthInGbps: awssdk.Float64(card.BaselineGbps), PeakBandwidthInGbps: awssdk.Float64(card.PeakGbps),
		})
	}
	return info
}

// accelerators adds GPUs, and AWS's own accelerators, of which EC2 describes Inferentia in two ways.
func accelerators(info *ec2types.InstanceTypeInfo, t *catalogue.InstanceType) {
	if t.GPUs > 0 {
		info.GpuInfo = &ec2types.GpuInfo{TotalGpuMemoryInMiB: awssdk.Int32(int32(int64(t.GPUs) * t.GPUMemoryMiB)), Gpus: []ec2types.GpuDeviceInfo{{
			Name: awssdk.String(t.GPUName), Manufacturer: awssdk.String(t.GPUManufacturer), Count: awssdk.Int32(int32(t.GPUs)),
			MemoryInfo: &ec2types.GpuDeviceMemoryInfo{SizeInMiB: awssdk.Int32(int32(t.GPUMemoryMiB))},
		}}}
	}
	if t.Neurons == 0 {
		return
	}
	info.NeuronInfo = &ec2types.NeuronInfo{NeuronDevices: []ec2types.NeuronDeviceInfo{{
		Name: awssdk.String(t.NeuronName), Count: awssdk.Int32(int32(t.Neurons)), CoreInfo: &ec2types.NeuronDeviceCoreInfo{Count: awssdk.Int32(int32(t.NeuronCores))},
		MemoryInfo: &ec2types.NeuronDeviceMemoryInfo{SizeInMiB: awssdk.Int32(int32(t.NeuronMemoryMiB))},
	}}}
	if strings.HasPrefix(t.NeuronName, "Inferentia") {
		info.InferenceAcceleratorInfo = &ec2types.InferenceAcceleratorInfo{Accelerators: []ec2types.InferenceDeviceInfo{{
			Name: awssdk.String(t.NeuronName), Manufacturer: awssdk.String("AWS"), Count: awssdk.Int32(int32(t.Neurons)),
		}}}
	}
}

// converted gives texts the type that the SDK has for them.
func converted[T ~string](texts []string) []T {
	out := make([]T, len(texts))
	for i, text := range texts {
		out[i] = T(text)
	}
	return out
}
