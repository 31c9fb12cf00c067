package place

import (
	"encoding/binary"
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
)

// Demand is demand chunks that are alike to the market: they take the same room and accept the same machines. A buyer
// knows nothing finer; which pods go where is decided when the machines are bought.
type Demand struct {
	Request  []int64
	ports    []model.HostPort
	variants []market.Variant
	// most is how many of its pieces one machine takes for reasons other than room; zero if room alone counts.
	most int
	lots []*DemandChunk
	// wanted is how many pieces there are when a buyer begins.
	wanted int
}

// stocked is a demand and the machines it may be bought now.
type stocked struct {
	*Demand
	stock market.Bitset
}

// Supplied is a demand chunk and the machines it may be bought now.
type Supplied struct {
	*DemandChunk
	Stock market.Bitset
	// Quota is how many pieces of it are to be bought now.
	Quota int
}

// DemandsOf brings alike demand chunks together. The order is that of the first demand chunk of each.
func DemandsOf(m *market.Market, chunks []Supplied) []stocked {
	bounds := boundaryOf(m, chunks)
	byKey := map[string]int{}
	var demands []stocked
	for _, l := range chunks {
		left := min(l.Left(), l.Quota)
		if left == 0 {
			continue
		}
		request, most := bounds.of(&l)
		key := string(l.key(request, most))
		i, known := byKey[key]
		if !known {
			i = len(demands)
			byKey[key] = i
			demands = append(demands, stocked{&Demand{Request: request, ports: l.ports, variants: slices.Clone(l.variants), most: most}, l.Stock})
		}
		demands[i].lots = append(demands[i].lots, l.DemandChunk)
		demands[i].wanted += left
	}
	return demands
}

// key is equal for demand chunks that are alike to the market. Demand chunks of equal size and bound are one demand;
// bundles and demand chunks with host ports are like no other.
func (l *DemandChunk) key(request []int64, most int) []byte {
	key := make([]byte, 0, 256)
	for _, amount := range request {
		key = binary.AppendVarint(key, amount)
	}
	key = binary.AppendVarint(key, int64(most))
	if l.bundle || len(l.ports) > 0 {
		key = binary.AppendVarint(append(key, '!'), int64(l.place))
	}
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
	return key
}

// Pieces is how many pieces are left.
func (d *Demand) Pieces() int {
	n := 0
	for _, l := range d.lots {
		n += l.Left()
	}
	return n
}

// allows says how many of n pieces may join a planned node for reasons other than room.
func (l *DemandChunk) allows(b *PlannedNode, n int) int {
	if !l.bundle {
		if b.Tally != nil {
			n = l.rules.HostAllows(b.Tally, n)
		}
		return b.Attach.Holds(l.attach, n)
	}
	room := b.Attach.Clone()
	for i := range l.Content {
		p := &l.Content[i]
		attach := &p.it.Volumes.Attach
		if p.as.Rules.HostAllows(b.Tally, len(p.Pods)) < len(p.Pods) || room.Holds(attach, len(p.Pods)) < len(p.Pods) {
			return 0
		}
		room.Put(attach, len(p.Pods))
	}
	return min(n, 1)
}

// draw takes n pieces for a planned node.
func (l *DemandChunk) draw(b *PlannedNode, n int) []*model.Pod {
	if !l.bundle {
		p := &l.Content[0]
		taken := p.Pods[:n:n]
		p.Pods = p.Pods[n:]
		if b.Tally != nil {
			l.rules.Count(b.Tally, n)
		}
		b.Attach.Put(l.attach, n)
		return taken
	}
	var taken []*model.Pod
	for i := range l.Content {
		p := &l.Content[i]
		p.as.Rules.Count(b.Tally, len(p.Pods))
		b.Attach.Put(&p.it.Volumes.Attach, len(p.Pods))
		taken = append(taken, p.Pods...)
		p.Pods = nil
	}
	return taken
}

// company is how much a demand chunk minds what else is on its node. Those that mind most are placed first: the emptier a
// node, the more of them it takes.
type company int

const (
	// MindsPods says that what else is on the node matters.
	MindsPods company = iota
	mindsZone
	// MindsNothing says that it does not.
	MindsNothing
)

func companyFor(m *market.Market, l *DemandChunk, variant int) company {
	switch {
	case l.bundle || l.rules.RuledByHost() || !l.attach.None():
		return MindsPods
	case m.AllZones&^l.variants[variant].Zones != 0:
		return mindsZone
	}
	return MindsNothing
}

// FillUp puts up to n pieces of the demand onto a planned node that has room for them, as far as the company they mind
// allows, and returns how many found their way.
func FillUp(m *market.Market, b *PlannedNode, d *Demand, variant, n int, minding company) int {
	var pods []*model.Pod
	done := 0
	for done < n {
		var chosen *DemandChunk
		most, allowed := 0, 0
		for _, l := range d.lots {
			left := l.Left()
			if left <= most || l.variants[variant].Zones&b.Zones == 0 || companyFor(m, l, variant) != minding {
				continue
			}
			if k := l.allows(b, min(left, n-done)); k > 0 {
				chosen, most, allowed = l, left, k
			}
		}
		if chosen == nil {
			break
		}
		pods = append(pods, chosen.draw(b, allowed)...)
		b.Zones &= chosen.variants[variant].Zones
		done += allowed
	}
	if done > 0 {
		b.account(d, variant, done)
		b.add(portion{variant: &d.variants[variant], request: d.Request, count: done, pods: pods})
	}
	return done
}
