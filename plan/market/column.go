package market

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan/model"
)

// Column returns the values of a label that does not follow from the zone.
func (m *Market) Column(key string) *column {
	if c, ok := m.columns[key]; ok {
		return c
	}
	c := &column{Ids: make([]int32, len(m.Machines))}
	ids := map[string]int32{}
	for i := range m.Machines {
		mach := &m.Machines[i]
		s := m.Sellers[mach.Pool]
		value, present := mach.Typ.Labels[key]
		switch {
		case present:
		case key == karpv1.CapacityTypeLabelKey:
			value, present = CapacityTypes[mach.Capacity], true
		case key == corev1.LabelInstanceTypeStable:
			value, present = mach.Typ.Name, true
		case key == corev1.LabelHostname:
			// Every node has one, which nobody can ask for before the node exists.
			value, present = "\x00", true
		case key == karpv1.NodeRegisteredLabelKey || key == karpv1.NodeInitializedLabelKey:
			value, present = "true", true
		case ofReservation(key):
			if mach.Reservation != Unreserved {
				value, present = m.Reservations[mach.Reservation].labels[key], true
			}
		default:
			if value, present = s.Labels[key]; !present && s.Open[key] != nil {
				c.Ids[i] = OpenID
				continue
			}
		}
		if !present {
			c.Ids[i] = absentID
			continue
		}
		id, known := ids[value]
		if !known {
			id = int32(len(c.Values))
			ids[value] = id
			c.Values = append(c.Values, value)
		}
		c.Ids[i] = id
	}
	m.columns[key] = c
	return c
}

const (
	absentID int32 = -1
	// OpenID stands for a label whose value the pool leaves open.
	OpenID int32 = -2
)

// Admitted is the set of machines that meet a condition on a label which does not follow from the zone.
func (m *Market) Admitted(c *model.Condition) Bitset {
	id := c.ID()
	if set, ok := m.sets[id]; ok {
		return set
	}
	col := m.Column(c.Key)
	verdicts := make([]bool, len(col.Values))
	for i, value := range col.Values {
		verdicts[i] = c.Admits(value, true)
	}
	absent := c.Admits("", false)
	set := NewBitset(len(m.Machines))
	for i, value := range col.Ids {
		admits := absent
		switch {
		case value >= 0:
			admits = verdicts[value]
		case value == OpenID:
			_, _, admits = append(slices.Clone(m.Sellers[m.Machines[i].Pool].Open[c.Key]), *c).Resolve()
		}
		if admits {
			set.Set(i)
		}
	}
	m.sets[id] = set
	return set
}

// OpenAnywhere says whether some pool leaves the label to the pods.
func (m *Market) OpenAnywhere(key string) bool {
	for _, s := range m.Sellers {
		if s.Open[key] != nil {
			return true
		}
	}
	return false
}
