package market

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan/devices"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
)

// Minimum is a NodePool's minValues for one label.
type Minimum struct {
	Key   string
	Count int
}

// The cheapest zone for a pod is not the one with the cheapest machine: that may be the only one of its kind, and too small
// to be of use. Instead, room has a price in each zone, for cores and for memory: the highest at which no machine's room is
// worth more than the machine costs, in the proportion in which the whole batch asks for cores and memory. A pod costs what
// its room costs, and more if the machines that it may use cost more than their room.

// zonePrices is what can be bought in one zone of one capacity type.
type zonePrices struct {
	// core and memory are the prices of a thousandth of a core and a byte, in US dollars per hour.
	core, memory float64
	// machines begin with those that cost least for their room.
	machines []pricedMachine
}

// zoneCapacity is a zone and a capacity type.
type zoneCapacity struct{ zone, capacity int }

// pricedMachine is a machine with what it costs in one zone.
type pricedMachine struct {
	index int
	// rate is the price of the machine for each dollar that its room is worth, at least 1.
	rate float64
}

// Allowance is what a NodePool's limit on one resource leaves for new nodes. Cpu is in thousandths.
type Allowance struct {
	Name  string
	Limit int64
	Left  int64
	// Remote says that the pods that wait are very unlikely to come near the limit.
	Remote bool
}

// CapacityTypes are ordered by preference.
var CapacityTypes = [...]string{karpv1.CapacityTypeReserved, karpv1.CapacityTypeSpot, karpv1.CapacityTypeOnDemand}

// Oddity says how unusual a machine is for the pods that might get it. Of the machines that would do, only the least odd
// may be launched.
type Oddity int

const (
	// Ordinary is a machine without any such oddity.
	Ordinary Oddity = iota
	// IdleDevices is a machine with devices that were not asked for.
	IdleDevices
	// BareMetal is a machine without a hypervisor.
	BareMetal
)

// Machine is something that can be bought: an instance type of a pool with one capacity type and, if that is reserved, one
// reservation. Where DaemonSets are bound to zones, a machine covers only zones in which the same DaemonSets run.
type Machine struct {
	Pool     int
	Typ      *cloud.InstanceType
	Capacity int // index of CapacityTypes
	// Reservation is the index of the capacity reservation it uses, or Unreserved.
	Reservation int
	// Zones are where it is available now, Offered where it is sold at all. A machine that is available nowhere is in the
	// market only so that this can be reported.
	Zones, Offered uint64
	// Where are the zones that this machine covers: in other zones, other DaemonSets run on its type.
	Where uint64
	// Prices are by zone, in US dollars per hour, and meaningless where it is not available now. Price is that of the
	// cheapest zone.
	Prices []float64
	Price  float64
	// Usable is what the DaemonSets leave for pods.
	Usable []int64
	// DaemonPorts are the host ports that DaemonSets occupy on it.
	DaemonPorts []model.HostPort
	// Claiming are the DaemonSets on it whose pods claim devices.
	Claiming []*model.DaemonSet
	// Size is the capacity that counts towards limits.
	Size model.Resources
	// Devices says that it has devices beyond what every machine has.
	Devices bool
	// odd is its oddity for pods that ask for no device, and for those that do.
	odd [2]Oddity
}

// Seller is one NodePool as the planner sees it.
type Seller struct {
	model.Pool
	Name string
	// Closed says why nothing at all can be bought; empty if something can.
	Closed string
	// ClosedForNow says that this ends without a change of the pool: it is paused, or not Ready.
	ClosedForNow bool
	// Unmatched says that it is closed because no instance type and offering meets its requirements.
	Unmatched bool
	// Labels are those its nodes have whatever is bought. Open are the labels the pool leaves to the pods: custom ones, the
	// tenancy, and the partition of a placement group.
	Labels map[string]string
	Open   map[string]model.Term
	// Required are those of Labels that follow from requirements with one value.
	Required map[string]string
	// First and Last bound the pool's machines: Market.Machines[First:Last].
	First, Last int
	// Budget is what limits leave, by resource.
	Budget []Allowance
	// Minimums are the pool's minValues.
	Minimums []Minimum
	// ofType are the pool's requirements that follow from an instance type.
	ofType model.Term
}

// Market is everything that can be bought in one Pack.
type Market struct {
	Now        time.Time
	Dims       *Dimensions
	Sellers    []*Seller
	Machines   []Machine
	Zones      []string
	ZoneLabels []map[string]string // what nodes in a zone have, by zone
	WellKnown  sets.Set[string]
	Keys       cloud.LabelKeys
	Policy     model.MinValuesPolicy
	// Nominates says that the kube-scheduler will follow the plan.
	Nominates bool
	// Tenanted says that some pods ask for a tenancy, so that the pools leave it to their pods.
	Tenanted bool
	// Without names a strategy that is left out.
	Without string
	// AllZones is the mask of all zones.
	AllZones uint64
	// Book knows what new nodes can attach, Hosts is the number of groups over hostnames.
	Book  *rules.VolumeIndex
	Hosts int
	// Devices knows what pods claim by dynamic resource allocation, and what nodes have of it; nil if no pod claims any.
	Devices     *devices.Index
	Unavailable map[cloud.OfferingKey]time.Time
	// Reservations are counted down as machines are planned for them.
	Reservations []reservation
	// Asks are the conditions on labels of machines that hold in all alternatives of a class.
	Asks Cache[*model.Class, model.Term]
	// Asked is the total request of all pods for which machines may be bought.
	Asked []int64
	// Batch is how many pods wait.
	Batch int
	// LimitMet says that a pool's limit kept a machine from being bought.
	LimitMet bool

	zonePrices Cache[zoneCapacity, *zonePrices]
	// admitted holds machines by the condition that they meet, fitting by the request that they have room for, available by
	// the zones in which they are available now, and own by their pool.
	admitted  Cache[string, Bitset]
	fitting   Cache[string, Bitset]
	available Cache[uint64, Bitset]
	own       Cache[*Seller, Bitset]
}

// Key is the key of the machine's offerings, without zone and reservation.
func (mach *Machine) Key() cloud.OfferingKey {
	return cloud.OfferingKey{InstanceType: mach.Typ.Name, CapacityType: CapacityTypes[mach.Capacity], PlacementGroup: mach.Typ.PlacementGroup}
}

// Oddity returns the machine's oddity for pods that ask for a device, or do not.
func (mach *Machine) Oddity(asked bool) Oddity { return mach.odd[model.Flag(asked)] }

// SellerOf is the pool that sells a machine.
func SellerOf(m *Market, index int) *Seller { return m.Sellers[m.Machines[index].Pool] }

// PriceIn is the machine's lowest price in some zones, which have to include one of its own.
func (m *Market) PriceIn(index int, zones uint64) float64 {
	mach := &m.Machines[index]
	if mach.Zones&^zones == 0 {
		return mach.Price
	}
	return mach.lowest(zones)
}

// lowest is the price of the cheapest of some zones; infinite if it is available in none of them.
func (mach *Machine) lowest(zones uint64) float64 {
	price := math.Inf(1)
	for z := range (Bitset{mach.Zones & zones}).All {
		price = min(price, mach.Prices[z])
	}
	return price
}

// A capacity reservation holds a number of machines of one type in one zone. They are paid for whether they are used or
// not, so they are bought before anything else, and counted: a plan never takes more of a reservation than it has room
// for, whichever pools the machines are bought for, and claims in flight that were made for it count as well.

// Unreserved is the index that stands for no reservation.
const Unreserved = -1

// reservation is what is known of a capacity reservation.
type reservation struct {
	id     string
	labels map[string]string
	// Left is how many of its machines are not planned for yet.
	Left int
}
