package market

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan/model"
)

// Column returns the values of a label that does not follow from the zone.
func (m *Market) Column(key string) *column {
	return m.columns.Of(key, func() *column { return newColumn(m, key) })
}

func newColumn(m *Market, key string) *column {
	c := &column{Ids: make([]int32, len(m.Machines))}
	ids := map[string]int32{}
	for i := range m.Machines {
		value, present := labelOf(m, &m.Machines[i], key)
		switch {
		case present:
			id, known := ids[value]
			if !known {
				id = int32(len(c.Values))
				ids[value] = id
				c.Values = append(c.Values, value)
			}
			c.Ids[i] = id
		case m.Sellers[m.Machines[i].Pool].Open[key] != nil:
			c.Ids[i] = OpenID
		default:
			c.Ids[i] = absentID
		}
	}
	return c
}

// labelOf is the value of a label on a machine's nodes, as far as it is known before it is bought.
func labelOf(m *Market, mach *Machine, key string) (value string, present bool) {
	if value, present = typeLabel(mach.Typ, key); present {
		return value, true
	}
	switch {
	case key == karpv1.CapacityTypeLabelKey:
		return CapacityTypes[mach.Capacity], true
	case key == corev1.LabelHostname:
		// Every node has one, which nobody can ask for before the node exists.
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

const (
	absentID int32 = -1
	// OpenID stands for a label whose value the pool leaves open.
	OpenID int32 = -2
)

// Admitted is the set of machines that meet a condition on a label which does not follow from the zone.
func (m *Market) Admitted(c *model.Condition) Bitset {
	return m.admitted.Of(c.ID(), func() Bitset { return admittedBy(m, c) })
}

func admittedBy(m *Market, c *model.Condition) Bitset {
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
	return set
}

// OpenAnywhere says whether some pool leaves the label to the pods.
func (m *Market) OpenAnywhere(key string) bool {
	return slices.ContainsFunc(m.Sellers, func(s *Seller) bool { return s.Open[key] != nil })
}
