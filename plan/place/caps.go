package place

import (
	"cmp"
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/rules"
)

// Rules over hostnames bound how many pods of a group one node takes: one where they are to be apart, MaxSkew where they
// are to be spread. For the program that finds the cheapest machines such a bound is one more resource of every machine,
// of which each of the pods takes one.

// maxCaps is how many groups become resources. The largest are worth it; of the others, each pod group is bounded by
// itself.
const maxCaps = 6

// hostCapsOf chooses the bounds that become resources: those that concern the most pods of several pod groups.
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

// A bound that asks for few nodes hardly matters where others ask for many. Without it more demand chunks are alike, which
// is worth it where there are many of them.
const (
	// looseness is how many times more nodes than a bound asks for there have to be in any case for it not to matter.
	looseness = 4
	// manyChunks is from how many demand chunks on such bounds are left out.
	manyChunks = 100
)

// bounds are how many pieces of some demand chunks one machine takes for reasons other than room, without what the nodes
// that the widest of these bounds asks for meet anyway.
type bounds struct {
	*market.Dimensions
	// widest is how many nodes the widest bound asks for, zero with few demand chunks; pods is how many pods each bound that counts
	// as a resource concerns.
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

// met says that many times more nodes than this are bought in any case.
func (b *bounds) met(nodes int) bool { return nodes*looseness <= b.widest }

// of is what a piece of a demand chunk takes, and how many of them one machine takes, without the bounds that are met.
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
