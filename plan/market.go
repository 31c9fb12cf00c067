package plan

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// capacityTypes are ordered by preference.
var capacityTypes = [...]string{karpv1.CapacityTypeReserved, karpv1.CapacityTypeSpot, karpv1.CapacityTypeOnDemand}

// machine is an instance type of a pool with one capacity type, and of reserved ones with one reservation: something
// that can be bought. Where DaemonSets are bound to zones it is only that in zones where the same of them run.
type machine struct {
	pool     int
	typ      *cloud.InstanceType
	capacity int // index of capacityTypes
	// reservation is the place of the capacity reservation it draws on, or unreserved.
	reservation int
	// zones are where it can be had now, offered where it is sold at all. A machine that cannot be had anywhere is in the
	// market only to be able to say so.
	zones, offered uint64
	// where are the zones in which it is this machine: elsewhere other DaemonSets run on its type.
	where uint64
	// price is the cheapest zone's.
	price float64
	// usable is what pods have of it when the DaemonSets run.
	usable []int64
	// size is the capacity limits count.
	size Resources
	// devices says that it has devices beyond what every machine has.
	devices bool
}

// seller is one NodePool as the planner sees it.
type seller struct {
	Pool
	name string
	// closed says why nothing at all can be bought; empty if something can.
	closed string
	// labels are those its nodes have whatever is bought. open are the custom labels the pool leaves to the pods.
	labels map[string]string
	open   map[string]term
	// required are those of labels that follow from requirements with one value.
	required map[string]string
	// machines of the pool are market.machines[first:last].
	first, last int
	// budget is what limits leave, by resource.
	budget []allowance
	// minimums are the pool's minValues.
	minimums []minimum
}

// market is everything that can be bought in one Pack.
type market struct {
	now         time.Time
	dims        *dimensions
	sellers     []*seller
	machines    []machine
	zones       []string
	zoneLabels  []map[string]string // what nodes in a zone have, by zone
	zoneIndex   map[string]int
	zonePrice   []float64 // by machine and zone
	wellKnown   map[string]bool
	columns     map[string]*column
	sets        map[string]bitset
	daemonPorts map[int][]HostPort // by machine
	policy      MinValuesPolicy
	// nominates says that the kube-scheduler will follow the plan.
	nominates bool
	// allZones is the mask of all zones.
	allZones uint64
	// book knows what new nodes can attach, hosts is the number of groups over hostnames.
	book        *volumeBook
	hosts       int
	unavailable map[cloud.OfferingKey]time.Time
	// reservations are counted down as machines are planned for them.
	reservations     []reservation
	reservationIndex map[string]int
	// passages are what is known of the machines that barriers let pass.
	passages map[passage]bitset
	// fits are the machines with room for a request, by the request; sold those that can be had now, by zones; odd those of
	// one oddity, for those who ask for a device and those who do not.
	fits map[string]bitset
	sold map[uint64]bitset
	odd  [2 * oddities]bitset
	// asks are what classes ask of machines in any case.
	asks map[*Class]term
	// asked is what all pods that may be bought for ask for together, and districts are what is known of zones.
	asked     []int64
	districts map[[2]int]*district
	// capacities are the machines by capacity type.
	capacities [len(capacityTypes)]bitset
	// batch is how many pods wait.
	batch int
	// limitMet says that a pool's limit kept a machine from being bought.
	limitMet bool
}

func newMarket(in *Input, dims *dimensions) *market {
	m := &market{
		now: in.Snapshot.Time, dims: dims, zoneIndex: map[string]int{}, wellKnown: map[string]bool{},
		columns: map[string]*column{}, sets: map[string]bitset{}, daemonPorts: map[int][]HostPort{}, policy: in.MinValues, nominates: in.Nominates,
		unavailable: in.Unavailable, passages: map[passage]bitset{}, fits: map[string]bitset{}, asks: map[*Class]term{}, sold: map[uint64]bitset{}, asked: make([]int64, dims.count()), districts: map[[2]int]*district{},
	}
	for key := range karpv1.WellKnownLabels() {
		m.wellKnown[key] = true
	}
	pools := slices.Clone(in.Pools)
	slices.SortFunc(pools, func(a, b Pool) int {
		return cmp.Or(-cmp.Compare(weight(a.NodePool), weight(b.NodePool)), cmp.Compare(a.NodePool.Name, b.NodePool.Name))
	})
	m.numberZones(pools)
	m.countReservations(in)
	for i := range pools {
		m.sellers = append(m.sellers, m.open(in, pools[i], i))
	}
	m.runDaemons(in.Snapshot.DaemonSets)
	pods, demand := demandOf(in.Snapshot, m.machines)
	for _, s := range m.sellers {
		s.budget = budgetOf(s, in.Snapshot)
		s.tellRemote(m.machines, pods, demand)
		s.minimums = minimumsOf(s.NodePool)
	}
	return m
}

func weight(pool *karpv1.NodePool) int32 { return valueOr(pool.Spec.Weight, 0) }

// open lists what a pool sells.
func (m *market) open(in *Input, pool Pool, index int) *seller {
	s := &seller{Pool: pool, name: pool.NodePool.Name, first: len(m.machines), last: len(m.machines)}
	s.closed = closedBecause(pool)
	requirements := conditionsOf(pool.NodePool.Spec.Template.Spec.Requirements)
	m.label(s, requirements)
	if s.closed != "" {
		return s
	}
	var ofType, ofZone, ofOffering term
	for _, c := range requirements {
		switch {
		case c.key == karpv1.CapacityTypeLabelKey || ofReservation(c.key):
			ofOffering = append(ofOffering, c)
		case m.zonal(c.key):
			ofZone = append(ofZone, c)
		case m.wellKnown[c.key] && c.key != karpv1.NodePoolLabelKey:
			ofType = append(ofType, c)
		}
	}
	zones := m.zoneMask(ofZone)
	for _, typ := range pool.Types {
		if !ofType.admitsType(typ, s.labels) {
			continue
		}
		for c, name := range capacityTypes {
			if name != karpv1.CapacityTypeReserved && ofOffering.admits(map[string]string{karpv1.CapacityTypeLabelKey: name}) {
				m.sell(in, index, typ, machine{capacity: c, reservation: unreserved}, zones)
			}
		}
		for _, r := range m.reservationsOf(typ) {
			if ofOffering.admits(m.reservations[r].labels) {
				m.sell(in, index, typ, machine{capacity: 0, reservation: r}, zones)
			}
		}
	}
	s.last = len(m.machines)
	if s.first == s.last {
		s.closed = "no instance type and offering meets the pool's requirements"
	}
	return s
}

// admitsType says whether an instance type, with the labels of its pool, meets the term.
func (t term) admitsType(typ *cloud.InstanceType, pool map[string]string) bool {
	for i := range t {
		value, present := typ.Labels[t[i].key]
		if !present && t[i].key == corev1.LabelInstanceTypeStable {
			value, present = typ.Name, true
		}
		if !present {
			value, present = pool[t[i].key]
		}
		if !t[i].admits(value, present) {
			return false
		}
	}
	return true
}

func closedBecause(pool Pool) string {
	np := pool.NodePool
	switch {
	case np.DeletionTimestamp != nil:
		return "it is being deleted"
	case np.Spec.Replicas != nil:
		return "it is static: its size does not follow the pods"
	case pool.Problem != "":
		return pool.Problem
	}
	ready := np.Condition(karpv1.ConditionTypeReady)
	if ready == nil {
		return "it is not Ready yet"
	}
	if ready.Status != "True" {
		if ready.Message != "" {
			return "it is not Ready: " + ready.Message
		}
		return "it is not Ready: " + ready.Reason
	}
	return ""
}

// label works out the labels of a pool's nodes that do not depend on what is bought.
func (m *market) label(s *seller, requirements term) {
	template := &s.NodePool.Spec.Template
	s.labels = map[string]string{}
	maps.Copy(s.labels, template.Labels)
	s.labels[karpv1.NodePoolLabelKey] = s.name
	if ref := template.Spec.NodeClassRef; ref != nil {
		s.labels[karpv1.NodeClassLabelKey(ref.GroupKind())] = ref.Name
	}
	s.open = map[string]term{}
	for _, c := range requirements {
		if _, fixed := s.labels[c.key]; !fixed && !m.wellKnown[c.key] {
			s.open[c.key] = append(s.open[c.key], c)
		}
	}
	for key, conditions := range s.open {
		if value, present, single := conditions.only(); single {
			delete(s.open, key)
			if present {
				s.labels[key] = value
				if s.required == nil {
					s.required = map[string]string{}
				}
				s.required[key] = value
			}
		}
	}
}

// sell adds one machine, of which the capacity type and the reservation are given, where it has an offering to be bought
// now.
func (m *market) sell(in *Input, pool int, typ *cloud.InstanceType, mach machine, zones uint64) {
	key := cloud.OfferingKey{InstanceType: typ.Name, CapacityType: capacityTypes[mach.capacity]}
	if mach.reservation != unreserved {
		key.ReservationID = m.reservations[mach.reservation].id()
	}
	mach.pool, mach.typ, mach.price, mach.size, mach.where = pool, typ, math.Inf(1), ResourcesOf(typ.Capacity), everywhere
	prices := make([]float64, len(m.zones))
	for i := range typ.Offerings {
		offering := &typ.Offerings[i]
		zone, known := m.zoneIndex[offering.Zone]
		if !known || offering.CapacityType != key.CapacityType || offering.ReservationID != key.ReservationID ||
			zones&(1<<zone) == 0 || offering.Price <= 0 {
			continue
		}
		mach.offered |= 1 << zone
		key.Zone = offering.Zone
		if !offering.Available {
			continue
		}
		if until, refused := in.Unavailable[key]; refused && m.now.Before(until) {
			continue
		}
		mach.zones |= 1 << zone
		prices[zone] = offering.Price
		mach.price = min(mach.price, offering.Price)
	}
	if mach.offered == 0 {
		return
	}
	allocatable := ResourcesOf(typ.Allocatable)
	mach.usable = m.dims.machine(allocatable)
	mach.devices = slices.ContainsFunc(allocatable.Extended, func(a Amount) bool { return isDevice(a.Name) })
	m.machines = append(m.machines, mach)
	m.zonePrice = append(m.zonePrice, prices...)
}

// key names the machine's offerings but for the zone and the reservation.
func (mach *machine) key() cloud.OfferingKey {
	return cloud.OfferingKey{InstanceType: mach.typ.Name, CapacityType: capacityTypes[mach.capacity]}
}

// priceIn is the machine's lowest price in some zones, which have to include one of its own.
func (m *market) priceIn(index int, zones uint64) float64 {
	mach := &m.machines[index]
	if mach.zones&^zones == 0 {
		return mach.price
	}
	lowest := math.Inf(1)
	for z := range m.zones {
		if mach.zones&zones&(1<<z) != 0 {
			lowest = min(lowest, m.zonePrice[index*len(m.zones)+z])
		}
	}
	return lowest
}

// nodePriceIn is priceIn with what a node costs beside its machine.
func (m *market) nodePriceIn(index int, zones uint64) float64 {
	return m.priceIn(index, zones) + m.sellers[m.machines[index].pool].NodePrice
}
