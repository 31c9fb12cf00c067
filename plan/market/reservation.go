package market

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan/model"
)

// countReservations determines what is left of every reservation that some pool can use, ordered by id.
func countReservations(m *Market, in *model.Input) {
	known := map[string]*reservation{}
	for _, pool := range in.Pools {
		for _, typ := range pool.Types {
			for i := range typ.Offerings {
				countReservation(m.Keys, known, typ, &typ.Offerings[i])
			}
		}
	}
	for _, id := range model.SortedKeys(known) {
		m.Reservations = append(m.Reservations, *known[id])
	}
	for _, n := range in.Snapshot.Nodes {
		if n.Claim != "" && n.Unsettled() {
			setAside(m, n.Requirements)
		}
	}
}

func countReservation(keys cloud.LabelKeys, known map[string]*reservation, typ *cloud.InstanceType, o *cloud.Offering) {
	if o.ReservationID == "" || o.CapacityType != karpv1.CapacityTypeReserved {
		return
	}
	if r := known[o.ReservationID]; r != nil {
		// The numbers of pools may be of different times; the lower one cannot promise too much.
		r.Left = min(r.Left, o.ReservationCapacity)
		return
	}
	labels := reservationLabels(keys, o)
	labels[corev1.LabelInstanceTypeStable], labels[corev1.LabelTopologyZone] = typ.Name, o.Zone
	labels[karpv1.CapacityTypeLabelKey] = karpv1.CapacityTypeReserved
	known[o.ReservationID] = &reservation{id: o.ReservationID, labels: labels, Left: o.ReservationCapacity}
}

// setAside subtracts one machine from each reservation that a claim may be launched into, as far as is known, if the claim
// can be launched into nothing else.
func setAside(m *Market, conditions model.Term) {
	if !slices.ContainsFunc(conditions, func(c model.Condition) bool {
		return c.Key == karpv1.CapacityTypeLabelKey && !c.Admits(karpv1.CapacityTypeSpot, true) && !c.Admits(karpv1.CapacityTypeOnDemand, true)
	}) {
		return
	}
	for r := range m.Reservations {
		if !slices.ContainsFunc(conditions, func(c model.Condition) bool {
			value, known := m.Reservations[r].labels[c.Key]
			return known && !c.Admits(value, true)
		}) {
			m.Reservations[r].Left--
		}
	}
}

// ReservedBy is the id of the reservation that a machine uses; empty if there is none.
func (m *Market) ReservedBy(index int) string {
	if r := m.Machines[index].Reservation; r != Unreserved {
		return m.Reservations[r].id
	}
	return ""
}

// Affordable says how many of a machine its pool's limits and its reservation allow, if each is charged with this size.
func (m *Market) Affordable(index int, size model.Resources) int {
	mach := &m.Machines[index]
	n := m.Sellers[mach.Pool].Affordable(size)
	m.LimitMet = m.LimitMet || n == 0
	if mach.Reservation == Unreserved {
		return n
	}
	return min(n, max(0, m.Reservations[mach.Reservation].Left))
}

// Spend charges n of a machine to its pool's limits and its reservation.
func (m *Market) Spend(index int, size model.Resources, n int) {
	mach := &m.Machines[index]
	m.Sellers[mach.Pool].spend(size, n)
	if mach.Reservation != Unreserved {
		m.Reservations[mach.Reservation].Left -= n
	}
}

// Keep saves what limits and reservations leave. The returned function restores it.
func (m *Market) Keep() (restore func()) {
	budgets, reservations := make([][]Allowance, len(m.Sellers)), slices.Clone(m.Reservations)
	for i, s := range m.Sellers {
		budgets[i] = slices.Clone(s.Budget)
	}
	restoreDevices := m.Devices.Keep()
	return func() {
		restoreDevices()
		copy(m.Reservations, reservations)
		for i, s := range m.Sellers {
			copy(s.Budget, budgets[i])
		}
	}
}

// WithoutUsedUp removes the machines of reservations that have nothing left.
func WithoutUsedUp(m *Market, stock Bitset) {
	stock.DeleteFunc(func(i int) bool {
		r := m.Machines[i].Reservation
		return r != Unreserved && m.Reservations[r].Left <= 0
	})
}

// Tightens says that a machine of size a uses up more than one of size b of some limit of the pool that is not remote.
func (m *Market) Tightens(pool int, a, b model.Resources) bool {
	return slices.ContainsFunc(m.Sellers[pool].Budget, func(limit Allowance) bool {
		return !limit.Remote && CountOf(limit.Name, a) > CountOf(limit.Name, b)
	})
}
