package market

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan/model"
)

// typeLabel is the value of a label that follows from an instance type.
func typeLabel(typ *cloud.InstanceType, key string) (value string, present bool) {
	if value, present = typ.Labels[key]; !present && key == corev1.LabelInstanceTypeStable {
		return typ.Name, true
	}
	return value, present
}

// admitsType says whether an instance type, with the labels of its pool, meets the term.
func admitsType(t model.Term, typ *cloud.InstanceType, pool map[string]string) bool {
	for i := range t {
		value, present := typeLabel(typ, t[i].Key)
		if !present {
			value, present = pool[t[i].Key]
		}
		if !t[i].Admits(value, present) {
			return false
		}
	}
	return true
}

// byOffering parts conditions into those on labels that follow from an offering, and those on others.
func byOffering(conditions model.Term) (ofOffering, others model.Term) {
	for _, c := range conditions {
		switch {
		case c.Key == corev1.LabelTopologyZone, c.Key == corev1.LabelTopologyRegion, c.Key == zoneIDLabel, c.Key == karpv1.CapacityTypeLabelKey, ofReservation(c.Key):
			ofOffering = append(ofOffering, c)
		default:
			others = append(others, c)
		}
	}
	return ofOffering, others
}

// offeringLabels are the labels that follow from an offering.
func offeringLabels(typ *cloud.InstanceType, o *cloud.Offering) map[string]string {
	labels := offeredLabels(typ, o)
	labels[karpv1.CapacityTypeLabelKey] = o.CapacityType
	maps.Copy(labels, reservationLabels(o))
	return labels
}
