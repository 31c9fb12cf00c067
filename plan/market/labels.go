package market

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan/model"
)

// zoneIDLabel is the label for a zone's identity across accounts.
const zoneIDLabel = "topology.k8s.aws/zone-id"

// typeLabel is the value of a label that follows from an instance type.
func typeLabel(typ *cloud.InstanceType, key string) (value string, present bool) {
	if value, present = typ.Labels[key]; !present && key == corev1.LabelInstanceTypeStable {
		return typ.Name, true
	}
	return value, present
}

// admittedPartition is a partition of the type's placement group that the term admits.
func admittedPartition(t model.Term, typ *cloud.InstanceType) (partition string, found bool) {
	about := t.About(awsv1.LabelPlacementGroupPartition)
	at := slices.IndexFunc(typ.Partitions, func(partition string) bool { return about.AllAdmit(partition, true) })
	if at < 0 {
		return "", false
	}
	return typ.Partitions[at], true
}

// admitsType says whether an instance type, with the labels of its pool, meets the term.
func admitsType(t model.Term, typ *cloud.InstanceType, pool map[string]string) bool {
	for i := range t {
		value, present := typeLabel(typ, t[i].Key)
		if !present {
			value, present = pool[t[i].Key]
		}
		if !present && t[i].Key == awsv1.LabelPlacementGroupPartition {
			value, present = admittedPartition(t, typ)
		}
		if !t[i].Admits(value, present) {
			return false
		}
	}
	return true
}

// Label returns the value of a label on a machine's nodes, if it is known before the machine is bought and does not follow
// from the zone.
func (m *Market) Label(mach *Machine, key string) (value string, present bool) {
	if value, present = typeLabel(mach.Typ, key); present {
		return value, true
	}
	switch {
	case key == karpv1.CapacityTypeLabelKey:
		return CapacityTypes[mach.Capacity], true
	case key == corev1.LabelHostname:
		// Every node has a hostname, but no pod can ask for it before the node exists.
		return "\x00", true
	case key == karpv1.NodeRegisteredLabelKey || key == karpv1.NodeInitializedLabelKey:
		return "true", true
	case !ofReservation(key):
		value, present = m.Sellers[mach.Pool].Labels[key]
	case mach.Reservation != Unreserved:
		return m.Reservations[mach.Reservation].labels[key], true
	}
	return value, present
}

// templateLabels returns the labels that a pool's nodes have whatever the pool requires.
func templateLabels(pool *karpv1.NodePool) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, pool.Spec.Template.Labels)
	labels[karpv1.NodePoolLabelKey] = pool.Name
	if ref := pool.Spec.Template.Spec.NodeClassRef; ref != nil {
		labels[karpv1.NodeClassLabelKey(ref.GroupKind())] = ref.Name
	}
	return labels
}

// offeredLabels returns the labels of a node that follow from the zone of an offering, including those with deprecated
// keys.
func offeredLabels(typ *cloud.InstanceType, offering *cloud.Offering) map[string]string {
	labels := map[string]string{corev1.LabelTopologyZone: offering.Zone}
	if region := typ.Labels[corev1.LabelTopologyRegion]; region != "" {
		labels[corev1.LabelTopologyRegion] = region
	}
	if offering.ZoneID != "" {
		labels[zoneIDLabel] = offering.ZoneID
	}
	AddDeprecated(labels)
	return labels
}

// AddDeprecated adds the deprecated keys under which nodes still carry some of their labels.
func AddDeprecated(labels map[string]string) {
	for _, key := range karpv1.DeprecatedLabelKeys() {
		if value, has := labels[karpv1.NormalizedLabelKey(key)]; has {
			labels[key] = value
		}
	}
}

// offeringLabels are the labels that follow from an offering.
func offeringLabels(typ *cloud.InstanceType, o *cloud.Offering) map[string]string {
	labels := offeredLabels(typ, o)
	labels[karpv1.CapacityTypeLabelKey] = o.CapacityType
	maps.Copy(labels, reservationLabels(o))
	return labels
}

// reservationLabels are the labels that only machines of a reservation have.
func reservationLabels(o *cloud.Offering) map[string]string {
	if o.ReservationID == "" {
		return nil
	}
	return map[string]string{
		awsv1.LabelCapacityReservationID:            o.ReservationID,
		awsv1.LabelCapacityReservationType:          cmp.Or(o.ReservationType, string(awsv1.CapacityReservationTypeDefault)),
		awsv1.LabelCapacityReservationInterruptible: strconv.FormatBool(o.ReservationInterruptible),
	}
}

// ofReservation says whether a label is one of reservationLabels.
func ofReservation(key string) bool {
	switch key {
	case awsv1.LabelCapacityReservationID, awsv1.LabelCapacityReservationType, awsv1.LabelCapacityReservationInterruptible:
		return true
	}
	return false
}

// byOffering splits conditions into those on labels that follow from an offering, and those on other labels. Conditions on
// the tenancy are in neither, because every type can be launched with any, unless they leave none.
func byOffering(conditions model.Term) (ofOffering, others model.Term) {
	_, tenable := conditions.Tenancy()
	for _, c := range conditions {
		switch {
		case c.Key == awsv1.LabelInstanceTenancy && tenable:
		case c.Key == corev1.LabelTopologyZone, c.Key == corev1.LabelTopologyRegion, c.Key == zoneIDLabel, c.Key == karpv1.CapacityTypeLabelKey, ofReservation(c.Key):
			ofOffering = append(ofOffering, c)
		default:
			others = append(others, c)
		}
	}
	return ofOffering, others
}
