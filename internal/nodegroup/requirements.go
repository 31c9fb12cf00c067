package nodegroup

import (
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// requirementFields is what becomes of attributes that choose instance types (EC2 API reference, "InstanceRequirements").
var requirementFields = fields{
	carried: []string{"VCpuCount", "MemoryMiB", "AllowedInstanceTypes", "ExcludedInstanceTypes", "BareMetal", "BurstablePerformance", "CpuManufacturers",
		"LocalStorage", "TotalLocalStorageGB", "NetworkBandwidthGbps", "BaselineEbsBandwidthMbps", "RequireEncryptionInTransit", "AcceleratorCount",
		"AcceleratorTypes", "AcceleratorManufacturers", "AcceleratorNames", "AcceleratorTotalMemoryMiB"},
	lost: map[string]string{
		"InstanceGenerations":                            "require karpenter.k8s.aws/instance-generation Gt a number instead",
		"MemoryGiBPerVCpu":                               "require instance categories instead: c has 2 GiB per vCPU, m 4 and r 8",
		"NetworkInterfaceCount":                          "the VPC CNI plugin's limit of pods is counted for every instance type instead",
		"SpotMaxPricePercentageOverLowestPrice":          priceProtection,
		"OnDemandMaxPricePercentageOverLowestPrice":      priceProtection,
		"MaxSpotPriceAsPercentageOfOptimalOnDemandPrice": priceProtection,
	},
}

const priceProtection = "Tenon launches the cheapest instance types that fit, and has no limit of prices"

// cpuManufacturers are EC2's names by those of the label.
var cpuManufacturers = map[ec2types.CpuManufacturer]string{
	ec2types.CpuManufacturerIntel: "intel", ec2types.CpuManufacturerAmd: "amd", ec2types.CpuManufacturerAmazonWebServices: "aws",
}

// attributes carries over the attributes that choose instance types. EC2's defaults are written out.
func (p *proposal) attributes(path string, of *ec2types.InstanceRequirements) {
	if r := of.VCpuCount; r != nil {
		p.between(awsv1.LabelInstanceCPU, r.Min, r.Max)
	}
	if r := of.MemoryMiB; r != nil {
		p.between(awsv1.LabelInstanceMemory, r.Min, r.Max)
	}
	if r := of.BaselineEbsBandwidthMbps; r != nil {
		p.between(awsv1.LabelInstanceEBSBandwidth, r.Min, r.Max)
	}
	if r := of.NetworkBandwidthGbps; r != nil {
		p.between(awsv1.LabelInstanceNetworkBandwidth, scaled(r.Min, 1000), scaled(r.Max, 1000))
	}
	if r := of.TotalLocalStorageGB; r != nil {
		const gib = 1e9 / (1 << 30)
		p.between(awsv1.LabelInstanceLocalNVME, scaled(r.Min, gib), scaled(r.Max, gib))
	}
	p.patterns(path+"allowedInstanceTypes", corev1.NodeSelectorOpIn, of.AllowedInstanceTypes)
	p.patterns(path+"excludedInstanceTypes", corev1.NodeSelectorOpNotIn, of.ExcludedInstanceTypes)
	switch of.BareMetal {
	case ec2types.BareMetalRequired:
		p.lost(path+"bareMetal", "no requirement asks for bare metal alone: require karpenter.k8s.aws/instance-size In its sizes, such as metal")
	case ec2types.BareMetalIncluded:
	default:
		p.require(awsv1.LabelInstanceHypervisor, corev1.NodeSelectorOpIn, "nitro", "xen")
	}
	switch of.BurstablePerformance {
	case ec2types.BurstablePerformanceRequired:
		p.require(awsv1.LabelInstanceCategory, corev1.NodeSelectorOpIn, "t")
	case ec2types.BurstablePerformanceIncluded:
	default:
		p.require(awsv1.LabelInstanceCategory, corev1.NodeSelectorOpNotIn, "t")
	}
	switch of.LocalStorage {
	case ec2types.LocalStorageRequired:
		p.require(awsv1.LabelInstanceLocalNVME, corev1.NodeSelectorOpExists)
	case ec2types.LocalStorageExcluded:
		p.require(awsv1.LabelInstanceLocalNVME, corev1.NodeSelectorOpDoesNotExist)
	}
	for _, maker := range of.CpuManufacturers {
		if name := cpuManufacturers[maker]; name != "" {
			p.require(awsv1.LabelInstanceCPUManufacturer, corev1.NodeSelectorOpIn, name)
		} else {
			p.lost(path+"cpuManufacturers", "%s makes no processors of nodes", maker)
		}
	}
	if aws.ToBool(of.RequireEncryptionInTransit) {
		p.require(awsv1.LabelInstanceEncryptionInTransitSupported, corev1.NodeSelectorOpIn, "true")
	}
	p.accelerators(path, of)
	p.say(path, of, requirementFields)
}

// accelerators carries over attributes of accelerators. Those of GPUs and of others have different labels.
func (p *proposal) accelerators(path string, of *ec2types.InstanceRequirements) {
	if r := of.AcceleratorCount; r != nil && r.Max != nil && *r.Max == 0 {
		p.require(awsv1.LabelInstanceGPUCount, corev1.NodeSelectorOpDoesNotExist)
		p.require(awsv1.LabelInstanceAcceleratorCount, corev1.NodeSelectorOpDoesNotExist)
		return
	}
	onlyGPUs := len(of.AcceleratorTypes) == 1 && of.AcceleratorTypes[0] == ec2types.AcceleratorTypeGpu
	if r := of.AcceleratorCount; r != nil && onlyGPUs {
		p.between(awsv1.LabelInstanceGPUCount, r.Min, r.Max)
	} else if r != nil {
		p.lost(path+"acceleratorCount", "which label it is about depends on the kind: require karpenter.k8s.aws/instance-gpu-count or instance-accelerator-count")
	}
	if len(of.AcceleratorTypes) > 0 && !onlyGPUs {
		p.lost(path+"acceleratorTypes", "require karpenter.k8s.aws/instance-gpu-name or instance-accelerator-name")
	}
	if onlyGPUs && of.AcceleratorCount == nil {
		p.require(awsv1.LabelInstanceGPUCount, corev1.NodeSelectorOpExists)
	}
	for _, maker := range of.AcceleratorManufacturers {
		if maker == ec2types.AcceleratorManufacturerNvidia || maker == ec2types.AcceleratorManufacturerAmd {
			p.require(awsv1.LabelInstanceGPUManufacturer, corev1.NodeSelectorOpIn, string(maker))
		} else {
			p.require(awsv1.LabelInstanceAcceleratorManufacturer, corev1.NodeSelectorOpIn, strings.Replace(string(maker), "amazon-web-services", "aws", 1))
		}
	}
	for _, name := range of.AcceleratorNames {
		switch name {
		case ec2types.AcceleratorNameInferentia:
			p.require(awsv1.LabelInstanceAcceleratorName, corev1.NodeSelectorOpIn, "inferentia")
		default:
			p.require(awsv1.LabelInstanceGPUName, corev1.NodeSelectorOpIn, string(name))
		}
	}
	if r := of.AcceleratorTotalMemoryMiB; r != nil {
		p.lost(path+"acceleratorTotalMemoryMiB", "karpenter.k8s.aws/instance-gpu-memory is the memory of one GPU, in MiB: require that")
	}
}

// between requires that a number is within bounds, which belong to it. Either may be nil.
func (p *proposal) between(label string, least, most *int32) {
	if least != nil && *least > 0 {
		p.require(label, corev1.NodeSelectorOpGt, strconv.Itoa(int(*least)-1))
	}
	if most != nil {
		p.require(label, corev1.NodeSelectorOpLt, strconv.Itoa(int(*most)+1))
	}
}

// scaled converts a bound to another unit.
func scaled(bound *float64, by float64) *int32 {
	if bound == nil {
		return nil
	}
	return aws.Int32(int32(*bound * by))
}

// patterns carries over patterns of instance types: whole names, and families with all their sizes, such as m5.*.
func (p *proposal) patterns(field string, operator corev1.NodeSelectorOperator, all []string) {
	var types, families []string
	for _, pattern := range all {
		family, size, _ := strings.Cut(pattern, ".")
		switch {
		case !strings.Contains(pattern, "*"):
			types = append(types, pattern)
		case size == "*" && !strings.Contains(family, "*"):
			families = append(families, family)
		default:
			p.lost(field, "no requirement has patterns like %s: require karpenter.k8s.aws/instance-family or instance-size", pattern)
		}
	}
	if len(types) > 0 && len(families) > 0 && operator == corev1.NodeSelectorOpIn {
		p.lost(field, "requirements join with and, so that either families or types can be required: only the families %s are", strings.Join(families, ", "))
		types = nil
	}
	if len(types) > 0 {
		p.require(corev1.LabelInstanceTypeStable, operator, types...)
	}
	if len(families) > 0 {
		p.require(awsv1.LabelInstanceFamily, operator, families...)
	}
}
