package place

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
	"github.com/tenon-sh/tenon/plan/solve"
)

// decides is how long the kube-scheduler is trusted to follow a nomination although others were promised the room as
// well: it knows of pods that it has decided about and that are bound later. Where bound pods leave no room, it will
// not.
const decides = time.Minute

// keeper keeps the promises of earlier plans.
type keeper struct {
	*Distribution
	// promised are the existing nodes of pods by UID. byName are those that have a Node.
	promised map[types.UID]*ExistingNode
	byName   map[string]*ExistingNode
	// taken are the pods in whose place other pods are bound.
	taken map[types.UID]bool
	// average is the average request of the pods.
	average model.Resources
	// movable are the pods on each existing node that do not depend on it.
	movable map[*ExistingNode][]waiter
	// kept are the pods, by pod group, that are spread over domains and have their promised place.
	kept map[*PodGroup][]waiter
	// broken are the pods that depend on their place and have lost it.
	broken []waiter
}

// waiter is a waiting pod, and the existing node that it was promised.
type waiter struct {
	it   *PodGroup
	pod  *model.Pod
	slot *ExistingNode
	// key and domain say where another place has to be. With an empty key it may be anywhere.
	key, domain string
}

// keepPromises puts pods where an earlier plan put them. A claim without a machine was made for its pods; anywhere else
// the promise still has to be good. A nomination in a pod's status counts as a promise, because it outlives the process
// that made it. A pod whose promise still holds stays, with one exception: where others were bound in the room of a pod
// that depends on its place, that pod takes another place, if need be that of pods that do not depend on theirs.
func (d *Distribution) keepPromises(podGroups []*PodGroup, virtual bool) {
	k := d.newKeeper()
	if len(k.promised)+len(k.byName) == 0 {
		return
	}
	tiedFirst := slices.DeleteFunc(slices.Clone(podGroups), func(it *PodGroup) bool { return it.virtual != virtual })
	slices.SortStableFunc(tiedFirst, func(a, b *PodGroup) int { return cmp.Compare(model.Flag(b.tied()), model.Flag(a.tied())) })
	for _, it := range tiedFirst {
		bare := it.bare(k.Market)
		for _, pod := range it.Pods {
			s := k.byName[pod.NominatedNode]
			k.taken[pod.UID] = s != nil && s.Room(bare, 1) == 0
		}
	}
	for _, it := range tiedFirst {
		bare := it.bare(k.Market)
		it.Pods = slices.DeleteFunc(slices.Clone(it.Pods), func(pod *model.Pod) bool { return k.keep(it, bare, pod) })
	}
	for _, it := range tiedFirst {
		for r := range it.Required.Spread {
			k.level(it, &it.Required.Spread[r])
		}
	}
	for _, w := range k.broken {
		if !k.resettle(w) {
			w.it.Pods = append(w.it.Pods, w.pod)
		}
	}
	for _, w := range k.broken {
		slices.SortFunc(w.it.Pods, FirstServed)
	}
}

func (d *Distribution) newKeeper() *keeper {
	k := &keeper{Distribution: d, promised: map[types.UID]*ExistingNode{}, byName: map[string]*ExistingNode{}, taken: map[types.UID]bool{}, average: model.AverageRequest(d.waiting),
		movable: map[*ExistingNode][]waiter{}, kept: map[*PodGroup][]waiter{}}
	for _, s := range d.Existing {
		for _, uid := range s.Node.Promised {
			k.promised[uid] = s
		}
		if s.Node.Name != "" {
			k.byName[s.Node.Name] = s
		}
	}
	return k
}

// keep reports whether a pod is dealt with: it stays where it was promised a place, or it has lost its place and joins
// broken, to be resettled. bare is its pod group without preferences.
func (k *keeper) keep(it, bare *PodGroup, pod *model.Pod) bool {
	s := cmp.Or(k.promised[pod.UID], k.byName[pod.NominatedNode])
	if s == nil {
		return false
	}
	w, depends := waiter{it: it, pod: pod, slot: s}, pod.DependsOnPlace(k.average)
	switch {
	case k.stillGood(s, bare, pod):
		k.put(s, it, pod)
		if !depends && !it.tied() {
			k.movable[s] = append(k.movable[s], w)
		}
		if len(it.Required.Spread) > 0 && len(it.Class.HostPorts) == 0 && it.Volumes.Attach.None() && it.Devices.None() {
			k.kept[it] = append(k.kept[it], w)
		}
		return true
	case depends && s.options == nil && !it.virtual && it.Refusal == "":
		if len(it.keys()) > 0 {
			w.key, w.domain = corev1.LabelTopologyZone, s.Node.Zone
		}
		k.broken = append(k.broken, w)
		return true
	}
	return false
}

// stillGood reports whether a promise can be kept, if need be without what the pods only prefer, since they may have
// been placed without that. Room for virtual pods may have been taken by real ones.
func (k *keeper) stillGood(s *ExistingNode, bare *PodGroup, pod *model.Pod) bool {
	switch {
	case s.options != nil && !bare.virtual:
		return true
	case bare.Refusal != "":
		return false
	case s.Room(bare, 1) == 0:
		return !k.taken[pod.UID] && pod.NominatedNode != "" && pod.NominatedNode == s.Node.Name && k.Market.Now.Sub(pod.NominatedAt) < decides
	}
	return s.options != nil || s.admits(bare)
}

// resettle puts a pod that has lost its place on another node in its domain, the one where the fewest pods have to make
// room, and reports whether there is one.
func (k *keeper) resettle(w waiter) bool {
	var best *ExistingNode
	fewest, bare := 0, w.it.bare(k.Market)
	for _, s := range k.Existing {
		domain, has := k.domainOf(s, w.key)
		if s.options != nil || s.Closed || w.key != "" && (!has || domain != w.domain) || !s.admits(bare) {
			continue
		}
		if n, ok := k.inTheWay(s, bare); ok && (best == nil || n < fewest) {
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
		m.it.Pods = append(m.it.Pods, m.pod)
	}
	k.put(best, w.it, w.pod)
	return true
}

// takeBack removes a pod from the existing node that it was put on. It must have taken no port there, and no volume.
func (k *keeper) takeBack(w waiter) {
	k.fill(w.slot, w.it, -1)
	k.Placements = slices.DeleteFunc(k.Placements, func(p model.Placement) bool { return p.Pod.UID == w.pod.UID })
}

// level breaks promises that a spread rule no longer allows, because others of the pod group's pods were bound in
// domains that were not planned for them. The last pods in the fullest domain could never be bound there.
func (k *keeper) level(it *PodGroup, rule *rules.SpreadRule) {
	domains := slices.Sorted(maps.Keys(rule.Domains))
	if rule.Host >= 0 || rule.Self == 0 || len(domains) == 0 {
		return
	}
	for i := len(k.kept[it]) - 1; i >= 0; i-- {
		emptiest := slices.MinFunc(domains, func(a, b string) int { return cmp.Compare(rule.Counts[a], rule.Counts[b]) })
		w := k.kept[it][i]
		if domain, has := k.domainOf(w.slot, rule.Key); !has || rule.Counts[domain]-rule.Counts[emptiest] <= rule.MaxSkew {
			continue
		}
		k.takeBack(w)
		k.kept[it] = slices.Delete(k.kept[it], i, i+1)
		w.key, w.domain = rule.Key, emptiest
		k.broken = append(k.broken, w)
	}
}

// inTheWay returns the number of movable pods that have to leave an existing node so that it can take one of a pod
// group's pods, and whether it can take one at all.
func (k *keeper) inTheWay(s *ExistingNode, it *PodGroup) (n int, ok bool) {
	movable := k.movable[s]
	free := slices.Clone(s.Free)
	for ; !solve.Fits(it.Request, free); n++ {
		if n == len(movable) {
			return 0, false
		}
		solve.Subtract(free, movable[n].it.Request, -1)
	}
	whole := *s
	whole.Free = free
	return n, whole.Room(it, 1) > 0
}
