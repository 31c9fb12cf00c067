package plan

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Whatever the planner and the kube-scheduler disagree about (a label that some driver adds late, a DaemonSet whose pods
// take more than its template says, a plugin of the kube-scheduler that nobody here knows), the same node bought again and
// again helps nobody. A pod gets nodesMost nodes. Then growing for it pauses, longer each time, until the pod or the pools
// are others; room that is there it may take at any time.

const (
	// nodesMost is how many nodes are made for a pod before growing for it pauses. After each pause it gets one more.
	nodesMost = 2
	// pauseFirst and pauseMost bound how long growing pauses; it doubles in between.
	pauseFirst = 5 * time.Minute
	pauseMost  = time.Hour
)

// Growth is what was done so far for a pod that still waits.
type Growth struct {
	// Nodes is how many nodes came up for the pod, none of which it was bound to for good.
	Nodes int
	// Until is when the last pause ends, and Pause how long it is; zero where there was none. It was made when there were
	// At nodes.
	Until time.Time
	Pause time.Duration
	At    int
	// Basis tells the pools from what they were before or will be.
	Basis string
}

// Next is the growth when there are so many nodes, on a basis.
func (g Growth) Next(nodes int, basis string, now time.Time) Growth {
	g.Nodes = max(g.Nodes, nodes)
	if g.Basis != basis {
		if g.Pause > 0 {
			g.At = g.Nodes
		}
		g.Basis, g.Until, g.Pause = basis, time.Time{}, 0
	}
	if g.Nodes >= nodesMost && g.Nodes > g.At {
		g.At, g.Pause = g.Nodes, min(max(2*g.Pause, pauseFirst), pauseMost)
		g.Until = now.Add(g.Pause)
	}
	return g
}

// Paused says that nothing is bought for the pod at a moment.
func (g Growth) Paused(now time.Time) bool { return now.Before(g.Until) }

// Basis is what growth rests on: other pools, or what can be bought for them, are another.
func Basis(pools []Pool) string {
	var basis []string
	for i := range pools {
		pool := pools[i].NodePool
		basis = append(basis, fmt.Sprintf("%s/%d", pool.UID, pool.Generation))
	}
	slices.Sort(basis)
	return fmt.Sprint(basis)
}

// packPaused plans, and buys nothing for pods whose growth is paused. What is there they may use.
func packPaused(in Input) Plan {
	packed := packForOthers(in)
	asked := map[types.UID]bool{}
	for i := range packed.Claims {
		for _, uid := range packed.Claims[i].Pods {
			if in.Growth[uid].Paused(in.Snapshot.Time) {
				asked[uid] = true
			}
		}
	}
	if len(asked) == 0 {
		return packed
	}
	rest := *in.Snapshot
	rest.Pending = nil
	var left []Unplaced
	for _, pod := range in.Snapshot.Pending {
		if !asked[pod.UID] {
			rest.Pending = append(rest.Pending, pod)
			continue
		}
		left = append(left, Unplaced{Pod: pod, Reasons: []Reason{{Message: in.Growth[pod.UID].message()}}})
	}
	in.Snapshot = &rest
	packed = packForOthers(in)
	packed.Unplaced = append(packed.Unplaced, left...)
	return packed
}

// message says in one sentence why growing is paused.
func (g Growth) message() string {
	return fmt.Sprintf("growing for it is paused until %s: %d nodes came up for it, and it stayed on none of them", g.Until.UTC().Format(time.RFC3339), g.Nodes)
}
