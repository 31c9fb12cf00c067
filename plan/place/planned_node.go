package place

import (
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
	"github.com/tenon-sh/tenon/plan/solve"
)

// PlannedNode is a machine that is bought, and what goes onto it.
type PlannedNode struct {
	Machine int
	Zones   uint64
	content []portion
	// Used is what the content takes, free what it leaves.
	Used, Free []int64
	// Size is what the pool's limits were charged for it.
	Size  model.Resources
	ports []model.HostPort
	// custom are the content's conditions on labels its pool leaves open.
	custom model.Term
	// Tally counts the pods of the groups over hostnames, attach how many volumes the node can still attach.
	Tally  []int32
	Attach *rules.AttachmentRoom
}

// portion is a number of alike pieces in a planned node.
type portion struct {
	variant *market.Variant
	// request is what one piece takes.
	request []int64
	count   int
	pods    []*model.Pod
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

// Admits says how many of n pods the planned node takes for all reasons but room, and by which variant.
func (b *PlannedNode) Admits(m *market.Market, d *Demand, n int) (count, variant int) {
	if len(d.ports) > 0 {
		if market.PortsConflict(b.ports, d.ports) {
			return 0, 0
		}
		n = 1
	}
	for v := range d.variants {
		candidate := &d.variants[v]
		if !candidate.Machines.Has(b.Machine) || candidate.Zones&b.Zones == 0 {
			continue
		}
		if len(candidate.Custom) > 0 {
			s := m.Sellers[m.Machines[b.Machine].Pool]
			if _, ok := s.Settle(append(slices.Clone(b.custom), candidate.Custom...)); !ok {
				continue
			}
		}
		return n, v
	}
	return 0, 0
}

// account changes what the planned node takes in by n pieces of a demand, without placing them.
func (b *PlannedNode) account(d *Demand, v, n int) {
	solve.Subtract(b.Free, d.Request, n)
	solve.Subtract(b.Used, d.Request, -n)
	b.Zones &= d.variants[v].Zones
	b.custom = append(b.custom, d.variants[v].Custom...)
	b.ports = append(b.ports, d.ports...)
}

// add brings portions of one demand together.
func (b *PlannedNode) add(p portion) {
	i := slices.IndexFunc(b.content, func(other portion) bool { return other.variant == p.variant })
	if i < 0 {
		b.content = append(b.content, p)
		return
	}
	b.content[i].count += p.count
	b.content[i].pods = append(b.content[i].pods, p.pods...)
}
