package market

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan/model"
)

// Everywhere is the mask of all zones.
const Everywhere = ^uint64(0)

// maxZones is how many zones fit into a mask. No region comes near it.
const maxZones = 64

// numberZones lists the zones in which anything is offered, and the labels of each.
func numberZones(m *Market, pools []model.Pool) {
	labels := map[string]map[string]string{}
	for _, pool := range pools {
		for _, typ := range pool.Types {
			for i := range typ.Offerings {
				if labels[typ.Offerings[i].Zone] == nil {
					labels[typ.Offerings[i].Zone] = offeredLabels(m.Keys, typ, &typ.Offerings[i])
				}
			}
		}
	}
	m.Zones = slices.Sorted(maps.Keys(labels))
	if len(m.Zones) > maxZones {
		m.Zones = m.Zones[:maxZones]
	}
	for i, zone := range m.Zones {
		m.ZoneLabels = append(m.ZoneLabels, labels[zone])
		m.AllZones |= 1 << i
	}
}

// Zonal says whether a label follows from the zone.
func (m *Market) Zonal(key string) bool {
	key = model.NormalizedKey(key)
	return key == corev1.LabelTopologyZone || key == m.Keys.ZoneID || key == corev1.LabelTopologyRegion
}

// ZoneMask is the set of zones that a term allows.
func (m *Market) ZoneMask(t model.Term) uint64 {
	var mask uint64
	for z := range m.Zones {
		if t.Admits(m.ZoneLabels[z]) {
			mask |= 1 << z
		}
	}
	return mask
}

// ZoneNames are the zones of a mask, ordered by name.
func (m *Market) ZoneNames(mask uint64) []string { return m.ZoneValues(mask, corev1.LabelTopologyZone) }

// ZoneValues are the values that a label has in each zone of a mask, empty where the zone has none.
func (m *Market) ZoneValues(mask uint64, key string) []string {
	var values []string
	for z := range (Bitset{mask & m.AllZones}).All {
		values = append(values, m.ZoneLabels[z][key])
	}
	return values
}
