package starter

import (
	"slices"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// The reasons of the Events by which people with kubectl learn why a node stays. They are Karpenter's.
const (
	eventBlocked        = "DisruptionBlocked"
	eventUnconsolidable = "Unconsolidatable"
)

const (
	// lasting is how long the same kind of thing must have kept a node before it is worth an Event, and how long the node
	// must have served: what a node's first moments and its last ones look like is no news, and every Event is a write.
	lasting = time.Minute
	// unending is the same for what should pass by itself: only where it does not is it worth an Event.
	unending = 5 * time.Minute
)

// eventLimiter remembers what was said of which node. It is this process's memory: after a restart all is said again.
type eventLimiter struct {
	nodes map[string]saidOf
}

// saidOf is what was said of a node: every kind of sentence once in its life.
type saidOf struct {
	// told has a bit for every kind.
	told uint64
	// kind is the one that holds now, and since when.
	kind  int
	since time.Time
}

// pendingEvent is one Event to be recorded.
type pendingEvent struct {
	node, reason, message string
}

// choose returns what is to be said of nodes, in the order of their names, and when there may be more to say if nothing
// changes; zero if then there is not. Young are nodes of which nothing is said yet.
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
			case of.told&(1<<kind) != 0:
			case now.Before(due):
				again(due)
			case len(events) == maxEvents:
				again(now)
			default:
				of.told |= 1 << kind
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

// binding is the verdict of a node that is worth telling people of: what blocks it for the first reason that applies, or
// else what speaks against consolidation, or else what time will tell.
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

// eventOf is the reason of the Event that tells of a verdict.
func eventOf(v plan.Verdict) string {
	switch v.Cause {
	case plan.CausePrice, plan.CauseRoom, plan.CausePolicy, plan.CauseBuffer:
		if v.Reason == karpv1.DisruptionReasonUnderutilized || v.Reason == karpv1.DisruptionReasonEmpty {
			return eventUnconsolidable
		}
	}
	return eventBlocked
}

// kindOf numbers reason and cause of a verdict, below 64.
func kindOf(v plan.Verdict) int {
	causes := [...]plan.Cause{plan.CauseNode, plan.CausePod, plan.CausePDB, plan.CauseBudget, plan.CausePrice, plan.CauseRoom, plan.CausePolicy, plan.CauseBuffer, plan.CauseQuiet}
	return slices.Index(plan.DisruptionReasons(), v.Reason)*len(causes) + slices.Index(causes[:], v.Cause)
}
