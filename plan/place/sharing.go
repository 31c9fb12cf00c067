package place

import (
	"cmp"
	"slices"
)

// placeSharing places a pod group whose resource claims are shared with other pods, and are to be allocated from the devices
// of one node: on the node where the plan has allocated them, in the bundle of pods that share them, or all together.
func placeSharing(d *Distribution, it *PodGroup) {
	r := realmOf(d, it)
	shares := func(other *PodGroup) bool { return it.Devices.Shares(&other.Devices) }
	if d.Market.Devices.Allocated(&it.Devices) {
		for _, c := range r.choices {
			for _, s := range c.row {
				r.putOn(d, s, c)
			}
		}
	}
	for _, l := range d.Chunks {
		if l.bundle && len(it.Pods) > 0 && slices.ContainsFunc(l.Content, func(p part) bool { return len(p.Pods) > 0 && shares(p.it) }) {
			joinBundle(d, l, r)
		}
	}
	begun := d.Market.Devices.Allocated(&it.Devices) || slices.ContainsFunc(d.Chunks, func(l *DemandChunk) bool {
		return slices.ContainsFunc(l.Content, func(p part) bool { return len(p.Pods) > 0 && shares(p.it) })
	})
	if len(it.Pods) > 0 && !begun {
		begin(d, familyOf(d, r, func(other *PodGroup) bool { return len(other.Pods) > 0 && shares(other) }))
	}
	if len(it.Pods) > 0 {
		it.Unmet = cmp.Or(r.unmet(), "resource claims that it shares with other pods: the node of these takes no more")
	}
}
