package place

import (
	"cmp"
	"slices"

	"github.com/tenon-sh/tenon/plan/rules"
)

// Rules over hostnames bound how many pods of a group one node takes: one where they are to be apart, MaxSkew where they
// are to be spread. For the program that finds the cheapest machines such a bound is one more resource of every machine,
// of which each of the pods takes one.

// mostCaps is how many groups become resources. The largest are worth it; of the others, each pod group is bounded by
// itself.
const mostCaps = 6

// hostCapsOf chooses the bounds that become resources: those that concern the most pods of several pod groups.
func hostCapsOf(podGroups []*PodGroup) []rules.HostCap {
	type concern struct {
		rules.HostCap
		pods, items int
	}
	byCap := map[rules.HostCap]*concern{}
	var concerns []*concern
	for _, it := range podGroups {
		for _, c := range it.Rules.Caps() {
			known := byCap[c]
			if known == nil {
				known = &concern{HostCap: c}
				byCap[c] = known
				concerns = append(concerns, known)
			}
			known.pods += len(it.Pods)
			known.items++
		}
	}
	concerns = slices.DeleteFunc(concerns, func(c *concern) bool { return c.items < 2 })
	slices.SortStableFunc(concerns, func(a, b *concern) int { return -cmp.Compare(a.pods, b.pods) })
	var caps []rules.HostCap
	for _, c := range concerns[:min(len(concerns), mostCaps)] {
		caps = append(caps, c.HostCap)
	}
	return caps
}
