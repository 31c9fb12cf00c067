package disrupt

import (
	"slices"
	"time"

	"github.com/tenon-sh/tenon/plan/model"
)

// shrinkingPart is which part of the nodes that could go must be early for the others to wait for them.
const shrinkingPart = 10

// shrinking says that pods have begun to leave nodes of late, and not for long: no node lost its last pod between two and
// three times its pool's consolidateAfter ago. Where pods come to an end all the time, nobody waits for that to cease.
func shrinking(in *model.Input) bool {
	after := map[string]time.Duration{}
	for _, pool := range in.Snapshot.NodePools {
		if d := pool.Spec.Disruption.ConsolidateAfter; !d.IsNever() {
			after[pool.Name] = *d.Duration
		}
	}
	for _, n := range in.Snapshot.Nodes {
		quiet, known := after[n.Pool]
		if ago := in.Snapshot.Time.Sub(n.LastPodEvent); known && n.Managed() && ago > 2*quiet && ago <= 3*quiet && lostLast(n) {
			return false
		}
	}
	return true
}

// lostLast says that what happened last on the node was that a pod left: no pod has started since.
func lostLast(n *model.Node) bool {
	return n.LastPodEvent.After(n.InitializedAt) && !slices.ContainsFunc(n.Pods, func(pod *model.Pod) bool {
		return pod.Started.IsZero() || pod.Started.Add(startSlack).After(n.LastPodEvent)
	})
}

// startSlack is how much earlier than its node's LastPodEvent a pod may have started that the event is about: their clocks
// differ, and have seconds.
const startSlack = 2 * time.Second
