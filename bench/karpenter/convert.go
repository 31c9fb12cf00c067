package karpenter

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/utils/resources"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// nodeClassGroup and nodeClassKind identify the node class that Karpenter's fake cloud provider supports.
const (
	nodeClassGroup = "karpenter.test.sh"
	nodeClassKind  = "TestNodeClass"
)

// Karpenter keeps the labels its cloud provider knows in a global, which must be filled before Karpenter is used.
func init() {
	karpenterv1.WellKnownLabels = karpenterv1.WellKnownLabels.Union(karpv1.WellKnownLabels()).Union(karpv1.AWSWellKnownLabels())
}

// nodePool converts a pool to Karpenter's type: the resource is the same, so JSON carries it over. The node class becomes one
// that Karpenter's fake cloud provider supports.
func nodePool(pool *karpv1.NodePool) (*karpenterv1.NodePool, error) {
	converted := &karpenterv1.NodePool{}
	if err := carry(pool, converted); err != nil {
		return nil, fmt.Errorf("node pool %s: %w", pool.Name, err)
	}
	ref := converted.Spec.Template.Spec.NodeClassRef
	ref.Group, ref.Kind = nodeClassGroup, nodeClassKind
	return converted, nil
}

// nodeClaim converts a claim to Karpenter's type.
func nodeClaim(claim *karpv1.NodeClaim) (*karpenterv1.NodeClaim, error) {
	converted := &karpenterv1.NodeClaim{}
	if err := carry(claim, converted); err != nil {
		return nil, fmt.Errorf("node claim %s: %w", claim.Name, err)
	}
	return converted, nil
}

func carry(from, to any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, to)
}

// instanceTypes converts the types to what Karpenter's cloud provider would report.
func instanceTypes(types []*cloud.InstanceType) []*cloudprovider.InstanceType {
	converted := make([]*cloudprovider.InstanceType, len(types))
	for i, t := range types {
		converted[i] = instanceType(t)
	}
	return converted
}

func instanceType(t *cloud.InstanceType) *cloudprovider.InstanceType {
	converted := &cloudprovider.InstanceType{
		Name:         t.Name,
		Requirements: scheduling.NewLabelRequirements(t.Labels),
		Capacity:     t.Capacity,
		Overhead:     &cloudprovider.InstanceTypeOverhead{KubeReserved: resources.Subtract(t.Capacity, t.Allocatable)},
	}
	var zones, kinds []string
	for _, offering := range t.Offerings {
		converted.Offerings = append(converted.Offerings, &cloudprovider.Offering{
			Requirements: scheduling.NewLabelRequirements(map[string]string{
				karpenterv1.CapacityTypeLabelKey: offering.CapacityType,
				corev1.LabelTopologyZone:         offering.Zone,
				awsv1.LabelTopologyZoneID:        offering.ZoneID,
			}),
			Price: offering.Price, Available: offering.Available,
		})
		if offering.Available {
			zones, kinds = append(zones, offering.Zone), append(kinds, offering.CapacityType)
		}
	}
	slices.Sort(zones)
	slices.Sort(kinds)
	converted.Requirements.Add(
		scheduling.NewRequirement(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, slices.Compact(zones)...),
		scheduling.NewRequirement(karpenterv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, slices.Compact(kinds)...),
	)
	// A provider has to define every label it knows, including those that a type does not have.
	for key := range karpv1.AWSWellKnownLabels() {
		if _, labelled := t.Labels[key]; !labelled {
			converted.Requirements.Add(scheduling.NewRequirement(key, corev1.NodeSelectorOpDoesNotExist))
		}
	}
	return converted
}
