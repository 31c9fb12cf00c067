package starter

import (
	"slices"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

const (
	// settle is how long changes are collected before nodes are looked at again.
	settle = time.Second
	// evaluateEvery and maxEvaluate limit the pause between signals while the same nodes are due and are not disrupted:
	// Disruption may know an obstacle that the cluster does not show, such as a replacement that was just undone.
	evaluateEvery, maxEvaluate = 10 * time.Second, 5 * time.Minute
	// gatherFor is how long empty nodes that are due wait for another that comes due in a moment, and maxGather how
	// long for all of those together: pods deleted at the same time do not end at the same time, and one evaluation
	// costs as much for all their nodes as for one. Karpenter looks every ten seconds.
	gatherFor, maxGather = 3 * time.Second, 6 * time.Second
)

// signalled is the last signal to Disruption.
type signalled struct {
	at    time.Time
	nodes map[string]bool
	// again is how long the same is not signalled again; zero before the first signal.
	again time.Duration
	// due is since when something is due that was not signalled to Disruption; zero if there is nothing.
	due time.Time
}

// gather returns how long to wait for the next node that comes due, or zero when it is time to signal. Only empty nodes
// wait: what else is due may change in a moment.
func (s *signalled) gather(now time.Time, found plan.Disruption) time.Duration {
	if s.due.IsZero() {
		s.due = now
	}
	wait := found.NextLook.Sub(now)
	busy := slices.ContainsFunc(found.Commands, func(c plan.Command) bool { return c.Reason != karpv1.DisruptionReasonEmpty })
	if busy || found.NextLook.IsZero() || wait > gatherFor || now.Sub(s.due) >= maxGather {
		s.due = time.Time{}
		return 0
	}
	return max(wait, settle)
}

// news reports whether a signal would say anything new: a node that was not signalled before, or the same ones after a
// while. It returns when to look again.
func (s *signalled) news(now time.Time, found plan.Disruption) (news bool, wait time.Duration) {
	due := map[string]bool{}
	for _, command := range found.Commands {
		for _, node := range command.Nodes {
			due[node] = true
			news = news || !s.nodes[node]
		}
	}
	switch rest := s.again - now.Sub(s.at); {
	case news:
		s.again = evaluateEvery
	case rest > 0:
		return false, rest
	default:
		s.again = min(2*s.again, maxEvaluate)
	}
	s.at, s.nodes = now, due
	return true, s.again
}
