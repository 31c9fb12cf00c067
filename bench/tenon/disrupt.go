package tenon

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/bench/compare"
	"github.com/tenon-sh/tenon/plan"
)

// Look is one evaluation of a cluster.
type Look struct {
	Disruption plan.Disruption
	// Took is the elapsed time, CPU the CPU time.
	Took, CPU time.Duration
}

// Disrupt asks plan.Disrupt which nodes may be removed. Only Disrupt itself is timed.
func Disrupt(q *compare.Question) Look {
	in := Input(q)
	runtime.GC()
	start, used := time.Now(), compare.CPU()
	disruption := plan.Disrupt(in)
	return Look{disruption, time.Since(start), compare.CPU() - used}
}

// MedianDisrupt asks three times, each time with a fresh snapshot, and returns the Look with the median time.
func MedianDisrupt(q *compare.Question) Look {
	looks := make([]Look, 3)
	for i := range looks {
		looks[i] = Disrupt(q)
	}
	slices.SortFunc(looks, func(a, b Look) int { return cmp.Compare(a.Took, b.Took) })
	return looks[1]
}

// Consolidate returns what plan.Disrupt would remove: all commands at once.
func Consolidate(_ context.Context, q *compare.Question) ([]compare.Decision, error) {
	names := make(map[string]string, len(q.Nodes))
	for i := range q.Nodes {
		names[q.Nodes[i].Claim.Name] = q.Nodes[i].Node.Name
	}
	var decisions []compare.Decision
	for _, command := range plan.Disrupt(Input(q)).Commands {
		d := compare.Decision{Reason: string(command.Reason), LargeFirst: plan.PlacesPods(command.Reason)}
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
