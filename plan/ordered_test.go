package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// TestReplaceOrdered replaces a node with a pod on order. Beside it there is room for the pod on another node, or not.
func TestReplaceOrdered(t *testing.T) {
	t.Parallel()
	undisruptable := func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{karpv1.DoNotDisruptAnnotationKey: "true"}
	}
	for _, test := range []struct {
		reason  string
		room    bool
		pod     func(*corev1.Pod)
		node    func(*plan.Node)
		pool    func(*karpv1.NodePool)
		paused  bool
		launch  bool
		none    bool // the node has no pod
		comes   int
		kept    plan.Cause
		despite []plan.Cause
	}{
		{reason: "what its pod needs is launched first", comes: 1},
		{reason: "its pod fits on another node, and nothing is launched", room: true},
		{reason: "the order wants a launch all the same", room: true, launch: true, comes: 1},
		{reason: "without pods nothing is launched", none: true},
		{reason: "a static NodePool gets a node like it", pool: func(pool *karpv1.NodePool) { pool.Spec.Replicas = new(int64(1)) }, comes: 1},
		{reason: "budgets do not limit a person, and are named", pool: budgets(karpv1.Budget{Nodes: "0"}), comes: 1, despite: []plan.Cause{plan.CauseBudget}},
		{reason: "a budget for a reason of the planner's is none for an order", pool: budgets(karpv1.Budget{Nodes: "0", Reasons: []karpv1.DisruptionReason{drifted}}), comes: 1},
		{reason: "a pause does not stop a person, and is named", paused: true, comes: 1, despite: []plan.Cause{plan.CausePaused}},
		{reason: "nor does what protects the node", node: func(n *plan.Node) { n.DoNotDisrupt = true }, comes: 1, despite: []plan.Cause{plan.CauseNode}},
		{reason: "a pod that asks not to be disrupted holds up the drain, and is named", pod: undisruptable, comes: 1, despite: []plan.Cause{plan.CausePod}},
		{reason: "a node that goes is not replaced", node: func(n *plan.Node) { n.Disrupted, n.Deleting = true, true }, kept: plan.CauseLeaving},
		{reason: "nor is one that does not serve yet", node: func(n *plan.Node) { n.Initialized = false }, kept: plan.CauseNode},
		{reason: "nor is one of no NodePool", node: func(n *plan.Node) { n.Pool = "" }, kept: plan.CausePolicy},
		{reason: "nor is one for whose pod nothing can be bought", kept: plan.CauseRoom, pool: func(pool *karpv1.NodePool) {
			pool.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"none"}}}
		}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			in := new(plan.Interner)
			pod := newPod("web", "1500m", "1Gi")
			if test.pod != nil {
				test.pod(pod)
			}
			node := existing("old", "m6i.large")
			if !test.none {
				running(in, pod)(node)
			}
			if test.node != nil {
				test.node(node)
			}
			w := world{nodes: []*plan.Node{node}, intern: in, pools: []plan.Pool{{NodePool: nodePool("p", onDemand()), Types: smallCatalogue()}}}
			if test.pool != nil {
				test.pool(w.pools[0].NodePool)
			}
			if test.room {
				w.nodes = append(w.nodes, existing("free", "m6i.large"))
			}
			input := w.input()
			if test.paused {
				input.Snapshot.Pauses = []karpv1.Pause{{What: karpv1.PauseDisruption}}
			}
			got := plan.Replace(input, plan.ReplacementOrder{Nodes: []string{node.Key()}, Launch: test.launch, Grounds: "alice has ordered it"})
			if test.kept != "" {
				if len(got.Commands) > 0 || len(got.Kept) != 1 || got.Kept[0].Cause != test.kept {
					t.Fatalf("got %+v, want it kept for %s", got, test.kept)
				}
				return
			}
			if len(got.Commands) != 1 || len(got.Kept) > 0 {
				t.Fatalf("got %+v", got)
			}
			command := got.Commands[0]
			if len(command.Replacements) != test.comes || !slices.Equal(command.Nodes, []string{"claim-old"}) || command.Reason != plan.DisruptionReasonOrdered ||
				!strings.HasPrefix(command.Why, "alice has ordered it; ") {
				t.Errorf("the command is %+v", command)
			}
			var despite []plan.Cause
			for _, v := range got.Despite {
				despite = append(despite, v.Cause)
			}
			if !slices.Equal(despite, test.despite) {
				t.Errorf("despite %v, want %v", despite, test.despite)
			}
			// Just before the old node goes, what the planner respects does not keep it either.
			for _, verdict := range plan.Confirm(input, plan.Command{Reason: plan.DisruptionReasonOrdered, Nodes: command.Nodes}) {
				if verdict.Cause != plan.CauseRoom {
					t.Errorf("at last it is kept by %+v", verdict)
				}
			}
		})
	}
}

// An order removes nothing that it does not name, and every pod of what it removes has a place beside the nodes that go.
func TestReplaceOrderedOnlyWhatIsNamed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := new(plan.Interner)
		w := world{intern: in, pools: []plan.Pool{{NodePool: nodePool("p", onDemand()), Types: smallCatalogue()}}}
		var named []string
		for i := range rapid.IntRange(1, 8).Draw(t, "nodes") {
			n := existing(fmt.Sprintf("n%d", i), rapid.SampledFrom([]string{"m6i.large", "m6i.xlarge"}).Draw(t, "type"), func(n *plan.Node) { n.Created = now.Add(-time.Hour) })
			for p := range rapid.IntRange(0, 3).Draw(t, "pods") {
				running(in, newPod(fmt.Sprintf("p%d-%d", i, p), rapid.SampledFrom([]string{"100m", "500m"}).Draw(t, "cpu"), "256Mi"))(n)
			}
			w.nodes = append(w.nodes, n)
			if rapid.Bool().Draw(t, "named") {
				named = append(named, n.Key())
			}
		}
		got := plan.Replace(w.input(), plan.ReplacementOrder{Nodes: named, Launch: rapid.Bool().Draw(t, "launch")})
		going, moves := map[string]bool{}, 0
		for _, command := range got.Commands {
			if len(command.Nodes) != 1 || !slices.Contains(named, command.Nodes[0]) || going[command.Nodes[0]] {
				t.Fatalf("%v were named, and %v go", named, command.Nodes)
			}
			going[command.Nodes[0]] = true
			moves += command.Moves
		}
		if len(going)+len(got.Kept) != len(named) {
			t.Fatalf("of %v, %v go and %v stay", named, going, got.Kept)
		}
		free, bought := int64(0), 0
		for _, n := range w.nodes {
			if going[n.Key()] {
				continue
			}
			free += n.Allocatable.CPU
			for _, pod := range n.Pods {
				free -= pod.Class.Requests.CPU
			}
		}
		need := int64(0)
		for _, n := range w.nodes {
			for _, pod := range n.Pods {
				if going[n.Key()] {
					need += pod.Class.Requests.CPU
				}
			}
		}
		for _, command := range got.Commands {
			bought += len(command.Replacements)
		}
		if bought == 0 && need > free {
			t.Fatalf("pods of %d millicores go to nodes with %d left", need, free)
		}
	})
}
