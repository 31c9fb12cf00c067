package plan

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// A capacity reservation holds a number of machines of one type in one zone. They are paid for whether they are used or
// not, so they are bought before anything else, and counted: a plan never takes more of a reservation than it has room
// for, whichever pools the machines are bought for, and claims in flight that were made for it count as well.

// reservation is what is known of a capacity reservation.
type reservation struct {
	labels map[string]string
	// left is how many machines of it nobody has planned for.
	left int
}

// unreserved is the place of a machine that draws on no reservation.
const unreserved = -1

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

// ofReservation says whether a label is one of those.
func ofReservation(key string) bool {
	switch key {
	case awsv1.LabelCapacityReservationID, awsv1.LabelCapacityReservationType, awsv1.LabelCapacityReservationInterruptible:
		return true
	}
	return false
}

// countReservations finds out what is left of every reservation that some pool can use.
func (m *market) countReservations(in *Input) {
	m.reservationIndex = map[string]int{}
	for _, pool := range in.Pools {
		for _, typ := range pool.Types {
			for i := range typ.Offerings {
				m.countReservation(typ, &typ.Offerings[i])
			}
		}
	}
	if len(m.reservations) == 0 {
		return
	}
	for _, n := range in.Snapshot.Nodes {
		if n.Claim != "" && !n.Launched && n.Name == "" {
			m.setAside(claimConditions(n))
		}
	}
}

func (m *market) countReservation(typ *cloud.InstanceType, o *cloud.Offering) {
	if o.ReservationID == "" || o.CapacityType != karpv1.CapacityTypeReserved {
		return
	}
	if i, known := m.reservationIndex[o.ReservationID]; known {
		// Pools may have looked at different times; the lower number cannot promise too much.
		m.reservations[i].left = min(m.reservations[i].left, o.ReservationCapacity)
		return
	}
	labels := reservationLabels(o)
	labels[corev1.LabelInstanceTypeStable], labels[corev1.LabelTopologyZone] = typ.Name, o.Zone
	labels[karpv1.CapacityTypeLabelKey] = karpv1.CapacityTypeReserved
	m.reservationIndex[o.ReservationID] = len(m.reservations)
	m.reservations = append(m.reservations, reservation{labels: labels, left: o.ReservationCapacity})
}

// setAside takes one machine out of each reservation that a claim may be launched into, if it can be launched into
// nothing else.
func (m *market) setAside(conditions term) {
	insists := false
	for i := range conditions {
		c := &conditions[i]
		if c.key == karpv1.CapacityTypeLabelKey {
			insists = c.admits(karpv1.CapacityTypeReserved, true) &&
				!c.admits(karpv1.CapacityTypeSpot, true) && !c.admits(karpv1.CapacityTypeOnDemand, true)
		}
	}
	if !insists {
		return
	}
	for r := range m.reservations {
		suits := true
		for i := range conditions {
			value, known := m.reservations[r].labels[conditions[i].key]
			suits = suits && (!known || conditions[i].admits(value, true))
		}
		if suits {
			m.reservations[r].left--
		}
	}
}

// reservationsOf are the places of the reservations an instance type can be launched into, in the order of their ids.
func (m *market) reservationsOf(typ *cloud.InstanceType) []int {
	ids := map[string]int{}
	for i := range typ.Offerings {
		if r, known := m.reservationIndex[typ.Offerings[i].ReservationID]; known {
			ids[typ.Offerings[i].ReservationID] = r
		}
	}
	var places []int
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		places = append(places, ids[id])
	}
	return places
}

// id is the reservation's name.
func (r *reservation) id() string { return r.labels[awsv1.LabelCapacityReservationID] }

// reservedBy is the name of the reservation a machine draws on; empty if there is none.
func (m *market) reservedBy(index int) string {
	if r := m.machines[index].reservation; r != unreserved {
		return m.reservations[r].id()
	}
	return ""
}

// affordable says how many of a machine its pool's limits and its reservation allow when each is charged with a size.
func (m *market) affordable(index int, size Resources) int {
	mach := &m.machines[index]
	n := m.sellers[mach.pool].affordable(size)
	m.limitMet = m.limitMet || n == 0
	if mach.reservation == unreserved {
		return n
	}
	return min(n, max(0, m.reservations[mach.reservation].left))
}

// spend takes n of a machine out of its pool's limits and its reservation.
func (m *market) spend(index int, size Resources, n int) {
	mach := &m.machines[index]
	m.sellers[mach.pool].spend(size, n)
	if mach.reservation != unreserved {
		m.reservations[mach.reservation].left -= n
	}
}

// purse is what limits and reservations leave at one moment.
type purse struct {
	budgets      [][]allowance
	reservations []reservation
}

func (m *market) purse() purse {
	p := purse{reservations: slices.Clone(m.reservations)}
	for _, s := range m.sellers {
		p.budgets = append(p.budgets, slices.Clone(s.budget))
	}
	return p
}

// restore makes undone what was spent since the purse was taken.
func (m *market) restore(p purse) {
	copy(m.reservations, p.reservations)
	for i, s := range m.sellers {
		copy(s.budget, p.budgets[i])
	}
}

// withoutUsedUp removes the machines of reservations that have nothing left.
func (m *market) withoutUsedUp(stock bitset) {
	if len(m.reservations) == 0 {
		return
	}
	for i := range stock.all {
		if r := m.machines[i].reservation; r != unreserved && m.reservations[r].left <= 0 {
			stock.clear(i)
		}
	}
}

// insistent are the lots that can be had in reservations only: they go before those that can do without.
func (m *market) insistent(stock []supplied, offered bitset) []supplied {
	var only []supplied
	for _, l := range stock {
		flexible := false
		for i := range l.allowed.all {
			flexible = flexible || offered.has(i) && m.machines[i].reservation == unreserved
		}
		if !flexible {
			only = append(only, l)
		}
	}
	return only
}

// limited says that a machine may be had only so many times for reasons that do not concern its like.
func (m *market) limited(index int) bool { return m.machines[index].reservation != unreserved }

// tightens says that one machine uses up more of some limit of its pool that is not remote than another does.
func (m *market) tightens(pool int, a, b Resources) bool {
	for _, limit := range m.sellers[pool].budget {
		if !limit.remote && countOf(limit.name, a) > countOf(limit.name, b) {
			return true
		}
	}
	return false
}
