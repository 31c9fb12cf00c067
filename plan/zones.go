package plan

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// zoneIDLabel is the label for a zone's identity across accounts.
const zoneIDLabel = "topology.k8s.aws/zone-id"

// maxZones is how many zones fit into a mask. No region comes near it.
const maxZones = 64

func (m *market) numberZones(pools []Pool) {
	ids := map[string]string{}
	for _, pool := range pools {
		for _, typ := range pool.Types {
			for i := range typ.Offerings {
				ids[typ.Offerings[i].Zone] = typ.Offerings[i].ZoneID
			}
		}
	}
	m.zones = slices.Sorted(maps.Keys(ids))
	if len(m.zones) > maxZones {
		m.zones = m.zones[:maxZones]
	}
	for i, zone := range m.zones {
		m.zoneIndex[zone] = i
		m.zoneIDs = append(m.zoneIDs, ids[zone])
		m.allZones |= 1 << i
	}
}

// zonal says whether a label follows from the zone.
func (m *market) zonal(key string) bool {
	return key == corev1.LabelTopologyZone || key == zoneIDLabel || key == corev1.LabelTopologyRegion
}

func (m *market) zoneMask(t term) uint64 {
	var mask uint64
	for z := range m.zones {
		if t.admits(m.zoneLabels(z)) {
			mask |= 1 << z
		}
	}
	return mask
}

func (m *market) zoneLabels(z int) map[string]string {
	labels := map[string]string{corev1.LabelTopologyZone: m.zones[z], corev1.LabelTopologyRegion: regionOf(m.zones[z])}
	if m.zoneIDs[z] != "" {
		labels[zoneIDLabel] = m.zoneIDs[z]
	}
	return labels
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

// regionOf is the region of an availability zone, which is the zone's name without its last letter.
func regionOf(zone string) string {
	if zone == "" {
		return ""
	}
	return zone[:len(zone)-1]
}
