package plan_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/tenon-sh/tenon/plan"
)

// No plan breaks a rule, whatever the input.
func TestPlansBreakNoRule(t *testing.T) {
	t.Parallel()
	kinds := map[string]drawing{
		"no relations":      {replicas: 25},
		"relations":         {replicas: 12, relations: relations()},
		"one of each":       {replicas: 2, relations: relations()},
		"preferences":       {replicas: 12, preferences: preferences()},
		"everything":        allWishes(),
		"nothing in flight": {replicas: 8, relations: relations(), preferences: preferences(), settled: true, unlimited: true, anyChoice: true},
	}
	for name, d := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				w := drawWorld(t, d)
				t.Log(w)
				check(t, w, plan.Pack(w.input()))
			})
		})
	}
}

// The same input gives the same plan, in whatever order it comes.
func TestOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, allWishes())
		t.Log(w)
		in := w.input()
		p := plan.Pack(in)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 1))
		again, snapshot := in, *in.Snapshot
		again.Snapshot = &snapshot
		snapshot.Pending = shuffled(r, snapshot.Pending)
		snapshot.Nodes = shuffled(r, snapshot.Nodes)
		snapshot.DaemonSets = shuffled(r, snapshot.DaemonSets)
		again.Pools = shuffled(r, again.Pools)
		if diff := comparePlans(p, plan.Pack(again)); diff != "" {
			t.Fatalf("the plan depends on the order of its input (-first +second):\n%s", diff)
		}
	})
}

func shuffled[T any](r *rand.Rand, values []T) []T {
	values = append([]T(nil), values...)
	r.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
	return values
}

func comparePlans(a, b plan.Plan) string {
	return cmp.Diff(a, b, cmpopts.IgnoreUnexported(plan.Pod{}, plan.Class{}, plan.Labels{}),
		cmp.Comparer(func(a, b *plan.Pod) bool { return a == b }))
}
