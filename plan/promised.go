package plan

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// decides is how long the kube-scheduler is trusted to follow a nomination that it has not taken back, though what is seen
// of the node has no room: it knows of pods that it has decided about and that are bound later. Pods that it has tried in
// vain lose the nomination, and are planned for again at once.
const decides = 2 * time.Minute

// keeper keeps the promises of earlier plans.
type keeper struct {
	*distribution
	// promised are the slots of pods by their UID, byName those that have a node.
	promised map[types.UID]*slot
	byName   map[string]*slot
	// average is what the pods ask for on average.
	average Resources
	// movable are the pods on each slot that do not depend on it.
	movable map[*slot][]waiter
	// kept are the pods of items that are spread over domains.
	kept map[*item][]waiter
	// broken are the pods that depend on their place and have lost it.
	broken []waiter
}

// waiter is a pod that waits, and the slot that it was promised.
type waiter struct {
	it   *item
	pod  *Pod
	slot *slot
	// key and domain say where another place has to be; an empty key that it may be anywhere.
	key, domain string
}

// keepPromises puts pods where an earlier plan has put them. A claim without machine was made for its pods; anywhere
// else the promise has to be still good. What the kube-scheduler was told of a plan counts as a promise, since that
// outlives the process which made it. A pod whose promise still holds stays, with one exception: where others were bound in
// the room of a pod that depends on its place, it takes another, if need be that of pods which do not mind where they go.
func (d *distribution) keepPromises(items []*item, virtual bool) {
	k := d.newKeeper(items, virtual)
	if len(k.promised)+len(k.byName) == 0 {
		return
	}
	tiedFirst := slices.Clone(items)
	slices.SortStableFunc(tiedFirst, func(a, b *item) int { return cmp.Compare(flag(b.tied()), flag(a.tied())) })
	for _, it := range tiedFirst {
		if it.virtual != virtual {
			continue
		}
		pods := it.pods
		it.pods = nil
		for _, pod := range pods {
			k.keep(it, pod)
		}
	}
	for _, it := range tiedFirst {
		for r := range it.required.spread {
			k.level(it, &it.required.spread[r])
		}
	}
	for _, w := range k.broken {
		if !k.resettle(w) {
			w.it.pods = append(w.it.pods, w.pod)
		}
	}
	for _, w := range k.broken {
		slices.SortFunc(w.it.pods, firstServed)
	}
}

func (d *distribution) newKeeper(items []*item, virtual bool) *keeper {
	k := &keeper{distribution: d, promised: map[types.UID]*slot{}, byName: map[string]*slot{}, movable: map[*slot][]waiter{}, kept: map[*item][]waiter{}}
	for _, s := range d.slots {
		for _, uid := range s.node.Promised {
			k.promised[uid] = s
		}
		if s.node.Name != "" {
			k.byName[s.node.Name] = s
		}
	}
	var waiting []*Pod
	for _, it := range items {
		if it.virtual == virtual {
			waiting = append(waiting, it.pods...)
		}
	}
	k.average = AverageRequest(waiting)
	return k
}

// keep keeps the promise to a pod, or leaves the pod without a place.
func (k *keeper) keep(it *item, pod *Pod) {
	s := k.promised[pod.UID]
	if s == nil {
		s = k.byName[pod.NominatedNode]
	}
	depends := pod.DependsOnPlace(k.average)
	switch {
	case s == nil:
		it.pods = append(it.pods, pod)
	case k.stillGood(s, it, pod):
		w := waiter{it: it, pod: pod, slot: s}
		k.put(w)
		if !depends && !it.tied() {
			k.movable[s] = append(k.movable[s], w)
		}
		if len(it.required.spread) > 0 && len(it.class.HostPorts) == 0 && it.volumes.attach.none() {
			k.kept[it] = append(k.kept[it], w)
		}
	case depends && s.options == nil && !it.virtual:
		w := waiter{it: it, pod: pod, slot: s}
		if len(it.keys()) > 0 {
			w.key, w.domain = corev1.LabelTopologyZone, s.node.Zone
		}
		k.broken = append(k.broken, w)
	default:
		it.pods = append(it.pods, pod)
	}
}

func (k *keeper) put(w waiter) {
	k.fill(w.slot, w.it, 1)
	k.placements = append(k.placements, Placement{Pod: w.pod, Node: w.slot.node.Key()})
}

// stillGood says whether a promise can be kept, if need be without what the pods only prefer: they may have been placed
// without that. Room for virtual pods may have been taken by real ones.
func (k *keeper) stillGood(s *slot, it *item, pod *Pod) bool {
	if s.options != nil && !it.virtual {
		return true
	}
	if it.refusal != "" {
		return false
	}
	if s.roomUnder(&it.required, it, 1) == 0 {
		return pod.NominatedNode != "" && pod.NominatedNode == s.node.Name && k.now.Sub(pod.NominatedAt) < decides
	}
	return s.options != nil || s.admits(it) || s.admitsRelaxed(it)
}

// admitsRelaxed says whether the node lets the item's pods in when none of their preferences holds.
func (s *slot) admitsRelaxed(it *item) bool {
	return repelledBy(lastingTaints(s.node), it.class.Tolerations) == nil &&
		slices.ContainsFunc(it.base, func(t term) bool { return t.admits(s.node.Labels) })
}

// resettle puts a pod that has lost its place on another node of its domains, where the fewest have to make room, and says
// whether there is one.
func (k *keeper) resettle(w waiter) bool {
	var best *slot
	fewest := 0
	for _, s := range k.slots {
		if s.options != nil || s.closed || !k.within(s, w) || !s.admits(w.it) && !s.admitsRelaxed(w.it) {
			continue
		}
		if n, ok := k.inTheWay(s, w.it); ok && (best == nil || n < fewest) {
			best, fewest = s, n
		}
	}
	if best == nil {
		return false
	}
	moving := k.movable[best][:fewest]
	k.movable[best] = k.movable[best][fewest:]
	for _, m := range moving {
		k.takeBack(m)
		m.it.pods = append(m.it.pods, m.pod)
	}
	k.put(waiter{it: w.it, pod: w.pod, slot: best})
	return true
}

// within says whether a slot is where a pod has to be.
func (k *keeper) within(s *slot, w waiter) bool {
	if w.key == "" {
		return true
	}
	domain, has := k.domainOf(s, w.key)
	return has && domain == w.domain
}

// takeBack takes a pod that was put on its slot off it again. It takes no port there, and no volume.
func (k *keeper) takeBack(w waiter) {
	k.fill(w.slot, w.it, -1)
	k.placements = slices.DeleteFunc(k.placements, func(p Placement) bool { return p.Pod.UID == w.pod.UID })
}

// level breaks promises that a rule of spread no longer allows, because others of the item's pods were bound in domains
// that were not planned for them: the last in the fullest domain could never be bound there.
func (k *keeper) level(it *item, rule *spreadRule) {
	if rule.host >= 0 || rule.self == 0 {
		return
	}
	for i := len(k.kept[it]) - 1; i >= 0; i-- {
		low, least := "", math.MaxInt
		for domain := range maps.Keys(rule.domains) {
			if n := rule.counts[domain]; n < least || n == least && domain < low {
				low, least = domain, n
			}
		}
		w := k.kept[it][i]
		domain, has := k.domainOf(w.slot, rule.key)
		if least == math.MaxInt || !has || rule.counts[domain]-least <= rule.maxSkew {
			continue
		}
		k.takeBack(w)
		k.kept[it] = slices.Delete(k.kept[it], i, i+1)
		w.key, w.domain = rule.key, low
		k.broken = append(k.broken, w)
	}
}

// inTheWay is how many of the pods that do not depend on a slot have to leave it for one of an item's.
func (k *keeper) inTheWay(s *slot, it *item) (n int, ok bool) {
	movable := k.movable[s]
	free := slices.Clone(s.free)
	for ; !fits(it.request, free); n++ {
		if n == len(movable) {
			return 0, false
		}
		take(free, movable[n].it.request, -1)
	}
	whole := *s
	whole.free = free
	return n, whole.roomUnder(&it.required, it, 1) > 0
}
