package model

import (
	"time"
)

// Whatever the planner and the kube-scheduler disagree about (a label that some driver adds late, a DaemonSet whose pods
// take more than its template says, a plugin of the kube-scheduler that nobody here knows), the same node bought again and
// again helps nobody. A pod gets maxNodes nodes. Then growing for it pauses, longer each time, until the pod or the pools
// are others; room that is there it may take at any time.

const (
	// maxNodes is how many nodes are made for a pod before growing for it pauses. After each pause it gets one more.
	maxNodes = 2
	// pauseFirst and maxPause bound how long growing pauses; it doubles in between.
	pauseFirst = 5 * time.Minute
	maxPause   = time.Hour
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
	if g.Nodes >= maxNodes && g.Nodes > g.At {
		g.At, g.Pause = g.Nodes, min(max(2*g.Pause, pauseFirst), maxPause)
		g.Until = now.Add(g.Pause)
	}
	return g
}

// Paused says that nothing is bought for the pod at a moment.
func (g Growth) Paused(now time.Time) bool { return now.Before(g.Until) }
