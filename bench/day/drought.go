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

// A spot pool is an instance type in a zone. Its spare capacity follows from the seed, the pool's name and the hour: most of
// it depends on the family in the zone, a part on the family everywhere, a part on the pool alone. So the sizes of a family
// run dry together, and different families do not. A dry pool interrupts its machines and sells none, and everybody knows
// it.

const (
	// dryBelow is the spare capacity, as a part of the maximum, below which a pool is dry: on a bad day, about a sixth of
	// the time.
	dryBelow = 0.3
	// The shares of a pool's spare capacity, and how many hours each takes to move from one level to the next.
	zoneShare, familyShare, ownShare = 0.6, 0.2, 0.2
	zoneHours, familyHours, ownHours = 5, 9, 3
	// countsFrom is the least number of replicas for which a workload's losses count: of two, any node takes half.
	countsFrom = 6
	// tooMuch is the part of a workload that should never be lost at once.
	tooMuch = 1.0 / 3
)

// droughts tells which pool is dry at what time.
type droughts struct{ seed uint64 }

// spare returns a pool's spare capacity, as a part of the maximum.
func (d droughts) spare(instanceType, zone string, at time.Time) float64 {
	family, _, _ := strings.Cut(instanceType, ".")
	hour := at.Sub(Start).Hours()
	return zoneShare*d.level(hour/zoneHours, family, zone) + familyShare*d.level(hour/familyHours, family) + ownShare*d.level(hour/ownHours, instanceType, zone, "own")
}

// level moves linearly within [0,1), from one drawn level to the next. Different names change at different times.
func (d droughts) level(at float64, names ...string) float64 {
	from, part := math.Modf(at + d.draw(append(names, "phase")...))
	drawn := func(n float64) float64 { return d.draw(append(slices.Clone(names), strconv.Itoa(int(n)))...) }
	return drawn(from)*(1-part) + drawn(from+1)*part
}

// draw maps names to [0,1), uniformly.
func (d droughts) draw(names ...string) float64 {
	h := fnv.New64a()
	h.Write([]byte(strings.Join(names, "\x00") + "\x00" + strconv.FormatUint(d.seed, 10)))
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd // the finalizer of MurmurHash3: FNV alone keeps similar names close
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}

// dry reports whether an offering belongs to a dry spot pool.
func (w *world) dry(name string, offering cloud.Offering) bool {
	return offering.CapacityType == karpv1.CapacityTypeSpot && w.droughts.spare(name, offering.Zone, w.now) < dryBelow
}

// interrupt takes back the machines of dry pools, and removes what these pools sell from the catalogue.
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

// stock rebuilds the catalogue as it is now.
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

// deeper returns the offerings from which EC2 would choose the cheapest: all on-demand ones, or the half of the spot pools
// with the most spare capacity.
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
