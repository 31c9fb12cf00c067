package solve

import (
	"math"
	"math/bits"
)

// Problem is what is to be bought, and what can be bought. All resources are integers in units of the caller; every
// request and every room has the same dimensions.
type Problem struct {
	Demands  []Demand
	Machines []Machine
	// Budgets are what may be spent besides money, in the units of Machine.Takes, such as a limit or the capacity of a
	// reservation.
	Budgets []int64
	// Share is the number of pieces that one machine takes if no machine may carry too large a part of a batch; zero if
	// that does not matter.
	Share int
	// Batch is the number of pieces in the whole batch that the demands are part of; zero if they are all. The smaller
	// the part, the less a long search for a lower price is worth.
	Batch int
	// Follows says that pieces will be where they are planned. If not, ways to buy are compared by their final cost.
	Follows bool
	// Without is a strategy that is left out; empty means none.
	Without Strategy
	// Joins reports whether pieces of a demand with a Kind may join what is on a machine, for reasons that numbers do
	// not express.
	Joins func(machine int, content []Count, demand, way int) bool
	// Accepts reports whether a machine with this content may be bought at all. Nil accepts every machine.
	Accepts func(machine int, zones uint64, content []Count) bool
}

// Demand is a number of pieces that take the same room on the same machines.
type Demand struct {
	// Request is what one piece takes, by dimension.
	Request []int64
	// Pieces is the number of pieces. If Most limits them, Lots has how many of them are in each lot.
	Pieces int
	Lots   []int
	// Most is the number of pieces of one lot that one machine takes; zero if only room counts.
	Most int
	// Ways are the alternatives: a piece takes the first that its machine allows.
	Ways []Way
	// Kind is equal for demands that Problem.Joins does not distinguish. Joins is not asked about demands of Kind zero.
	Kind int
	// Share is the number of pieces that one machine takes if no machine may carry too large a part of a workload; zero
	// if that does not matter.
	Share int
}

// Way is an alternative for where a demand's pieces may be.
type Way struct {
	Machines Bitset
	// Zones are those the machine may be in, as a mask.
	Zones uint64
}

// Machine is something that can be bought any number of times, as far as the budgets allow.
type Machine struct {
	// Room is what is free on a new one, by dimension.
	Room []int64
	// Prices are by zone, in dollars per hour, including what a node costs besides its machine; infinite where it
	// cannot be bought.
	Prices []float64
	// Takes is what one takes out of the budgets.
	Takes []Take
}

// Take is an amount of a budget.
type Take struct {
	Budget int
	Amount int64
}

// Load is a machine to buy, and what goes onto it.
type Load struct {
	Machine int
	// Zones are those that the content allows.
	Zones   uint64
	Content []Count
	// Price is the price in the cheapest of the zones.
	Price float64
}

// Count is a number of pieces of one demand, by one of its ways.
type Count struct {
	Demand, Way, N int
	// lots are the lots that the pieces belong to, where that matters.
	lots []int32
}

// zones returns the zones in which a machine can be bought.
func (m *Machine) zones() uint64 {
	var zones uint64
	for z, price := range m.Prices {
		if !math.IsInf(price, 1) {
			zones |= 1 << z
		}
	}
	return zones
}

// priceIn returns the lowest price in some zones; infinite if the machine cannot be bought there.
func (m *Machine) priceIn(zones uint64) float64 {
	lowest := math.Inf(1)
	for zones &= 1<<len(m.Prices) - 1; zones != 0; zones &= zones - 1 {
		lowest = min(lowest, m.Prices[bits.TrailingZeros64(zones)])
	}
	return lowest
}

// load returns a machine with a content, in those of some zones in which it can be bought; nil if it may not be bought.
func (p *Problem) load(machine int, zones uint64, content []Count) *Load {
	mach := &p.Machines[machine]
	zones &= mach.zones()
	if len(content) == 0 || p.Accepts != nil && !p.Accepts(machine, zones, content) {
		return nil
	}
	return &Load{Machine: machine, Zones: zones, Content: content, Price: mach.priceIn(zones)}
}

// pieces returns the number of pieces in a load.
func (l *Load) pieces() int {
	n := 0
	for _, c := range l.Content {
		n += c.N
	}
	return n
}

// of returns the number of pieces of a demand in a load.
func (l *Load) of(demand int) int {
	n := 0
	for _, c := range l.Content {
		if c.Demand == demand {
			n += c.N
		}
	}
	return n
}

// Fits reports whether a request fits into what is free. Resources that are not requested may be overdrawn.
func Fits(request, free []int64) bool {
	for d, amount := range request {
		if amount > 0 && amount > free[d] {
			return false
		}
	}
	return true
}

// Times returns how often a request fits into what is free.
func Times(request, free []int64) int {
	count := int64(math.MaxInt32)
	for d, amount := range request {
		if amount <= 0 {
			continue
		}
		if free[d] < amount {
			return 0
		}
		if n := free[d] / amount; n < count {
			count = n
		}
	}
	return int(count)
}

// Subtract subtracts a request n times.
func Subtract(free, request []int64, n int) {
	for d, amount := range request {
		free[d] -= amount * int64(n)
	}
}
