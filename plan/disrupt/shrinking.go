package disrupt

import (
	"slices"
	"time"

	"github.com/tenon-sh/tenon/plan/model"
)

// shrinkingPart makes removals wait: if at least one in so many is too early, the others wait as well.
const shrinkingPart = 10

// shrinking says that pods began to leave nodes only recently: no node last lost a pod between two and three times its
// pool's consolidateAfter ago. Where pods end all the time, consolidation does not wait for that to stop.
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
		lost := n.LastPodEvent.After(n.InitializedAt) && !slices.ContainsFunc(n.Pods, started) // and gained none
		if ago := in.Snapshot.Time.Sub(n.LastPodEvent); known && n.Managed() && ago > 2*quiet && ago <= 3*quiet && lost {
			return false
		}
	}
	return true
}

// startSlack is how much earlier than its node's LastPodEvent a pod may have started for the event to be about that pod:
// their clocks differ, and have a resolution of seconds.
const startSlack = 2 * time.Second
