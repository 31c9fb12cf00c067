package plan

import (
	"cmp"
	"hash/fnv"
	"slices"
)

// A field finds one way in which pods fit. Nobody tells the kube-scheduler of it: when many nodes go at once, it takes
// their pods as they come, and to the emptiest nodes. Small pods take the room that large ones were meant to have, and
// somebody has to buy for these. So commands that need no replacement are rehearsed before they are given: all their
// nodes closed, the large pods first, as Drain has it, and otherwise in an order that means nothing, each to the emptiest
// node of those that the scheduler would look at. Where pods find no room in that, the commands of the least worth are left for later, when it is known where the
// others went.

// rushed is how many nodes with room for a pod are compared. The kube-scheduler compares about as many.
const rushed = 100

// rehearse says whether the pods of some nodes, all of which go at once, find room whoever comes first.
func (f *field) rehearse(nodes []*Node) bool {
	f.rollback()
	f.d.t.log.keeps = true
	f.purse = f.d.m.purse()
	f.tried = &move{}
	defer f.rollback()
	type mover struct {
		pod   *Pod
		large bool
		turn  uint64
	}
	var movers []mover
	for _, n := range nodes {
		for _, pod := range f.remove(f.stands[n.Key()]) {
			hash := fnv.New64a()
			hash.Write([]byte(pod.UID))
			movers = append(movers, mover{pod, pod.large(n.Allocatable), hash.Sum64()})
		}
	}
	f.tried.nodes = nodes
	f.bar(true)
	f.d.buysNothing = true
	slices.SortFunc(movers, func(a, b mover) int {
		return cmp.Or(cmp.Compare(flag(a.pod.Virtual), flag(b.pod.Virtual)), cmp.Compare(flag(b.large), flag(a.large)), cmp.Compare(a.turn, b.turn), cmp.Compare(a.pod.UID, b.pod.UID))
	})
	next := 0
	return !slices.ContainsFunc(movers, func(m mover) bool { return !f.rush(f.copies([]*Pod{m.pod})[0], &next) })
}

// rush puts a pod on the emptiest of some nodes, looking on from where the last one stopped.
func (f *field) rush(it *item, from *int) bool {
	d := f.d
	if !it.rules.empty() {
		d.place(it)
		return len(it.pods) == 0
	}
	takers := d.lettingIn(it)
	var best *slot
	most, seen := 0.0, 0
	consider := func(first, last int) {
		for i := takers.next(first, it.request); i < last && seen < rushed; i = takers.next(i+1, it.request) {
			s := takers.slots[i]
			*from = i + 1
			if s.room(it, 1) == 0 {
				continue
			}
			seen++
			if free := emptiness(s); best == nil || free > most {
				best, most = s, free
			}
		}
	}
	start := min(*from, len(takers.slots))
	if len(takers.slots) <= rushed {
		start = 0
	}
	consider(start, len(takers.slots))
	if seen < rushed {
		consider(0, start)
	}
	if best == nil {
		return false
	}
	d.onto(best, it, 1)
	return true
}

// emptiness is how much of a node is free, by cores and memory.
func emptiness(s *slot) float64 {
	share := func(free, whole int64) float64 {
		if whole == 0 {
			return 0
		}
		return float64(free) / float64(whole)
	}
	return share(s.free[dimCPU], s.node.Allocatable.CPU) + share(s.free[dimMemory], s.node.Allocatable.Memory)
}
