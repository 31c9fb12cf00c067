package place

import (
	"cmp"
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/rules"
)

// Rules over hostnames limit how many pods of a group one node takes: one if they are to be apart, MaxSkew if they are
// to be spread. In the program that finds the cheapest machines, such a bound is one more resource of every machine,
// and each of the pods takes one unit of it.

// maxCaps is the number of groups that become resources. Only the largest are worth it; for the others, each pod group
// is bounded separately.
const maxCaps = 6

// hostCapsOf returns the bounds that become resources: those that several pod groups share, and that concern the most
// pods.
func hostCapsOf(podGroups []*PodGroup) []rules.HostCap {
	pods, users := map[rules.HostCap]int{}, map[rules.HostCap]int{}
	var caps []rules.HostCap
	for _, it := range podGroups {
		for _, c := range it.Rules.Caps() {
			if users[c]++; users[c] == 2 {
				caps = append(caps, c)
			}
			pods[c] += len(it.Pods)
		}
	}
	slices.SortStableFunc(caps, func(a, b rules.HostCap) int { return -cmp.Compare(pods[a], pods[b]) })
	return caps[:min(len(caps), maxCaps)]
}

// A bound that requires few nodes hardly matters where other bounds require many. Without it more demand chunks are
// alike, which pays where there are many.
const (
	// looseness is how many times more nodes than a bound requires must be needed in any case for the bound not to
	// matter.
	looseness = 4
	// manyChunks is the number of demand chunks from which on such bounds are left out.
	manyChunks = 100
)

// bounds are how many pieces of some demand chunks one machine takes for reasons other than room. Bounds that are met
// anyway, by the nodes that the widest of them requires, are left out.
type bounds struct {
	*market.Dimensions
	// widest is the number of nodes that the widest bound requires, or zero if there are few demand chunks. pods is the
	// number of pods that each bound which is a resource concerns.
	widest int
	pods   []int
}

// boundsOf finds the widest bound of some demand chunks.
func boundsOf(dims *market.Dimensions, chunks []*DemandChunk) bounds {
	all := bounds{Dimensions: dims, pods: make([]int, len(dims.Caps))}
	if len(chunks) < manyChunks {
		return all
	}
	for _, l := range chunks {
		if most := l.most(); most > 0 {
			all.widest = max(all.widest, l.Left()/most)
		}
		for i := range dims.Caps {
			if l.Request[dims.Cap(i)] > 0 {
				all.pods[i] += l.Left()
			}
		}
	}
	for i, pods := range all.pods {
		all.widest = max(all.widest, pods/dims.Caps[i].Most)
	}
	return all
}

// met reports whether many times more nodes than this are bought in any case.
func (b *bounds) met(nodes int) bool { return nodes*looseness <= b.widest }

// of returns what a piece of a demand chunk takes, and how many pieces one machine takes, without the bounds that are
// met.
func (b *bounds) of(l *DemandChunk) (request []int64, most int) {
	if most = l.most(); most > 0 && b.met(l.Left()/most) {
		most = 0
	}
	request = slices.Clone(l.Request)
	for i, pods := range b.pods {
		if b.met(pods / b.Caps[i].Most) {
			request[b.Cap(i)] = 0
		}
	}
	return request, most
}
