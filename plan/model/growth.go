package model

import (
	"time"
)

// The planner and the kube-scheduler may disagree about a pod: some driver adds a label late, the pods of a DaemonSet take
// more than its template says, or the kube-scheduler runs a plugin that Tenon does not know. Buying the same node again and
// again does not help. So a pod gets maxNodes nodes. Then growth for it pauses, longer each time, until the pod or the
// pools change. The pod may use existing room at any time.

const (
	// maxNodes is how many nodes are created for a pod before growth for it pauses. After each pause it gets one more.
	maxNodes = 2
	// pauseFirst and maxPause limit how long growth pauses; the pause doubles in between.
	pauseFirst = 5 * time.Minute
	maxPause   = time.Hour
)

// Growth records the nodes that were created for a pod which still waits.
type Growth struct {
	// Nodes is how many nodes came up for the pod. It was not bound to any of them permanently.
	Nodes int
	// Until is when the last pause ends, and Pause is its length; both are zero if there was none. At is how many nodes
	// there were when it began.
	Until time.Time
	Pause time.Duration
	At    int
	// Basis identifies the state of the pools.
	Basis string
}

// Next returns the growth after this number of nodes with the pools in the state of basis. A new basis ends the pause.
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

// Paused says that nothing is bought for the pod at the given time.
func (g Growth) Paused(now time.Time) bool { return now.Before(g.Until) }
