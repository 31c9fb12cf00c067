package plan

import (
	"cmp"
	"hash/fnv"
	"iter"
	"math/bits"
	"slices"
)

// A field finds one way in which pods fit. Nobody tells the kube-scheduler of it: when many nodes go at once, it takes
// their pods as they come, and to the emptiest nodes. Small pods take the room that large ones were meant to have, and
// somebody has to buy for these. So that many nodes go at once is rehearsed before it is decided, and once more before it is
// done: all of them closed, the large pods first, as Drain has it, and otherwise in an order that means nothing, each pod to
// the emptiest node of those that the scheduler would look at.

// compared is how many nodes with room for a pod are compared. The kube-scheduler compares about as many.
const compared = 100

// mover is a pod that has to leave its node.
type mover struct {
	pod  *Pod
	from *Node
	// large says that Drain evicts it before the others.
	large bool
	// turn is its place among those of its kind.
	turn uint64
}

// rehearse says whether the pods of some nodes, all of which go at once, find room in the first of the orders.
func (f *field) rehearse(nodes []*Node) bool {
	defer f.rollback()
	for range f.homeless(nodes, nil, 0) {
		return false
	}
	return true
}

// homeless plays how the pods of nodes that go at once find room, in one of the orders in which they may come, and yields
// those that find none. The late nodes take nobody before all large pods have had their turn. The fork stays until the
// next is tried.
func (f *field) homeless(nodes, late []*Node, order int) iter.Seq[mover] {
	return func(yield func(mover) bool) {
		movers := f.leave(nodes, order)
		f.bar(true)
		f.d.buysNothing = true
		closed := f.shut(late)
		next := 0
		for _, m := range movers {
			for ; !m.large && len(closed) > 0; closed = closed[1:] {
				closed[0].open()
			}
			if !f.rush(f.copies([]*Pod{m.pod})[0], &next) && !yield(m) {
				return
			}
		}
	}
}

// shut has nodes take nobody until their slots are opened, or the fork ends.
func (f *field) shut(nodes []*Node) []*slot {
	var closed []*slot
	for _, n := range nodes {
		if s := f.stands[n.Key()].slot; s != nil && !s.closed {
			f.d.t.log.write(entry{other: slotClosing{s}})
			s.close()
			closed = append(closed, s)
		}
	}
	return closed
}

// leave begins a fork in which nodes are gone, and returns their pods in the order in which they are placed.
func (f *field) leave(nodes []*Node, order int) []mover {
	f.rollback()
	f.d.t.log.keeps = true
	f.purse = f.d.m.purse()
	f.tried = &move{}
	var movers []mover
	for _, n := range nodes {
		for _, pod := range f.remove(f.stands[n.Key()]) {
			hash := fnv.New64a()
			hash.Write([]byte(pod.UID))
			movers = append(movers, mover{pod, n, pod.large(n.Allocatable), bits.RotateLeft64(hash.Sum64(), 16*order)})
		}
	}
	f.tried.nodes = nodes
	slices.SortFunc(movers, func(a, b mover) int {
		return cmp.Or(cmp.Compare(flag(a.pod.Virtual), flag(b.pod.Virtual)), cmp.Compare(flag(b.large), flag(a.large)), cmp.Compare(a.turn, b.turn), cmp.Compare(a.pod.UID, b.pod.UID))
	})
	return movers
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
		for i := takers.next(first, it.request); i < last && seen < compared; i = takers.next(i+1, it.request) {
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
	if len(takers.slots) <= compared {
		start = 0
	}
	consider(start, len(takers.slots))
	if seen < compared {
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
