package nodegroup

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// instanceTypes requires the instance types that a group names, or those with the attributes it asks for.
func (p *proposal) instanceTypes(path string, attributes *ec2types.InstanceRequirements) {
	names := p.group.InstanceTypes()
	switch {
	case len(names) > 0:
		p.require(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, names...)
		if attributes != nil {
			p.lost(strings.TrimSuffix(path, "."), "the group names its instance types")
		}
	case attributes != nil:
		p.attributes(path, attributes)
	default:
		p.fail("instanceTypes", "the group names no instance types, and its launch template has none: leave the group out by naming the others")
	}
}

// limits bounds the pool by what its group can have at most.
func (p *proposal) limits(field string, attributes *ec2types.InstanceRequirements) {
	var cpu, memory int64
	largest := "the largest type"
	for _, name := range p.group.InstanceTypes() {
		kind, known := p.source.Types[name]
		if !known {
			p.fail(field, "EC2 does not know the instance type %s: is it one of this region?", name)
			return
		}
		if kind.VCPUs > cpu {
			largest = name
		}
		cpu, memory = max(cpu, kind.VCPUs), max(memory, kind.MemoryMiB)
	}
	if len(p.group.InstanceTypes()) == 0 && attributes != nil {
		if attributes.VCpuCount != nil {
			cpu = int64(aws.ToInt32(attributes.VCpuCount.Max))
		}
		if attributes.MemoryMiB != nil {
			memory = int64(aws.ToInt32(attributes.MemoryMiB.Max))
		}
	}
	p.pool.Spec.Limits = karpv1.Limits{}
	if cpu == 0 || memory == 0 {
		p.pool.Spec.Limits[karpv1.ResourceNodes] = *resource.NewQuantity(p.maxSize, resource.DecimalSI)
		p.changed(field, "is now spec.limits.nodes, since the size of the group's instance types has no bound")
		return
	}
	p.pool.Spec.Limits[corev1.ResourceCPU] = *resource.NewQuantity(p.maxSize*cpu, resource.DecimalSI)
	p.pool.Spec.Limits[corev1.ResourceMemory] = resource.MustParse(fmt.Sprintf("%dMi", p.maxSize*memory))
	p.changed(field, "is now spec.limits: what %d of the largest instance type (%s) have. Smaller nodes may be more; write nodes: %d for the number", p.maxSize, largest, p.maxSize)
}

// minSize says what becomes of a group's minimum.
func (p *proposal) minSize(field string, size int32) {
	if size > 0 {
		p.lost(field, "a NodePool has no minimum: nodes that no pod needs are removed. A CapacityBuffer keeps room for pods to come, and spec.replicas a fixed number of nodes")
	}
}

// subnets selects the subnets of a group.
func (p *proposal) subnets(ids []string) {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		p.class.Spec.SubnetSelectorTerms = append(p.class.Spec.SubnetSelectorTerms, awsv1.SubnetSelectorTerm{ID: id})
	}
}
