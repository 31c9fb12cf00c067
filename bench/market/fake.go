// Package market sells machines to both planners: those of Karpenter's own benchmark, or those of EC2.
package market

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	karpenter "sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/fake"

	"github.com/tenon-sh/tenon/cloud"
)

// Fake returns the instance types of Karpenter's own benchmark, made by its own generator: type i has i+1 cores, 2(i+1) GiB
// and room for 10(i+1) pods at a price that follows from its size, spot in two zones and on-demand in three. The generator
// leaves the operating system open; both planners are told that it is Linux.
func Fake(count int) []*cloud.InstanceType {
	types := make([]*cloud.InstanceType, 0, count)
	for _, it := range fake.InstanceTypes(count) {
		types = append(types, fromKarpenter(it))
	}
	return types
}

func fromKarpenter(it *karpenter.InstanceType) *cloud.InstanceType {
	t := &cloud.InstanceType{
		Name: it.Name,
		Labels: map[string]string{
			corev1.LabelInstanceTypeStable: it.Name,
			corev1.LabelArchStable:         it.Requirements.Get(corev1.LabelArchStable).Any(),
			corev1.LabelOSStable:           string(corev1.Linux),
			fake.IntegerInstanceLabelKey:   strconv.FormatInt(it.Capacity.Cpu().Value(), 10),
		},
		Capacity:    it.Capacity,
		Allocatable: it.Allocatable(),
	}
	for _, offering := range it.Offerings {
		t.Offerings = append(t.Offerings, cloud.Offering{
			CapacityType: offering.CapacityType(), Zone: offering.Zone(), ZoneID: offering.Zone() + "-id",
			Price: offering.Price, Available: offering.Available,
		})
	}
	return t
}
