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
	return caps[:min(len(caps), mostCaps)]
}
