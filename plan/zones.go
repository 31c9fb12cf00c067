package plan

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// zoneIDLabel is the label for a zone's identity across accounts.
const zoneIDLabel = "topology.k8s.aws/zone-id"

// maxZones is how many zones fit into a mask. No region comes near it.
const maxZones = 64

// numberZones lists the zones in which anything is offered, and what the provider says of each.
func (m *market) numberZones(pools []Pool) {
	labels := map[string]map[string]string{}
	for _, pool := range pools {
		for _, typ := range pool.Types {
			for i := range typ.Offerings {
				if labels[typ.Offerings[i].Zone] == nil {
					labels[typ.Offerings[i].Zone] = offeredLabels(typ, &typ.Offerings[i])
				}
			}
		}
	}
	m.zones = slices.Sorted(maps.Keys(labels))
	if len(m.zones) > maxZones {
		m.zones = m.zones[:maxZones]
	}
	for i, zone := range m.zones {
		m.zoneIndex[zone] = i
		m.zoneLabels = append(m.zoneLabels, labels[zone])
		m.allZones |= 1 << i
	}
}

// offeredLabels are the labels of a node that follow from the zone of an offering, those by the names of old included.
func offeredLabels(typ *cloud.InstanceType, offering *cloud.Offering) map[string]string {
	labels := map[string]string{corev1.LabelTopologyZone: offering.Zone}
	if region := typ.Labels[corev1.LabelTopologyRegion]; region != "" {
		labels[corev1.LabelTopologyRegion] = region
	}
	if offering.ZoneID != "" {
		labels[zoneIDLabel] = offering.ZoneID
	}
	addDeprecated(labels)
	return labels
}

// addDeprecated adds what nodes have of their labels by names that Kubernetes has given up.
func addDeprecated(labels map[string]string) {
	for _, key := range karpv1.DeprecatedLabelKeys() {
		if value, has := labels[karpv1.NormalizedLabelKey(key)]; has {
			labels[key] = value
		}
	}
}

// zonal says whether a label follows from the zone.
func (m *market) zonal(key string) bool {
	key = normalizedKey(key)
	return key == corev1.LabelTopologyZone || key == zoneIDLabel || key == corev1.LabelTopologyRegion
}

func (m *market) zoneMask(t term) uint64 {
	var mask uint64
	for z := range m.zones {
		if t.admits(m.zoneLabels[z]) {
			mask |= 1 << z
		}
	}
	return mask
}

func (m *market) zoneNames(mask uint64) []string {
	var names []string
	for z, name := range m.zones {
		if mask&(1<<z) != 0 {
			names = append(names, name)
		}
	}
	return names
}
