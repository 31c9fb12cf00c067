package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// twoPools are six empty nodes of NodePool p and two of q.
func twoPools() world {
	w := world{pools: []plan.Pool{{NodePool: nodePool("p")}, {NodePool: nodePool("q")}}}
	for i := range 8 {
		w.nodes = append(w.nodes, existing(string(rune('a'+i)), "m6i.large", func(n *plan.Node) {
			n.Created = now.Add(time.Duration(i-10) * time.Hour)
			if i >= 6 {
				n.Pool = "q"
			}
		}))
	}
	return w
}

func TestClusterBudgets(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		// cluster are the cluster's budgets, pool those of NodePool p.
		cluster, pool []karpv1.Budget
		// leaving is how many nodes of q leave already.
		leaving int
		goes    int
		why     string
	}{
		{reason: "without budgets all go", goes: 8},
		{reason: "a number counts the nodes of all NodePools", cluster: []karpv1.Budget{{Nodes: "3"}}, goes: 3, why: "the cluster's budgets allow 3 of 8 nodes to be disrupted at once for being empty, and 3 are (--disruption-budgets)"},
		{reason: "so does a percentage", cluster: []karpv1.Budget{{Nodes: "50%"}}, goes: 4, why: "allow 4 of 8 nodes"},
		{reason: "what leaves already counts", cluster: []karpv1.Budget{{Nodes: "3"}}, leaving: 2, goes: 1, why: "the cluster's budgets"},
		{reason: "a budget for another reason says nothing", cluster: []karpv1.Budget{{Nodes: "0", Reasons: []karpv1.DisruptionReason{drifted}}}, goes: 8},
		{reason: "a NodePool's own holds beside it", cluster: []karpv1.Budget{{Nodes: "3"}}, pool: []karpv1.Budget{{Nodes: "1"}}, goes: 3, why: "be disrupted at once for being empty"},
		{reason: "none go where none may", cluster: []karpv1.Budget{{Nodes: "0"}}, why: "allow 0 of 8 nodes"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			w := twoPools()
			if test.pool != nil {
				w.pools[0].NodePool.Spec.Disruption.Budgets = test.pool
			}
			for i := range test.leaving {
				w.nodes[6+i].Disrupted, w.nodes[6+i].Deleting = true, true
			}
			in := w.input()
			in.Budgets = test.cluster
			found := emptiness(in)
			goes := 0
			for _, command := range found.Commands {
				goes += len(command.Nodes)
			}
			if goes != test.goes {
				t.Errorf("%d go, want %d", goes, test.goes)
			}
			for _, v := range found.Verdicts {
				if v.Cause == plan.CauseBudget && !strings.Contains(v.Message, test.why) {
					t.Errorf("%s stays because %q, want %q", v.Node, v.Message, test.why)
				}
			}
		})
	}
}

// TestLimits says how far budgets and rates are used up.
func TestLimits(t *testing.T) {
	t.Parallel()
	w := twoPools()
	w.nodes[0].Disrupted, w.nodes[0].Deleting = true, true
	w.pools[1].NodePool.Annotations = map[string]string{karpv1.DisruptionRateAnnotationKey: "1/10m"}
	in := w.input()
	in.Budgets = []karpv1.Budget{{Nodes: "25%", Reasons: []karpv1.DisruptionReason{drifted}}}
	in.Rate = &karpv1.DisruptionRate{Within: time.Hour}
	in.Rate.Nodes.IntVal = 5
	in.Begun = map[string][]karpv1.Begun{"p": {{Nodes: 2, At: now.Add(-30 * time.Minute)}}, "q": {{Nodes: 1, At: now.Add(-time.Minute)}}}
	want := []plan.Limit{{Reason: drifted, Allowed: 2, Used: 1, Left: 1}, {Rate: true, Allowed: 5, Used: 3, Left: 2}, {NodePool: "q", Rate: true, Allowed: 1, Used: 1}}
	if diff := cmp.Diff(want, plan.Limits(in)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// No evaluation goes beyond a budget of the cluster, whatever the NodePools allow.
func TestClusterBudgetsHold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := new(plan.Interner)
		w := twoPools()
		w.intern = in
		for i := range w.nodes {
			switch rapid.IntRange(0, 3).Draw(t, "node") {
			case 0:
				hasDrifted(i)(w.nodes[i])
			case 1:
				markedExpired(w.nodes[i])
			case 2:
				w.nodes[i].Disrupted, w.nodes[i].Deleting = true, true
			}
		}
		w.pools[0].NodePool.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: fmt.Sprint(rapid.IntRange(0, 8).Draw(t, "pool"))}}
		input := w.input()
		most := rapid.IntRange(0, 8).Draw(t, "cluster")
		input.Budgets = []karpv1.Budget{{Nodes: fmt.Sprint(most)}}
		used, goes := 0, 0
		for _, n := range w.nodes {
			if n.Leaving() {
				used++
			}
		}
		for _, command := range plan.Disrupt(input).Commands {
			goes += len(command.Nodes)
		}
		if goes > max(0, most-used) {
			t.Fatalf("%d go beside %d that leave, where %d may", goes, used, most)
		}
	})
}
