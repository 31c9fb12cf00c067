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
		started := func(pod *model.Pod) bool {
			return pod.Started.IsZero() || pod.Started.Add(startSlack).After(n.LastPodEvent)
		}
		lost := n.LastPodEvent.After(n.InitializedAt) && !slices.ContainsFunc(n.Pods, started) // and not won
		if ago := in.Snapshot.Time.Sub(n.LastPodEvent); known && n.Managed() && ago > 2*quiet && ago <= 3*quiet && lost {
			return false
		}
	}
	return true
}

// startSlack is how much earlier than its node's LastPodEvent a pod may have started that the event is about: their clocks
// differ, and have seconds.
const startSlack = 2 * time.Second
