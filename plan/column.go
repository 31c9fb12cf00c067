package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// column is one label of every machine.
type column struct {
	values []string
	// ids are indexes of values by machine, or absent or open.
	ids []int32
}

// column returns the values of a label that does not follow from the zone.
func (m *market) column(key string) *column {
	if c, ok := m.columns[key]; ok {
		return c
	}
	c := &column{ids: make([]int32, len(m.machines))}
	ids := map[string]int32{}
	for i := range m.machines {
		mach := &m.machines[i]
		s := m.sellers[mach.pool]
		value, present := mach.typ.Labels[key]
		switch {
		case present:
		case key == karpv1.CapacityTypeLabelKey:
			value, present = capacityTypes[mach.capacity], true
		case key == corev1.LabelInstanceTypeStable:
			value, present = mach.typ.Name, true
		case key == corev1.LabelHostname:
			// Every node has one, which nobody can ask for before the node exists.
			value, present = "\x00", true
		case key == karpv1.NodeRegisteredLabelKey || key == karpv1.NodeInitializedLabelKey:
			value, present = "true", true
		case ofReservation(key):
			if mach.reservation != unreserved {
				value, present = m.reservations[mach.reservation].labels[key], true
			}
		default:
			if value, present = s.labels[key]; !present && s.open[key] != nil {
				c.ids[i] = openID
				continue
			}
		}
		if !present {
			c.ids[i] = absentID
			continue
		}
		id, known := ids[value]
		if !known {
			id = int32(len(c.values))
			ids[value] = id
			c.values = append(c.values, value)
		}
		c.ids[i] = id
	}
	m.columns[key] = c
	return c
}

const (
	absentID int32 = -1
	openID   int32 = -2
)

// admitted is the set of machines that meet a condition on a label which does not follow from the zone.
func (m *market) admitted(c *condition) bitset {
	id := c.id()
	if set, ok := m.sets[id]; ok {
		return set
	}
	col := m.column(c.key)
	verdicts := make([]bool, len(col.values))
	for i, value := range col.values {
		verdicts[i] = c.admits(value, true)
	}
	absent := c.admits("", false)
	set := newBitset(len(m.machines))
	for i, value := range col.ids {
		admits := absent
		switch {
		case value >= 0:
			admits = verdicts[value]
		case value == openID:
			_, _, admits = append(slices.Clone(m.sellers[m.machines[i].pool].open[c.key]), *c).resolve()
		}
		if admits {
			set.set(i)
		}
	}
	m.sets[id] = set
	return set
}

// openAnywhere says whether some pool leaves the label to the pods.
func (m *market) openAnywhere(key string) bool {
	for _, s := range m.sellers {
		if s.open[key] != nil {
			return true
		}
	}
	return false
}
