package day

import (
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// Spot pools, which are an instance type in a zone, have more spare capacity and less. How much follows from the seed, the
// pool's name and the hour: most of it is the family's in the zone, a part the family's everywhere, a part the pool's own. So
// the sizes of a family run dry together, and different families do not. A pool that is dry takes its machines back and
// sells none, which everybody is told.

const (
	// dryBelow is the spare capacity, in parts of the most there is, below which a pool is dry: on a bad day, about a sixth of the time.
	dryBelow = 0.3
	// The parts of a pool's spare capacity, and how many hours each takes to go from one level to the next.
	zoneShare, familyShare, ownShare = 0.6, 0.2, 0.2
	zoneHours, familyHours, ownHours = 5, 9, 3
	// countsFrom is from how many replicas on a workload's losses are counted: of two, half goes with any node.
	countsFrom = 6
	// tooMuch is the part of a workload that should never go at once.
	tooMuch = 1.0 / 3
)

// droughts say when which pool is dry.
type droughts struct{ seed uint64 }

// spare is how much spare capacity a pool has, in parts of the most there is.
func (d droughts) spare(instanceType, zone string, at time.Time) float64 {
	family, _, _ := strings.Cut(instanceType, ".")
	hour := at.Sub(Start).Hours()
	return zoneShare*d.level(hour/zoneHours, family, zone) + familyShare*d.level(hour/familyHours, family) + ownShare*d.level(hour/ownHours, instanceType, zone, "own")
}

// level moves evenly within [0,1), from one drawn level to the next. Different names move at different times.
func (d droughts) level(at float64, names ...string) float64 {
	from, part := math.Modf(at + d.draw(append(names, "phase")...))
	drawn := func(n float64) float64 { return d.draw(append(slices.Clone(names), strconv.Itoa(int(n)))...) }
	return drawn(from)*(1-part) + drawn(from+1)*part
}

// draw maps names to [0,1), evenly.
func (d droughts) draw(names ...string) float64 {
	h := fnv.New64a()
	h.Write([]byte(strings.Join(names, "\x00") + "\x00" + strconv.FormatUint(d.seed, 10)))
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd // the finalizer of MurmurHash3: FNV alone leaves near names near
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}

// dry says whether an offering is of a spot pool that is dry.
func (w *world) dry(name string, offering cloud.Offering) bool {
	return offering.CapacityType == karpv1.CapacityTypeSpot && w.droughts.spare(name, offering.Zone, w.now) < dryBelow
}

// interrupt takes the machines of dry pools back, and what these pools sell off the catalogue.
func (w *world) interrupt() {
	if !w.options.Spot {
		return
	}
	w.stock()
	// before is how many pods of each workload have a node.
	lost, before := map[string]int{}, map[string]int{}
	for _, m := range w.nodes {
		for _, p := range m.pods {
			before[p.Labels["app"]]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		m := w.nodes[name]
		if !w.dry(m.kind.Name, m.offering) {
			continue
		}
		w.result.Interrupted++
		w.result.PodsInterrupted += len(m.pods)
		for _, p := range m.pods {
			lost[p.Labels["app"]]++
		}
		w.evict(m)
	}
	for app, count := range lost {
		if before[app] < countsFrom {
			continue
		}
		share := float64(count) / float64(before[app])
		w.result.LargestLoss = max(w.result.LargestLoss, share)
		if share > tooMuch {
			w.result.LargeLosses++
		}
	}
}

// stock makes the catalogue anew, as it is now.
func (w *world) stock() {
	w.catalogue = make([]*cloud.InstanceType, len(w.options.Catalogue))
	for i, t := range w.options.Catalogue {
		now := *t
		now.Offerings = slices.Clone(t.Offerings)
		for k := range now.Offerings {
			now.Offerings[k].Available = now.Offerings[k].Available && !w.dry(t.Name, now.Offerings[k])
		}
		w.catalogue[i], w.types[t.Name] = &now, &now
	}
}

// deeper are those of some offerings that EC2 would choose the cheapest of: all on-demand ones, and of spot pools the half
// with more spare capacity.
func (w *world) deeper(all []sale) []sale {
	if len(all) == 0 || all[0].offering.CapacityType != karpv1.CapacityTypeSpot {
		return all
	}
	slices.SortStableFunc(all, func(a, b sale) int {
		x, y := w.droughts.spare(a.kind.Name, a.offering.Zone, w.now), w.droughts.spare(b.kind.Name, b.offering.Zone, w.now)
		switch {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	return all[:(len(all)+1)/2]
}
