package place

import (
	"encoding/binary"
	"strconv"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
)

// Demand is demand chunks that are alike to the market: they take the same room and accept the same machines. The buyer
// sees nothing finer; which pods go where is decided when the machines are bought.
type Demand struct {
	Request  []int64
	ports    []model.HostPort
	variants []market.Variant
	// stock are the machines that may be bought for it now.
	stock market.Bitset
	// most is the number of its pieces that one machine takes for reasons other than room; zero if only room counts.
	most int
	lots []*DemandChunk
}

// DemandsOf groups demand chunks that are alike into demands for what is offered, in the order of each demand's first
// chunk. It skips chunks that are bought for.
func DemandsOf(m *market.Market, chunks []*DemandChunk, offered market.Bitset) []*Demand {
	bounds := boundsOf(m.Dims, chunks)
	byKey := map[string]*Demand{}
	var demands []*Demand
	for _, l := range chunks {
		if l.Left() == 0 {
			continue
		}
		request, most := bounds.of(l)
		key := l.key(request, most)
		if l.bundle || len(l.ports) > 0 {
			key += strconv.Itoa(len(demands)) // equals no other
		}
		d := byKey[key]
		if d == nil {
			d = &Demand{Request: request, ports: l.ports, variants: l.variants, stock: l.Allowed.Clone(), most: most}
			d.stock.Intersect(offered)
			byKey[key], demands = d, append(demands, d)
		}
		d.lots = append(d.lots, l)
	}
	return demands
}

// key is equal for demand chunks that are alike to the market, given what one piece takes and how many pieces one
// machine takes.
func (l *DemandChunk) key(request []int64, most int) string {
	key := make([]byte, 0, 256)
	for _, amount := range request {
		key = binary.AppendVarint(key, amount)
	}
	key = binary.AppendVarint(key, int64(most))
	for i := range l.variants {
		v := &l.variants[i]
		key = binary.LittleEndian.AppendUint64(append(key, '|'), v.Zones)
		for _, word := range v.Machines {
			key = binary.LittleEndian.AppendUint64(key, word)
		}
		for j := range v.Custom {
			key = model.AppendString(key, v.Custom[j].ID())
		}
	}
	return string(key)
}

// Pieces returns the number of pieces that are left.
func (d *Demand) Pieces() int {
	n := 0
	for _, l := range d.lots {
		n += l.Left()
	}
	return n
}

// workload returns the number of pieces that the demand's largest workload has in the batch, or zero for a bundle.
func (d *Demand) workload() int {
	most := 0
	for _, l := range d.lots {
		if l.bundle {
			return 0
		}
		most = max(most, l.Content[0].it.workloads)
	}
	return most
}
