package place

import (
	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
)

// DemandChunk is a number of a pod group's pods that are to be bought a place, for one choice of domains. Pods that have
// to be on one node are one demand chunk, a bundle, and one piece of it.
type DemandChunk struct {
	class    *model.Class
	Request  []int64
	ports    []model.HostPort
	variants []market.Variant
	Allowed  market.Bitset
	rules    rules.Rules
	attach   *rules.Attachments
	most     int
	// Content is what the demand chunk is made of; a demand chunk of single pods has one part.
	Content []part
	// bundle says that all of it goes onto one node.
	bundle bool
	// at are the domains that were chosen, by label.
	at map[string]string
	// place tells demand chunks apart that are like no other.
	place int
	// workload is how many waiting pods the workloads have that it is of; zero for bare pods.
	workload int
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

func newChunk(it *PodGroup, variants []market.Variant, allowed market.Bitset, pods []*model.Pod) *DemandChunk {
	return &DemandChunk{class: it.Class, Request: it.Request, ports: it.Class.HostPorts, variants: variants, Allowed: allowed, rules: it.Rules,
		attach: &it.Volumes.Attach, most: it.most, place: it.Place, workload: it.workloads, Content: []part{{it, it.shape, pods}}}
}

// ZonesOfChunk are those in which the demand chunk may be.
func (l *DemandChunk) ZonesOfChunk() uint64 {
	var zones uint64
	for i := range l.variants {
		zones |= l.variants[i].Zones
	}
	return zones
}
