package place

import (
	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
)

// DemandChunk is a number of a pod group's pods that are to be bought a place, for one choice of domains. Pods that have
// to be on one node are one demand chunk, a bundle, and one piece of it.
type DemandChunk struct {
	// Request is what one piece takes.
	Request  []int64
	ports    []model.HostPort
	variants []market.Variant
	Allowed  market.Bitset
	// Content is what the demand chunk is made of; a demand chunk of single pods has one part.
	Content []part
	// bundle says that all of it goes onto one node.
	bundle bool
	// at are the domains that were chosen, by label.
	at map[string]string
}

// part is pods of one pod group, as they were when the demand chunk was made.
type part struct {
	it   *PodGroup
	as   *shape
	Pods []*model.Pod
}

// Left is how many pieces have no place.
func (l *DemandChunk) Left() int {
	if l.bundle {
		return min(1, len(l.Content[0].Pods))
	}
	return len(l.Content[0].Pods)
}

// most is how many pieces one machine takes for reasons other than room; zero if room alone counts.
func (l *DemandChunk) most() int {
	if l.bundle {
		return 0
	}
	return l.Content[0].as.most
}

// ZonesOfChunk are those in which the demand chunk may be.
func (l *DemandChunk) ZonesOfChunk() uint64 { return ZonesOfVariants(l.variants) }

// allows says how many of n pieces may join a planned node for reasons other than room.
func (l *DemandChunk) allows(b *PlannedNode, n int) int {
	if !l.bundle {
		p := &l.Content[0]
		return b.Attach.Holds(&p.it.Volumes.Attach, p.as.Rules.HostAllows(b.Tally, n))
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
	}
	return taken
}
