package tenon

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/bench/duel"
	"github.com/tenon-sh/tenon/plan"
)

// Disrupt asks plan.Disrupt what may be taken away. Only Disrupt itself is timed.
func Disrupt(q *duel.Question) (plan.Disruption, time.Duration) {
	in := Input(q)
	runtime.GC()
	start := time.Now()
	disruption := plan.Disrupt(in)
	return disruption, time.Since(start)
}

// MedianDisrupt asks three times, each from a snapshot that nobody has looked at before, and returns the median time.
func MedianDisrupt(q *duel.Question) (plan.Disruption, time.Duration) {
	var answer plan.Disruption
	times := make([]time.Duration, 3)
	for i := range times {
		answer, times[i] = Disrupt(q)
	}
	slices.Sort(times)
	return answer, times[1]
}

// Consolidate is what plan.Disrupt would take away for lack of use: all commands at once.
func Consolidate(_ context.Context, q *duel.Question) ([]duel.Decision, error) {
	names := make(map[string]string, len(q.Nodes))
	for i := range q.Nodes {
		names[q.Nodes[i].Claim.Name] = q.Nodes[i].Node.Name
	}
	var decisions []duel.Decision
	for _, command := range plan.Disrupt(Input(q)).Commands {
		d := duel.Decision{Reason: string(command.Reason)}
		for _, key := range command.Nodes {
			d.Nodes = append(d.Nodes, names[key])
		}
		for i := range command.Replacements {
			d.Buy = append(d.Buy, machine(&command.Replacements[i]))
		}
		decisions = append(decisions, d)
	}
	return decisions, nil
}
