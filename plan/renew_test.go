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
	"github.com/tenon-sh/tenon/plan/lifecycle"
)

// goingFor returns the nodes of the commands for a reason, in order.
func goingFor(d plan.Disruption, reason karpv1.DisruptionReason) []string {
	var nodes []string
	for _, command := range d.Commands {
		if command.Reason == reason {
			nodes = append(nodes, command.Nodes...)
		}
	}
	return nodes
}

// Drifted nodes are removed in the order of their drift, each on its own. One that cannot be removed does not stop the
// others.
func TestDriftInTurn(t *testing.T) {
	t.Parallel()
	in := new(plan.Interner)
	big := func(name string) *corev1.Pod { return newPod(name, "1800m", "1Gi") }
	w := world{
		pools: []plan.Pool{{NodePool: nodePool("p", consolidates(karpv1.ConsolidationPolicyWhenEmpty, 0), requires(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, "m6i.large")), Types: smallCatalogue()}},
		nodes: []*plan.Node{
			existing("late", "m6i.large", hasDrifted(30), running(in, big("late"))),
			existing("early", "m6i.large", hasDrifted(10), running(in, big("early"))),
			// No machine of the pool takes this node's pod.
			existing("stuck", "m6i.4xlarge", hasDrifted(0), running(in, newPod("stuck", "15", "1Gi"))),
			existing("daemons", "m6i.large", hasDrifted(40), running(in, newPod("daemon", "100m", "1Mi", ofDaemonSet))),
			existing("fine", "m6i.large", running(in, big("fine"))),
		},
	}
	w.pools[0].NodePool.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "0", Reasons: []karpv1.DisruptionReason{empty}}, {Nodes: "100%"}}
	d := plan.Disrupt(w.input())
	if got, want := goingFor(d, drifted), []string{"claim-daemons", "claim-early", "claim-late"}; !slices.Equal(got, want) {
		t.Errorf("%v go, want %v", got, want)
	}
	for _, command := range d.Commands {
		node := command.Nodes[0]
		if want := node != "claim-daemons"; (len(command.Replacements) == 1) != want {
			t.Errorf("%s is replaced by %v", node, command.Replacements)
		}
		if len(command.Replacements) == 1 && (command.Moves != 1 || command.Replacements[0].InstanceTypes[0] != "m6i.large" || len(command.Replacements[0].Pods) != 1) {
			t.Errorf("%s moves %d pods to %+v: the same type will do", node, command.Moves, command.Replacements)
		}
		if !strings.Contains(command.Why, "NodePoolDrifted") {
			t.Errorf("%s goes because %q", node, command.Why)
		}
	}
	if v := verdictsOf(d, "claim-stuck")[drifted]; v.Cause != plan.CauseRoom || !strings.Contains(v.Message, "default/stuck") {
		t.Errorf("the one that cannot go: %+v", v)
	}
}

// One evaluation replaces a limited number of nodes, and says that there are more.
func TestDriftIsBounded(t *testing.T) {
	t.Parallel()
	in := new(plan.Interner)
	w := world{pools: []plan.Pool{{NodePool: nodePool("p", consolidates(karpv1.ConsolidationPolicyWhenEmpty, 0)), Types: smallCatalogue()}}}
	for i := range 120 {
		w.nodes = append(w.nodes, existing(fmt.Sprintf("n%03d", i), "m6i.large", hasDrifted(0), running(in, newPod(fmt.Sprintf("p%d", i), "1500m", "1Gi"))))
	}
	d := plan.Disrupt(w.input())
	if n := len(d.Commands); n != 50 || !d.Again {
		t.Errorf("%d commands, again %v", n, d.Again)
	}
}

// A pool that wants its pods Ready replaces one node at a time.
func TestOneStepAtATime(t *testing.T) {
	t.Parallel()
	in := new(plan.Interner)
	w := world{pools: []plan.Pool{{NodePool: nodePool("p", annotatedPool(karpv1.WaitForReadyAnnotationKey, "true")), Types: smallCatalogue()}}}
	for i := range 4 {
		w.nodes = append(w.nodes, existing(fmt.Sprintf("n%d", i), "m6i.large", hasDrifted(i), running(in, newPod(fmt.Sprintf("p%d", i), "1500m", "1Gi"))))
	}
	d := plan.Disrupt(w.input())
	if got := goingFor(d, drifted); !slices.Equal(got, []string{"claim-n0"}) || len(d.Commands) != 1 {
		t.Errorf("%+v", d.Commands)
	}
	if v := verdictsOf(d, "claim-n1")[drifted]; v.Cause != plan.CauseQuiet || !strings.Contains(v.Message, karpv1.WaitForReadyAnnotationKey) {
		t.Errorf("the next one: %+v", v)
	}
}

// Nodes of static pools are replaced one by one, within limits.nodes and budgets.
func TestStaticDrift(t *testing.T) {
	t.Parallel()
	in := new(plan.Interner)
	for _, tc := range []struct {
		reason string
		pool   *karpv1.NodePool
		want   []string
		cause  plan.Cause
	}{
		{reason: "all that have drifted", pool: static(3), want: []string{"claim-a", "claim-b"}, cause: ""},
		{reason: "as many as the limit leaves room for", pool: static(3, limitNodes("4")), want: []string{"claim-a"}, cause: plan.CauseRoom},
		{reason: "as many as the budget lets go", pool: static(3, budgets(karpv1.Budget{Nodes: "1"})), want: []string{"claim-a"}, cause: plan.CauseBudget},
		{reason: "none of a pool that is not Ready",
			pool: static(3, func(pool *karpv1.NodePool) { pool.Status.Conditions[0].Status = "False" }), cause: plan.CauseRoom},
	} {
		w := world{pools: []plan.Pool{{NodePool: tc.pool, Types: smallCatalogue()}}, nodes: []*plan.Node{
			ofStatic("a", hasDrifted(0), running(in, newPod("x"+tc.reason, "1", "1Gi"))), ofStatic("b", hasDrifted(1), running(in, newPod("y"+tc.reason, "1", "1Gi"))), ofStatic("c"),
		}}
		d := plan.Disrupt(w.input())
		if got := goingFor(d, drifted); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v go, want %v; %+v", tc.reason, got, tc.want, d.Verdicts)
		}
		for _, command := range d.Commands {
			if len(command.Replacements) != 1 || command.Replacements[0].NodePool != "static" || len(command.Replacements[0].Pods) > 0 {
				t.Errorf("%s: replaced by %+v", tc.reason, command.Replacements)
			}
		}
		if v := verdictsOf(d, "claim-b")[drifted]; v.Cause != tc.cause {
			t.Errorf("%s: the other one: %+v", tc.reason, v)
		}
	}
}

// While a node of a static pool is replaced, the pool neither lacks a node nor has one too many, whether the claim or
// the taint is seen first.
func TestStaticReplacementUnderWay(t *testing.T) {
	t.Parallel()
	part := func(n *plan.Node) { n.Replacement = "r-1" }
	launching := func(n *plan.Node) { n.Name, n.Launched, n.Initialized = "", false, false }
	for _, tc := range []struct {
		reason string
		nodes  []*plan.Node
	}{
		{"the claim is there", []*plan.Node{ofStatic("a"), ofStatic("b", launching, part)}},
		{"the taint is there", []*plan.Node{ofStatic("a", leaves, part)}},
		{"both are", []*plan.Node{ofStatic("a", leaves, part), ofStatic("b", launching, part)}},
		{"the new one serves", []*plan.Node{ofStatic("a", leaves, part), ofStatic("b", part)}},
		{"the old one is gone", []*plan.Node{ofStatic("b", part)}},
	} {
		snapshot := &plan.Snapshot{Time: now, NodePools: []*karpv1.NodePool{static(1)}, Nodes: tc.nodes}
		if lacking, surplus := plan.Shortages(snapshot), lifecycle.Overprovision(snapshot); len(lacking)+len(surplus) > 0 {
			t.Errorf("%s: lacking %v, surplus %v", tc.reason, lacking, surplus)
		}
	}
}

// TestDriftCompletes carries decisions out until nothing has drifted any more. Never are more nodes disrupted than the
// budget allows, every pod always has a place, and each round replaces as many as permitted.
func TestDriftCompletes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := new(plan.Interner)
		count, most := rapid.IntRange(5, 40).Draw(t, "nodes"), rapid.IntRange(1, 8).Draw(t, "budget")
		pool := plan.Pool{NodePool: nodePool("p", consolidates(karpv1.ConsolidationPolicyWhenEmpty, time.Hour*3), budgets(karpv1.Budget{Nodes: fmt.Sprint(most)})), Types: smallCatalogue()}
		var nodes []*plan.Node
		for i := range count {
			var pods []*corev1.Pod
			for j := range rapid.IntRange(0, 3).Draw(t, "pods") {
				pods = append(pods, newPod(fmt.Sprintf("p%d-%d", i, j), "500m", "1Gi"))
			}
			nodes = append(nodes, existing(fmt.Sprintf("n%03d", i), "m6i.large", hasDrifted(i), running(in, pods...)))
		}
		rounds := 0
		for ; slices.ContainsFunc(nodes, func(n *plan.Node) bool { return n.Drifted }); rounds++ {
			if rounds > 2*count {
				t.Fatalf("it does not end")
			}
			w := world{pools: []plan.Pool{pool}, nodes: nodes, intern: in}
			d := plan.Disrupt(w.input())
			if len(d.Commands) == 0 || len(d.Commands) > most {
				t.Fatalf("%d commands where %d may go: %+v", len(d.Commands), most, d.Verdicts)
			}
			nodes = carriedOut(t, nodes, d)
		}
		if least := (count + most - 1) / most; rounds > least+2 {
			t.Errorf("%d rounds for %d nodes, %d at a time", rounds, count, most)
		}
	})
}

// carriedOut returns a cluster after some commands: their pods are on what replaces their nodes, or where there is
// room.
func carriedOut(t *rapid.T, nodes []*plan.Node, d plan.Disruption) []*plan.Node {
	var rest []*plan.Node
	var moving []*plan.Pod
	left := map[string]bool{}
	for _, command := range d.Commands {
		for _, node := range command.Nodes {
			left[node] = true
		}
		for range command.Replacements {
			rest = append(rest, existing(fmt.Sprintf("r-%s", command.Nodes[0]), "m6i.large"))
		}
	}
	for _, n := range nodes {
		if left[n.Key()] {
			moving = append(moving, n.Pods...)
		} else {
			rest = append(rest, n)
		}
	}
	for _, pod := range moving {
		at := slices.IndexFunc(rest, func(n *plan.Node) bool {
			cpu := pod.Class.Requests.CPU
			for _, other := range n.Pods {
				cpu += other.Class.Requests.CPU
			}
			return cpu <= n.Allocatable.CPU
		})
		if at < 0 {
			t.Fatalf("there is no room for pod %s", pod.Key())
		}
		rest[at] = rest[at].WithPods(append(slices.Clone(rest[at].Pods), pod))
	}
	return rest
}

// The pods of nodes that are being replaced go to the replacements, and so do not keep other nodes from being replaced.
func TestSuccessorsTakeThePods(t *testing.T) {
	t.Parallel()
	in := new(plan.Interner)
	w := world{pools: []plan.Pool{{NodePool: nodePool("p", consolidates(karpv1.ConsolidationPolicyWhenEmpty, 0)), Types: smallCatalogue()}}}
	for i := range 6 {
		id := func(n *plan.Node) { n.Replacement = fmt.Sprint("r-", i) }
		w.nodes = append(w.nodes,
			existing(fmt.Sprintf("old%d", i), "m6i.large", leaves, id, running(in, newPod(fmt.Sprint("x", i), "500m", "1Gi"))),
			existing(fmt.Sprintf("new%d", i), "m6i.large", id, func(n *plan.Node) { n.Initialized = i%2 == 0 }),
			existing(fmt.Sprintf("next%d", i), "m6i.large", hasDrifted(i), running(in, newPod(fmt.Sprint("y", i), "500m", "1Gi"))))
	}
	if got := goingFor(plan.Disrupt(w.input()), drifted); len(got) != 6 {
		t.Errorf("%v go, and six have drifted", got)
	}
}
