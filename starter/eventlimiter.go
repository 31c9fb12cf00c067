package starter

import (
	"slices"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// The reasons, Karpenter's, of the Events that say why a node is kept.
const (
	// eventBlocked says what has kept the node from being disrupted for a minute: the node itself, a pod, a
	// PodDisruptionBudget or a budget. `tenon why node` says more.
	eventBlocked = "DisruptionBlocked"
	// eventUnconsolidable says why removing or replacing the node would not save enough, or is not allowed.
	eventUnconsolidable = "Unconsolidatable"
)

const (
	// lasting is how long the same kind of verdict must have kept a node before it is worth an Event, and how long the
	// node must have been initialized: a node's first and last moments are no news, and every Event is a write.
	lasting = time.Minute
	// unending is the same for a verdict that should pass by itself.
	unending = 5 * time.Minute
)

// eventLimiter remembers which Events were recorded about which node, in this process only: after a restart all are
// recorded again.
type eventLimiter struct {
	nodes map[string]saidOf
}

// saidOf is what was recorded about a node: every kind of message once in its life.
type saidOf struct {
	// told has a bit for every kind.
	told [2]uint64
	// kind is the kind that holds now; since is when that began.
	kind  int
	since time.Time
}

// pendingEvent is one Event to be recorded.
type pendingEvent struct {
	node, reason, message string
}

// choose returns the Events to record, in the order of the nodes' names, and when there may be more if nothing changes;
// zero if never. It returns none for young nodes.
func (v *eventLimiter) choose(found plan.Disruption, young map[string]bool, now time.Time) (events []pendingEvent, next time.Time) {
	said := make(map[string]saidOf, len(v.nodes))
	again := func(at time.Time) {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	for start := 0; start < len(found.Verdicts); {
		node, end := found.Verdicts[start].Node, start
		for end < len(found.Verdicts) && found.Verdicts[end].Node == node {
			end++
		}
		binding, speaks := binding(found.Verdicts[start:end])
		start = end
		of := v.nodes[node]
		if speaks && !young[node] {
			kind := kindOf(binding)
			if of.since.IsZero() || of.kind != kind {
				of.kind, of.since = kind, now
			}
			switch due := of.since.Add(toLast(binding)); {
			case of.told[kind/64]&(1<<(kind%64)) != 0:
			case now.Before(due):
				again(due)
			case len(events) == maxEvents:
				again(now)
			default:
				of.told[kind/64] |= 1 << (kind % 64)
				events = append(events, pendingEvent{node, eventOf(binding), plan.Although(binding.Reason) + binding.Message})
			}
		} else {
			of.since = time.Time{}
		}
		if of != (saidOf{}) {
			said[node] = of
		}
	}
	v.nodes = said
	return events, next
}

// binding returns the verdict on a node that is worth an Event: what blocks it for the first reason that applies, else
// what prevents consolidation, else what should pass by itself.
func binding(of []plan.Verdict) (found plan.Verdict, speaks bool) {
	most := 0
	for _, v := range of {
		weight := 0
		switch v.Cause {
		case plan.CauseNode, plan.CausePod, plan.CausePDB, plan.CauseBudget:
			weight = 3
		case plan.CausePrice, plan.CauseRoom, plan.CausePolicy, plan.CauseBuffer:
			switch {
			case v.Reason != karpv1.DisruptionReasonUnderutilized && v.Reason != karpv1.DisruptionReasonEmpty:
				weight = 3
			case v.Reason == karpv1.DisruptionReasonUnderutilized || v.Cause == plan.CauseBuffer:
				weight = 2
			}
		case plan.CausePaused, plan.CauseWindow:
			// Nodes that could be consolidated are nearly all: the NodePool's Event is enough for them.
			if v.Reason != karpv1.DisruptionReasonUnderutilized && v.Reason != plan.DisruptionReasonOverprovisioned {
				weight = 3
			}
		case plan.CauseQuiet:
			weight = 1
		}
		if weight > most {
			found, most = v, weight
		}
	}
	return found, most > 0
}

// toLast is how long a verdict must have held before it is worth an Event.
func toLast(v plan.Verdict) time.Duration {
	if v.Cause == plan.CauseQuiet {
		return unending
	}
	return lasting
}

// eventOf returns the reason of the Event about a verdict.
func eventOf(v plan.Verdict) string {
	switch v.Cause {
	case plan.CausePrice, plan.CauseRoom, plan.CausePolicy, plan.CauseBuffer:
		if v.Reason == karpv1.DisruptionReasonUnderutilized || v.Reason == karpv1.DisruptionReasonEmpty {
			return eventUnconsolidable
		}
	}
	return eventBlocked
}

// kindOf numbers reason and cause of a verdict, below 128.
func kindOf(v plan.Verdict) int {
	causes := [...]plan.Cause{plan.CauseNode, plan.CausePod, plan.CausePDB, plan.CauseBudget, plan.CausePrice, plan.CauseRoom, plan.CausePolicy, plan.CauseBuffer, plan.CauseQuiet, plan.CausePaused, plan.CauseRollout, plan.CauseApproval, plan.CauseWindow}
	return slices.Index(plan.DisruptionReasons(), v.Reason)*len(causes) + slices.Index(causes[:], v.Cause)
}
