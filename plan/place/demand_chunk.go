package place

import (
	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
)

// DemandChunk is pods of one pod group to buy a place for, for one choice of domains. Pods that have to be on one node
// are one demand chunk, a bundle, and one piece of it.
type DemandChunk struct {
	// Request is what one piece takes.
	Request  []int64
	ports    []model.HostPort
	variants []market.Variant
	Allowed  market.Bitset
	// Content is the parts of the demand chunk. A demand chunk of single pods has one part.
	Content []part
	// bundle says that all of it goes onto one node.
	bundle bool
	// at has the chosen domains by label.
	at map[string]string
}

// part is pods of one pod group, with the group's shape when the demand chunk was made.
type part struct {
	it   *PodGroup
	as   *shape
	Pods []*model.Pod
}

// Left returns the number of pieces that have no place.
func (l *DemandChunk) Left() int {
	if l.bundle {
		return min(1, len(l.Content[0].Pods))
	}
	return len(l.Content[0].Pods)
}

// most returns the number of pieces that one machine takes for reasons other than room; zero if only room counts.
func (l *DemandChunk) most() int {
	if l.bundle {
		return 0
	}
	return l.Content[0].as.most
}

// ZonesOfChunk returns the zones that the demand chunk may use.
func (l *DemandChunk) ZonesOfChunk() uint64 { return ZonesOfVariants(l.variants) }

// allows returns how many of n pieces may join a planned node for reasons other than room.
func (l *DemandChunk) allows(b *PlannedNode, n int) int {
	if !l.bundle {
		p := &l.Content[0]
		return b.Devices.Holds(&p.it.Devices, b.Attach.Holds(&p.it.Volumes.Attach, p.as.Rules.HostAllows(b.Tally, n)))
	}
	room, free := b.Attach.Clone(), b.Devices
	for i := range l.Content {
		p := &l.Content[i]
		attach := &p.it.Volumes.Attach
		if p.as.Rules.HostAllows(b.Tally, len(p.Pods)) < len(p.Pods) || room.Holds(attach, len(p.Pods)) < len(p.Pods) {
			return 0
		}
		room.Put(attach, len(p.Pods))
		var held int
		if held, free = free.Place(&p.it.Devices, len(p.Pods)); held < len(p.Pods) {
			return 0
		}
	}
	return min(n, 1)
}

// draw takes n pieces for a planned node, and returns their pods.
func (l *DemandChunk) draw(b *PlannedNode, n int) []*model.Pod {
	var taken []*model.Pod
	for i := range l.Content {
		p := &l.Content[i]
		if l.bundle {
			n = len(p.Pods)
		}
		taken = append(taken, p.Pods[:n]...)
		p.Pods = p.Pods[n:]
		p.as.Rules.Count(b.Tally, n)
		b.Attach.Put(&p.it.Volumes.Attach, n)
		_, b.Devices = b.Devices.Place(&p.it.Devices, n)
	}
	if n > 0 {
		b.Devices = b.Devices.Commit()
	}
	return taken
}
