package market

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan/model"
)

// NewMarket returns the market for an input. dims are the resources that its pods ask for, and tenanted says that some of
// them ask for a tenancy.
func NewMarket(in *model.Input, dims *Dimensions, tenanted bool) *Market {
	m := &Market{
		Now: in.Snapshot.Time, Dims: dims, Tenanted: tenanted, WellKnown: wellKnown(in.Snapshot.LabelKeys), Keys: in.Snapshot.LabelKeys, Policy: in.MinValues,
		Nominates: in.Nominates, Without: in.Without, Unavailable: in.Unavailable, Asked: make([]int64, dims.Count()),
	}
	pools := slices.Clone(in.Pools)
	slices.SortFunc(pools, func(a, b model.Pool) int {
		return cmp.Or(-cmp.Compare(Weight(a.NodePool), Weight(b.NodePool)), cmp.Compare(a.NodePool.Name, b.NodePool.Name))
	})
	numberZones(m, pools)
	countReservations(m, in)
	for i := range pools {
		m.Sellers = append(m.Sellers, addPool(m, in, pools[i], i))
	}
	runDaemons(m, in.Snapshot.DaemonSets)
	for _, s := range m.Sellers {
		s.Budget = budgetOf(s, in.Snapshot)
		s.Minimums = minimumsOf(s.NodePool.Spec.Template.Spec.Requirements)
	}
	return m
}

// Weight is a NodePool's weight, zero if it has none.
func Weight(pool *karpv1.NodePool) int32 { return ptr.Deref(pool.Spec.Weight, 0) }

// addPool lists what a pool sells.
func addPool(m *Market, in *model.Input, pool model.Pool, index int) *Seller {
	s := &Seller{Pool: pool, Name: pool.NodePool.Name, First: len(m.Machines), Last: len(m.Machines)}
	s.Closed = ClosedBecause(pool)
	if stop := in.Snapshot.Stopped(karpv1.PauseProvisioning, pool.NodePool); stop != nil {
		s.Closed = stop.String()
	}
	s.ClosedForNow = s.Closed != "" && pool.NodePool.DeletionTimestamp == nil && pool.NodePool.Spec.Replicas == nil
	requirements := model.ConditionsOf(pool.NodePool.Spec.Template.Spec.Requirements)
	labelPool(m, s, requirements)
	if s.Closed != "" {
		return s
	}
	var ofZone, ofOffering model.Term
	for _, c := range requirements {
		switch {
		case c.Key == karpv1.CapacityTypeLabelKey || m.Keys.OfReservation(c.Key):
			ofOffering = append(ofOffering, c)
		case m.Zonal(c.Key):
			ofZone = append(ofZone, c)
		case s.Open[c.Key] != nil:
		case m.WellKnown.Has(c.Key) && c.Key != karpv1.NodePoolLabelKey:
			s.ofType = append(s.ofType, c)
		}
	}
	zones, some := m.ZoneMask(ofZone), false
	for _, typ := range pool.Types {
		if !admitsType(m.Keys, s.ofType, typ, s.Labels) {
			continue
		}
		some = true
		for c, name := range CapacityTypes {
			if name != karpv1.CapacityTypeReserved && ofOffering.Admits(map[string]string{karpv1.CapacityTypeLabelKey: name}) {
				addMachine(m, in, index, typ, Machine{Capacity: c, Reservation: Unreserved}, zones)
			}
		}
		for r := range m.Reservations {
			if labels := m.Reservations[r].labels; labels[corev1.LabelInstanceTypeStable] == typ.Name && ofOffering.Admits(labels) {
				addMachine(m, in, index, typ, Machine{Capacity: 0, Reservation: r}, zones)
			}
		}
	}
	s.Last = len(m.Machines)
	if s.Unmatched = s.First == s.Last; s.Unmatched {
		s.Closed = "no instance type and offering meets the pool's requirements"
		if !some {
			s.Closed += s.Excluding(m, nil, "")
		}
	}
	return s
}

// ClosedBecause says why nothing can be bought for a pool; empty if something can.
func ClosedBecause(pool model.Pool) string {
	np := pool.NodePool
	ready := np.Condition(karpv1.ConditionTypeReady)
	switch {
	case np.DeletionTimestamp != nil:
		return "it is being deleted"
	case np.Spec.Replicas != nil:
		return "it is static: its size does not follow the pods"
	case pool.Problem != "":
		return pool.Problem
	case ready == nil:
		return "it is not Ready yet"
	case ready.Status != metav1.ConditionTrue:
		return "it is not Ready: " + cmp.Or(ready.Message, ready.Reason)
	}
	return ""
}

// labelPool determines the labels of a pool's nodes that do not depend on what is bought.
func labelPool(m *Market, s *Seller, requirements model.Term) {
	s.Labels = templateLabels(s.NodePool)
	s.Open = map[string]model.Term{}
	for _, c := range requirements {
		if _, fixed := s.Labels[c.Key]; !fixed && !m.WellKnown.Has(c.Key) {
			s.Open[c.Key] = append(s.Open[c.Key], c)
		}
	}
	labelTenancy(m, s, requirements)
	labelPartition(m, s, requirements)
	for key, conditions := range s.Open {
		if value, present, single := conditions.Only(); single {
			delete(s.Open, key)
			if present {
				s.Labels[key] = value
				if s.Required == nil {
					s.Required = map[string]string{}
				}
				s.Required[key] = value
			}
		}
	}
}

// labelTenancy leaves the tenancy to the pods if any of them ask for one. Otherwise the pool's machines get the preferred
// tenancy that the pool allows. If it allows none, no machine meets its requirements.
func labelTenancy(m *Market, s *Seller, requirements model.Term) {
	key := m.Keys.Tenancy
	tenancy, ok := requirements.Tenancy(m.Keys)
	if _, fixed := s.Labels[key]; fixed || !ok || key == "" {
		return
	}
	if !m.Tenanted {
		s.Labels[key] = tenancy
		return
	}
	open := model.Term{model.NewCondition(key, corev1.NodeSelectorOpIn, model.Tenancies())}
	for _, c := range requirements {
		if c.Key == key {
			open = append(open, c)
		}
	}
	s.Open[key] = open
}

// labelPartition leaves the partition of the placement group to the pods, within what the pool requires. If that is none of the
// group's partitions, no machine meets the requirements.
func labelPartition(m *Market, s *Seller, requirements model.Term) {
	key := m.Keys.Partition
	partitions, required := model.PartitionsOf(s.Types), requirements.About(key)
	if _, fixed := s.Labels[key]; fixed || key == "" || !slices.ContainsFunc(partitions, func(p string) bool { return required.AllAdmit(p, true) }) {
		return
	}
	s.Open[key] = append(required,
		model.NewCondition(key, corev1.NodeSelectorOpIn, partitions))
}

// addMachine adds one machine with the given capacity type and reservation, if it is offered in any of the zones.
func addMachine(m *Market, in *model.Input, pool int, typ *cloud.InstanceType, mach Machine, zones uint64) {
	key := cloud.OfferingKey{InstanceType: typ.Name, CapacityType: CapacityTypes[mach.Capacity]}
	if mach.Reservation != Unreserved {
		key.ReservationID = m.Reservations[mach.Reservation].id
	}
	mach.Pool, mach.Typ, mach.Size, mach.Where = pool, typ, model.ResourcesOf(typ.Capacity), Everywhere
	mach.Prices = make([]float64, len(m.Zones))
	for i := range typ.Offerings {
		offering := &typ.Offerings[i]
		zone := slices.Index(m.Zones, offering.Zone)
		if zone < 0 || offering.CapacityType != key.CapacityType || offering.ReservationID != key.ReservationID || zones&(1<<zone) == 0 || offering.Price <= 0 {
			continue
		}
		mach.Offered |= 1 << zone
		if availableNow(offering, typ, in.Unavailable, m.Now) {
			mach.Zones |= 1 << zone
			mach.Prices[zone] = offering.Price
		}
	}
	if mach.Offered == 0 {
		return
	}
	mach.Price = mach.lowest(Everywhere)
	allocatable := model.ResourcesOf(typ.Allocatable)
	mach.Usable = m.Dims.Vector(allocatable)
	for i := range m.Dims.Caps {
		mach.Usable[m.Dims.Cap(i)] = int64(m.Dims.Caps[i].Most)
	}
	mach.Devices = allocatable.HasDevice()
	mach.odd = [...]Oddity{OddityOf(typ, mach.Devices, false), OddityOf(typ, mach.Devices, true)}
	m.Machines = append(m.Machines, mach)
}

// availableNow says that an offering can be bought now, as far as is known.
func availableNow(o *cloud.Offering, typ *cloud.InstanceType, unavailable map[cloud.OfferingKey]time.Time, now time.Time) bool {
	key := o.Key(typ)
	return o.Available && o.Price > 0 && !now.Before(unavailable[key]) && !now.Before(unavailable[key.Ungrouped()])
}
