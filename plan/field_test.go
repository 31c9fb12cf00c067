package plan_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenon-sh/tenon/plan"
)

// settledWorld returns a world in which nothing waits: some waiting pods of a drawn world run where there is room for
// them, and the rest are dropped.
func settledWorld(t *rapid.T, d drawing) *world {
	w := drawWorld(t, d)
	for _, pod := range w.pods {
		if len(w.nodes) == 0 || rapid.Bool().Draw(t, "goes") {
			continue
		}
		if n := oneOf(t, "settles on", w.nodes); n.Name != "" && w.hasRoom(n, pod) {
			pod.Spec.NodeName, pod.Status.Conditions = n.Name, nil
			w.bound[n.Key()] = append(w.bound[n.Key()], pod)
		}
	}
	w.pods = nil
	return w
}

// without returns the world with some nodes leaving.
func (w *world) without(keys ...string) *world {
	rest := *w
	rest.nodes = nil
	for _, n := range w.nodes {
		if slices.Contains(keys, n.Key()) {
			going := *n
			going.Deleting = true
			n = &going
		}
		rest.nodes = append(rest.nodes, n)
	}
	return &rest
}

// A trial leaves no trace, whatever it tried.
func TestForksLeaveNoTrace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, allWishes())
		in := w.input()
		f := plan.NewField(in)
		f.Relocate(0) // closes what is not ready
		f.Forget()
		before := f.String()
		for _, most := range []int{0, 1, 1 << 20} {
			for i, n := range in.Snapshot.Nodes {
				if going(n) {
					continue
				}
				f.Relocate(most, n)
				f.Forget()
				if after := f.String(); after != before {
					t.Fatalf("%v\nbuying %d, without %s:\n%s\nbefore:\n%s", w, most, n.Key(), after, before)
				}
				if i > 0 && !going(in.Snapshot.Nodes[i-1]) {
					f.Relocate(most, n, in.Snapshot.Nodes[i-1])
					f.Forget()
					if after := f.String(); after != before {
						t.Fatalf("%v\nbuying %d, without two:\n%s\nbefore:\n%s", w, most, after, before)
					}
				}
			}
		}
	})
}

// What a trial finds breaks no rule, and where Pack places all pods on existing nodes, a trial does so too.
func TestForksSayWhatPackSays(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]drawing{
		"no relations": {replicas: 12, settled: true, unlimited: true},
		"relations":    {replicas: 8, relations: relations(), settled: true, unlimited: true},
		"preferences":  {replicas: 8, preferences: preferences(), settled: true, unlimited: true},
		"in flight":    {replicas: 8, relations: relations(), unlimited: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				w := settledWorld(t, d)
				in := w.input()
				var standing []*plan.Node
				for _, n := range in.Snapshot.Nodes {
					if n.Initialized && !going(n) {
						standing = append(standing, n)
					}
				}
				if len(standing) == 0 {
					return
				}
				f := plan.NewField(in)
				n := oneOf(t, "goes away", standing)
				rest := w.without(n.Key())
				for _, pod := range rest.bound[n.Key()] {
					if !moves(pod, n) && !ownedBy(pod, "DaemonSet") {
						return
					}
				}
				if len(rest.waiting()) > len(w.waiting())+len(rest.bound[n.Key()]) || len(w.waiting()) > 0 {
					return
				}
				packed := plan.Pack(rest.input())
				stays := len(packed.Unplaced) == 0 && len(packed.Claims) == 0 && onto(packed, in)
				for _, most := range []int{0, 1, 1 << 20} {
					found, why, ok := f.Relocate(most, n)
					switch {
					case ok:
						check(t, rest, found)
					case stays && most > 0:
						// Only a trial that may buy gives up a preference that cannot be met.
						t.Fatalf("%v\nwithout %s, buying %d: %s; Pack: %s", w, n.Key(), most, why, outline(packed))
					}
				}
			})
		})
	}
}

// onto reports whether a plan places pods on initialized nodes only.
func onto(p plan.Plan, in plan.Input) bool {
	return !slices.ContainsFunc(p.Placements, func(placement plan.Placement) bool {
		return slices.ContainsFunc(in.Snapshot.Nodes, func(n *plan.Node) bool { return n.Key() == placement.Node && !n.Initialized })
	})
}
