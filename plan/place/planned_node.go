package place

import (
	"slices"

	"github.com/tenon-sh/tenon/plan/devices"
	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
	"github.com/tenon-sh/tenon/plan/solve"
)

// PlannedNode is a machine that is bought, with what goes onto it.
type PlannedNode struct {
	Machine int
	Zones   uint64
	content []portion
	// used is what the content takes. Free is what it leaves.
	used, Free []int64
	// Size is charged to the pool's limits for it.
	Size  model.Resources
	ports []model.HostPort
	// custom are the content's conditions on labels that its pool leaves open.
	custom model.Term
	// Tally counts the pods of the groups over hostnames. Attach is how many volumes the node can still attach.
	Tally  []int32
	Attach *rules.AttachmentRoom
	// Devices are its free devices.
	Devices *devices.Room
}

// portion is pieces of a demand on a planned node, all placed by one variant.
type portion struct {
	demand  *Demand
	variant *market.Variant
	count   int
	pods    []*model.Pod
}

// NewPlannedNode returns a planned node with nothing on it.
func NewPlannedNode(m *market.Market, index int) *PlannedNode {
	mach := &m.Machines[index]
	return &PlannedNode{Machine: index, Zones: mach.Zones, Size: mach.Size, Free: slices.Clone(mach.Usable), used: make([]int64, len(mach.Usable)),
		Attach: m.Book.NewRoom(mach.Typ.Name), Devices: m.NewDevices(index), Tally: make([]int32, m.Hosts)}
}

// pods calls yield for every pod on the planned node.
func (b *PlannedNode) pods(yield func(*model.Pod) bool) {
	for i := range b.content {
		for _, pod := range b.content[i].pods {
			if !yield(pod) {
				return
			}
		}
	}
}

// Take puts onto the planned node as many pieces of a demand as fit, by the first variant that allows any.
func (b *PlannedNode) Take(m *market.Market, d *Demand) {
	n := solve.Times(d.Request, b.Free)
	if n == 0 || market.PortsConflict(b.ports, d.ports) {
		return
	}
	if n = min(n, d.Pieces()); len(d.ports) > 0 {
		n = min(n, 1)
	}
	for i := range d.variants {
		v := &d.variants[i]
		if !v.Machines.Has(b.Machine) || v.Zones&b.Zones == 0 {
			continue
		}
		if _, ok := m.Settle(market.SellerOf(m, b.Machine), slices.Concat(b.custom, v.Custom)); ok {
			b.add(d, i, n)
			return
		}
	}
}

// add puts up to n pieces of a demand onto the planned node, as far as the pods' rules allow. There has to be room for
// n.
func (b *PlannedNode) add(d *Demand, variant, n int) {
	v := &d.variants[variant]
	p := portion{demand: d, variant: v}
	for p.count < n && v.Zones&b.Zones != 0 {
		var chosen *DemandChunk
		most, allowed := 0, 0
		for _, l := range d.lots {
			left := l.Left()
			if left <= most {
				continue
			}
			if k := l.allows(b, min(left, n-p.count)); k > 0 {
				chosen, most, allowed = l, left, k
			}
		}
		if chosen == nil {
			break
		}
		p.pods, p.count = append(p.pods, chosen.draw(b, allowed)...), p.count+allowed
		b.Zones &= v.Zones
	}
	if p.count > 0 {
		solve.Subtract(b.Free, d.Request, p.count)
		solve.Subtract(b.used, d.Request, -p.count)
		b.content, b.custom, b.ports = append(b.content, p), append(b.custom, v.Custom...), append(b.ports, d.ports...)
	}
}
