package disrupt

import (
	"cmp"
	"hash/fnv"
	"iter"
	"slices"

	"github.com/tenon-sh/tenon/plan/lifecycle"
	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/place"
)

// A simulation finds one way in which pods fit, but the kube-scheduler does not know it: when many nodes are removed at
// once, it takes their pods as they come, and puts them on the emptiest nodes. Small pods take the room that large ones
// were meant to have, and nodes have to be bought for these. So the removal of many nodes at once is rehearsed before it is
// decided, and once more before it is carried out: all of them are closed, the large pods are first, as in Drain, the order
// is arbitrary otherwise, and each pod is placed on the emptiest of the nodes that the scheduler would look at.

// compared is how many nodes with room for a pod are compared. The kube-scheduler compares about as many.
const compared = 100

// mover is a pod that has to leave its node.
type mover struct {
	pod *model.Pod
	// stage is low for large pods, which Drain evicts before the others, and high for virtual pods, which keep room free.
	// turn orders the pods of a stage.
	stage byte
	turn  uint64
}

// rehearse says whether the pods of some nodes find room when all these nodes are removed at once.
func (f *Simulation) rehearse(nodes []*model.Node) bool {
	defer f.Rollback()
	for range f.unplaced(nodes) {
		return false
	}
	return true
}

// unplaced begins a trial in which nodes are removed at once, simulates how their pods find room, and yields those that
// find none. The trial stays until the next one begins.
func (f *Simulation) unplaced(nodes []*model.Node) iter.Seq[*model.Pod] {
	f.Rollback()
	var movers []mover
	for _, n := range nodes {
		for _, pod := range f.remove(f.Simulated[n.Key()]) {
			hash := fnv.New64a()
			hash.Write([]byte(pod.UID))
			movers = append(movers, mover{pod, 2*model.Flag(pod.Virtual) + model.Flag(!lifecycle.Large(pod, n.Allocatable)), hash.Sum64()})
		}
	}
	slices.SortFunc(movers, func(a, b mover) int {
		return cmp.Or(cmp.Compare(a.stage, b.stage), cmp.Compare(a.turn, b.turn), cmp.Compare(a.pod.UID, b.pod.UID))
	})
	return func(yield func(*model.Pod) bool) {
		next := 0
		for _, m := range movers {
			if !f.bindLikeScheduler(f.copies([]*model.Pod{m.pod})[0], &next) && !yield(m.pod) {
				return
			}
		}
	}
}

// bindLikeScheduler puts a pod on the emptiest of some nodes, and begins to look where the last search stopped. It says
// whether there was room.
func (f *Simulation) bindLikeScheduler(it *place.PodGroup, from *int) bool {
	d := f.Distribution
	share := func(free, whole int64) float64 { return float64(free) / float64(max(1, whole)) }
	if !it.Rules.Empty() {
		d.Place(it)
		return len(it.Pods) == 0
	}
	takers := d.LettingIn(it)
	var best *place.ExistingNode
	most, seen := 0.0, 0
	start := min(*from, len(takers))
	if len(takers) <= compared {
		start = 0
	}
	for _, span := range [...][2]int{{start, len(takers)}, {0, start}} {
		for i := takers.Next(span[0], it.Request); i < span[1] && seen < compared; i = takers.Next(i+1, it.Request) {
			s := takers[i]
			*from = i + 1
			if s.Room(it, 1) == 0 {
				continue
			}
			seen++
			free := share(s.Free[market.DimCPU], s.Node.Allocatable.CPU) + share(s.Free[market.DimMemory], s.Node.Allocatable.Memory)
			if best == nil || free > most {
				best, most = s, free
			}
		}
	}
	if best == nil {
		return false
	}
	d.Onto(best, it, 1)
	return true
}
