package market

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

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

// admittedPartition is a partition of the type's placement group that the term admits.
func admittedPartition(keys cloud.LabelKeys, t model.Term, typ *cloud.InstanceType) (partition string, found bool) {
	if keys.Partition == "" {
		return "", false
	}
	about := t.About(keys.Partition)
	at := slices.IndexFunc(typ.Partitions, func(partition string) bool { return about.AllAdmit(partition, true) })
	if at < 0 {
		return "", false
	}
	return typ.Partitions[at], true
}

// admitsType says whether an instance type, with the labels of its pool, meets the term.
func admitsType(keys cloud.LabelKeys, t model.Term, typ *cloud.InstanceType, pool map[string]string) bool {
	for i := range t {
		value, present := typeLabel(typ, t[i].Key)
		if !present {
			value, present = pool[t[i].Key]
		}
		if !present && t[i].Key == keys.Partition {
			value, present = admittedPartition(keys, t, typ)
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
	case !m.Keys.OfReservation(key):
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
func offeredLabels(keys cloud.LabelKeys, typ *cloud.InstanceType, offering *cloud.Offering) map[string]string {
	labels := map[string]string{corev1.LabelTopologyZone: offering.Zone}
	if region := typ.Labels[corev1.LabelTopologyRegion]; region != "" {
		labels[corev1.LabelTopologyRegion] = region
	}
	if offering.ZoneID != "" && keys.ZoneID != "" {
		labels[keys.ZoneID] = offering.ZoneID
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
func offeringLabels(keys cloud.LabelKeys, typ *cloud.InstanceType, o *cloud.Offering) map[string]string {
	labels := offeredLabels(keys, typ, o)
	labels[karpv1.CapacityTypeLabelKey] = o.CapacityType
	maps.Copy(labels, reservationLabels(keys, o))
	return labels
}

// reservationLabels are the labels that only machines of a reservation have.
func reservationLabels(keys cloud.LabelKeys, o *cloud.Offering) map[string]string {
	if o.ReservationID == "" || keys.ReservationID == "" {
		return nil
	}
	return map[string]string{
		keys.ReservationID:            o.ReservationID,
		keys.ReservationType:          cmp.Or(o.ReservationType, cloud.ReservationDefault),
		keys.ReservationInterruptible: strconv.FormatBool(o.ReservationInterruptible),
	}
}

// wellKnown returns the labels that are known of every machine before it is launched.
func wellKnown(keys cloud.LabelKeys) sets.Set[string] {
	return karpv1.WellKnownLabels().Insert(keys.OfType...)
}

// byOffering splits conditions into those on labels that follow from an offering, and those on other labels. Conditions on
// the tenancy are in neither, because every type can be launched with any, unless they leave none.
func byOffering(keys cloud.LabelKeys, conditions model.Term) (ofOffering, others model.Term) {
	_, tenable := conditions.Tenancy(keys)
	for _, c := range conditions {
		switch {
		case c.Key == keys.Tenancy && tenable:
		case c.Key == corev1.LabelTopologyZone, c.Key == corev1.LabelTopologyRegion, c.Key == keys.ZoneID, c.Key == karpv1.CapacityTypeLabelKey, keys.OfReservation(c.Key):
			ofOffering = append(ofOffering, c)
		default:
			others = append(others, c)
		}
	}
	return ofOffering, others
}
