package model

import (
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// A partition placement group keeps the instances of one partition off the racks of the others. Pods are spread over the
// partitions like over zones, by a label of their nodes. Unlike a zone, a partition has no prices, and nobody has to choose
// one: EC2 distributes the instances of launches that name none.

// PartitionsOf returns the partitions in which machines of these types can be launched, as values of their label; nil if there
// are none. All types of a node class have the same ones.
func PartitionsOf(types []*cloud.InstanceType) []string {
	if len(types) == 0 {
		return nil
	}
	return types[0].Partitions
}

// Partition returns the first partition that a claim's requirements admit, and nothing if they do not mention it.
func Partition(keys cloud.LabelKeys, claim *karpv1.NodeClaim, types []*cloud.InstanceType) string {
	if keys.Partition == "" {
		return ""
	}
	asked := ConditionsOf(claim.Spec.Requirements).About(keys.Partition)
	if len(asked) == 0 {
		return ""
	}
	for _, partition := range PartitionsOf(types) {
		if asked.AllAdmit(partition, true) {
			return partition
		}
	}
	return ""
}
