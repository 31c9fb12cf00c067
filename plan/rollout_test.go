package plan_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// rolledPool is a NodePool with a rollout whose state and order are given.
func rolledPool(steps string, state karpv1.RolloutState, order karpv1.RolloutOrder, more ...string) *karpv1.NodePool {
	return nodePool("p", func(p *karpv1.NodePool) {
		p.Annotations = map[string]string{karpv1.RolloutAnnotationKey: steps}
		for key, value := range map[string]any{karpv1.RolloutStateAnnotationKey: state, karpv1.RolloutOrderAnnotationKey: order} {
			text, err := json.Marshal(value)
			if err != nil {
				panic(err)
			}
			p.Annotations[key] = string(text)
		}
		for i := 0; i < len(more); i += 2 {
			p.Annotations[more[i]] = more[i+1]
		}
	})
}

// began is when the rollouts of these tests began, half an hour ago.
var began = now.Add(-30 * time.Minute)

// underWay is a rollout at its first step, whose nodes have drifted.
func underWay(change ...func(*karpv1.RolloutState)) karpv1.RolloutState {
	state := karpv1.RolloutState{Target: "new", Began: began, Seen: began.Add(time.Second)}
	for _, with := range change {
		with(&state)
	}
	return state
}

// oldNodes are drifted nodes of pool p.
func oldNodes(count int) (nodes []plan.RolloutNode) {
	for i := range count {
		nodes = append(nodes, plan.RolloutNode{LaunchedAt: began.Add(-time.Hour), Node: &plan.Node{Name: fmt.Sprintf("old%d", i), Claim: fmt.Sprintf("old%d", i), Pool: "p", Launched: true, Registered: true, Initialized: true, Ready: true,
			Drifted: true, DriftedAt: began.Add(time.Second), Created: began.Add(-time.Hour), InitializedAt: began.Add(-time.Hour)}})
	}
	return nodes
}

// newNode is a node of the target that has served for twenty minutes.
func newNode(name string, change ...func(*plan.RolloutNode)) plan.RolloutNode {
	n := plan.RolloutNode{LaunchedAt: began.Add(time.Minute), Node: &plan.Node{Name: name, Claim: name, Pool: "p", Launched: true, Registered: true, Initialized: true, Ready: true,
		Created: began.Add(time.Minute), InitializedAt: began.Add(2 * time.Minute)}}
	for _, with := range change {
		with(&n)
	}
	return n
}

func filled(ago time.Duration) func(*karpv1.RolloutState) {
	return func(s *karpv1.RolloutState) { s.Filled = now.Add(-ago) }
}

func atStep(step int) func(*karpv1.RolloutState) {
	return func(s *karpv1.RolloutState) { s.Step = step }
}

// podOn puts a pod of a ReplicaSet on a node.
func podOn(uid types.UID) func(*plan.RolloutNode) {
	return func(n *plan.RolloutNode) {
		n.Pods = append(n.Pods, &plan.Pod{UID: uid, Namespace: "default", Name: string(uid), OwnerKind: "ReplicaSet", OwnerName: "web", Node: n.Name})
	}
}

func TestJudgeRollout(t *testing.T) {
	t.Parallel()
	const steps = "1,50%,100%"
	unready := func(uid types.UID, ago time.Duration) map[types.UID]time.Time {
		return map[types.UID]time.Time{uid: now.Add(-ago)}
	}
	late := func(n *plan.RolloutNode) {
		n.Name, n.Initialized, n.Registered, n.Ready = "", false, false, false
	}
	ill := func(ago time.Duration) func(*plan.RolloutNode) {
		return func(n *plan.RolloutNode) {
			n.Ill, n.IllSince = "condition KernelReady is False", now.Add(-ago)
		}
	}
	query := []string{karpv1.RolloutQueryAnnotationKey, "up"}
	resumed := karpv1.RolloutOrder{What: karpv1.RolloutResume, At: now.Add(-time.Minute)}
	stopped := func(s *karpv1.RolloutState) { s.Stopped, s.StoppedAt = "node n is ill", now.Add(-5*time.Minute) }
	for _, test := range []struct {
		why      string
		pool     *karpv1.NodePool
		target   string
		previous string
		nodes    []plan.RolloutNode
		others   []*plan.Node
		unready  map[types.UID]time.Time
		answer   plan.RolloutAnswer
		// reason and says are those of the condition, step, filled and asks the state after the judgement.
		reason, says string
		step         int
		filled, asks bool
	}{
		{why: "no node has drifted, and nothing is to be done", pool: rolledPool(steps, karpv1.RolloutState{}, karpv1.RolloutOrder{}), nodes: []plan.RolloutNode{newNode("a")}, reason: karpv1.RolloutComplete, says: "no node has drifted"},
		{why: "a new target begins at the first step", pool: rolledPool(steps, underWay(atStep(2), filled(time.Hour)), karpv1.RolloutOrder{}), target: "newer", nodes: oldNodes(4), reason: karpv1.RolloutProgressing, says: "step 1 of 3 (1): 0 of 4 nodes are new, 4 have drifted"},
		{why: "what was there before has proved itself, and needs no steps", pool: rolledPool(steps, underWay(), karpv1.RolloutOrder{}), target: "before", previous: "before", nodes: oldNodes(1), reason: karpv1.RolloutProgressing, says: "going back", step: 3},
		{why: "while the target is not known, nothing is decided", pool: rolledPool(steps, underWay(atStep(1)), karpv1.RolloutOrder{}), target: "-", nodes: oldNodes(4), reason: karpv1.RolloutUnknown, says: "not known", step: 1},
		{why: "steps that cannot be read", pool: rolledPool("1,10", underWay(), karpv1.RolloutOrder{}, karpv1.RolloutGateAnnotationKey, "node"), nodes: oldNodes(4), reason: karpv1.RolloutInvalid, says: `"node" must be nodes, pods`},
		{why: "a step lacks a node while the new one does not serve", pool: rolledPool(steps, underWay(), karpv1.RolloutOrder{}), nodes: append(oldNodes(3), newNode("a", late, func(n *plan.RolloutNode) { n.LaunchedAt = now.Add(-time.Minute) })), reason: karpv1.RolloutProgressing, says: "1 of 4 nodes are new"},
		{why: "a step is filled when its nodes serve, and bakes", pool: rolledPool(steps, underWay(), karpv1.RolloutOrder{}), nodes: append(oldNodes(3), newNode("a")), reason: karpv1.RolloutBaking, says: "step 1 of 3 (1) is watched until 2026-03-01T12:10:00Z", filled: true},
		{why: "it is not filled before the pods of the old node have moved", pool: rolledPool(steps, underWay(), karpv1.RolloutOrder{}), nodes: append(oldNodes(3), newNode("a"), func() plan.RolloutNode {
			n := oldNodes(1)[0]
			gone := *n.Node
			gone.Claim, gone.Deleting, gone.Replacement = "leaving", true, "r"
			return plan.RolloutNode{Node: &gone}
		}()), reason: karpv1.RolloutProgressing, says: "and 1 leave"},
		{why: "it bakes for its time", pool: rolledPool(steps, underWay(filled(9*time.Minute)), karpv1.RolloutOrder{}), nodes: append(oldNodes(3), newNode("a")), reason: karpv1.RolloutBaking, says: "is watched until 2026-03-01T12:01:00Z", filled: true},
		{why: "then comes the next step", pool: rolledPool(steps, underWay(filled(11*time.Minute)), karpv1.RolloutOrder{}), nodes: append(oldNodes(3), newNode("a")), reason: karpv1.RolloutProgressing, says: "step 2 of 3 (50%)", step: 1},
		{why: "a step that adds no node is passed over", pool: rolledPool(steps, underWay(filled(11*time.Minute)), karpv1.RolloutOrder{}), nodes: append(oldNodes(1), newNode("a")), reason: karpv1.RolloutProgressing, says: "step 3 of 3 (100%)", step: 2},
		{why: "when no node is left, it is over", pool: rolledPool(steps, underWay(atStep(2), filled(11*time.Minute)), karpv1.RolloutOrder{}), nodes: []plan.RolloutNode{newNode("a")}, reason: karpv1.RolloutComplete, says: "no node has drifted any more", step: 3},
		{why: "below 100 %, a person has to say that it goes on", pool: rolledPool("1,50%", underWay(atStep(1), filled(11*time.Minute)), karpv1.RolloutOrder{}), nodes: append(oldNodes(2), newNode("a"), newNode("b")), reason: karpv1.RolloutStopped, says: "the last step is done, and 2 nodes have drifted", step: 2},

		{why: "a machine that does not join in time", pool: rolledPool(steps, underWay(), karpv1.RolloutOrder{}), nodes: append(oldNodes(3), newNode("a", late)), reason: karpv1.RolloutStopped, says: "stopped at step 1 of 3 (1): node a is not Ready 5m0s after its launch"},
		{why: "that a machine is not even launched, is not its image's fault", pool: rolledPool(steps, underWay(), karpv1.RolloutOrder{}), nodes: append(oldNodes(3), newNode("a", late, func(n *plan.RolloutNode) { n.LaunchedAt = time.Time{} })), reason: karpv1.RolloutProgressing, says: "step 1"},
		{why: "a new node that is ill", pool: rolledPool(steps, underWay(filled(time.Minute)), karpv1.RolloutOrder{}), nodes: append(oldNodes(3), newNode("a", ill(2*time.Minute))), reason: karpv1.RolloutStopped, says: "node a is ill: condition KernelReady is False", filled: true},
		{why: "also one that is being repaired", pool: rolledPool(steps, underWay(filled(time.Minute)), karpv1.RolloutOrder{}), nodes: append(oldNodes(3), newNode("a", ill(2*time.Minute), func(n *plan.RolloutNode) { n.Deleting = true })), reason: karpv1.RolloutStopped, says: "node a is ill", filled: true},
		{why: "a moment is waited for", pool: rolledPool(steps, underWay(filled(time.Hour)), karpv1.RolloutOrder{}), nodes: append(oldNodes(3), newNode("a", ill(10*time.Second))), reason: karpv1.RolloutBaking, says: "it waits for node a: condition", filled: true},
		{why: "that an old node is ill says nothing of the new", pool: rolledPool(steps, underWay(filled(time.Minute)), karpv1.RolloutOrder{}), nodes: append([]plan.RolloutNode{newNode("a")}, func() []plan.RolloutNode {
			nodes := oldNodes(2)
			nodes[0].Ill, nodes[0].IllSince = "condition Ready is False", now.Add(-time.Hour)
			return nodes
		}()...), reason: karpv1.RolloutBaking, filled: true},
		{why: "who does not look at nodes, does not see it", pool: rolledPool(steps, underWay(filled(time.Minute)), karpv1.RolloutOrder{}, karpv1.RolloutGateAnnotationKey, "pods"), nodes: append(oldNodes(3), newNode("a", ill(2*time.Minute))), reason: karpv1.RolloutBaking, filled: true},

		{why: "a pod on a new node that is not Ready in time", pool: rolledPool(steps, underWay(filled(time.Minute)), karpv1.RolloutOrder{}), nodes: append(oldNodes(3), newNode("a", podOn("web-1"))), unready: unready("web-1", 6*time.Minute), reason: karpv1.RolloutStopped, says: "pod default/web-1 on new node a has not been Ready for 5m0s", filled: true},
		{why: "a pod that came after the step has baked does not hold it", pool: rolledPool(steps, underWay(filled(time.Hour)), karpv1.RolloutOrder{}), nodes: append(oldNodes(3), newNode("a", podOn("web-1"))), unready: unready("web-1", 4*time.Minute), reason: karpv1.RolloutProgressing, says: "step 2", step: 1},
		{why: "a pod that came while it baked is waited for", pool: rolledPool(steps, underWay(filled(11*time.Minute)), karpv1.RolloutOrder{}), nodes: append(oldNodes(3), newNode("a", podOn("web-1"))), unready: unready("web-1", 2*time.Minute), reason: karpv1.RolloutBaking, says: "it waits for pod default/web-1 on new node a to be Ready", filled: true},
		{why: "a pod whose like is not Ready on an old node has a problem of its own", pool: rolledPool(steps, underWay(filled(time.Minute)), karpv1.RolloutOrder{}), nodes: append([]plan.RolloutNode{newNode("a", podOn("web-1"))}, func() []plan.RolloutNode {
			nodes := oldNodes(2)
			podOn("web-2")(&nodes[1])
			return nodes
		}()...), unready: map[types.UID]time.Time{"web-1": began, "web-2": began}, reason: karpv1.RolloutBaking, filled: true},

		{why: "a query is asked once the nodes serve", pool: rolledPool(steps, underWay(), karpv1.RolloutOrder{}, query...), nodes: append(oldNodes(3), newNode("a")), reason: karpv1.RolloutBaking, filled: true, asks: true},
		{why: "a query that was not answered holds the step", pool: rolledPool(steps, underWay(filled(time.Hour)), karpv1.RolloutOrder{}, query...), nodes: append(oldNodes(3), newNode("a")), reason: karpv1.RolloutBaking, says: "has not been answered yet", filled: true, asks: true},
		{why: "so does one that cannot be asked", pool: rolledPool(steps, underWay(filled(time.Hour)), karpv1.RolloutOrder{}, query...), nodes: append(oldNodes(3), newNode("a")), answer: plan.RolloutAnswer{At: now, Unknown: "connection refused"}, reason: karpv1.RolloutBaking, says: "cannot be asked: connection refused", filled: true, asks: true},
		{why: "and an answer from before", pool: rolledPool(steps, underWay(filled(time.Hour)), karpv1.RolloutOrder{}, query...), nodes: append(oldNodes(3), newNode("a")), answer: plan.RolloutAnswer{At: now.Add(-2 * time.Minute)}, reason: karpv1.RolloutBaking, filled: true, asks: true},
		{why: "a good answer ends it", pool: rolledPool(steps, underWay(filled(time.Hour)), karpv1.RolloutOrder{}, query...), nodes: append(oldNodes(3), newNode("a")), answer: plan.RolloutAnswer{At: now}, reason: karpv1.RolloutProgressing, step: 1, asks: true},
		{why: "a bad one stops it at once", pool: rolledPool(steps, underWay(filled(time.Minute)), karpv1.RolloutOrder{}, query...), nodes: append(oldNodes(3), newNode("a")), answer: plan.RolloutAnswer{At: now, Failed: "returns no samples"}, reason: karpv1.RolloutStopped, says: "the query (tenon.sh/rollout-query) returns no samples", filled: true},

		{why: "what has stopped stays so, whatever has become of its cause", pool: rolledPool(steps, underWay(filled(time.Hour), stopped), karpv1.RolloutOrder{}), nodes: append(oldNodes(3), newNode("a")), reason: karpv1.RolloutStopped, says: "node n is ill", filled: true},
		{why: "until a person has it go on: what is ill now does not count, and it bakes anew", pool: rolledPool(steps, underWay(filled(time.Hour), stopped), resumed), nodes: append(oldNodes(3), newNode("a", ill(time.Hour))), reason: karpv1.RolloutBaking, says: "is watched until 2026-03-01T12:09:00Z", filled: true},
		{why: "an order from before it stopped is over", pool: rolledPool(steps, underWay(stopped), karpv1.RolloutOrder{What: karpv1.RolloutResume, At: now.Add(-time.Hour)}), nodes: oldNodes(3), reason: karpv1.RolloutStopped, says: "node n is ill"},
		{why: "a person stops it, whatever its target", pool: rolledPool(steps, underWay(), karpv1.RolloutOrder{What: karpv1.RolloutStop, At: now.Add(-time.Hour), By: "alice", Reason: "latency"}), target: "newer", nodes: oldNodes(3), reason: karpv1.RolloutStopped, says: "by alice: latency"},
	} {
		t.Run(test.why, func(t *testing.T) {
			t.Parallel()
			facts := plan.RolloutFacts{Pool: test.pool, Target: test.target, Previous: test.previous, Nodes: test.nodes, Others: test.others, Unready: test.unready, Answer: test.answer, Now: now}
			switch test.target {
			case "":
				facts.Target = "new"
			case "-":
				facts.Target = ""
			}
			got := plan.JudgeRollout(facts)
			if got.Reason != test.reason || !strings.Contains(got.Message, test.says) || got.State.Step != test.step || got.State.Filled.IsZero() == test.filled || got.Asks != test.asks {
				t.Errorf("got %s (%s), step %d, filled %s, asks %v; want %s (%s), step %d, filled %v, asks %v", got.Reason, got.Message, got.State.Step, got.State.Filled, got.Asks, test.reason, test.says, test.step, test.filled, test.asks)
			}
			// A judgement of what was judged a moment ago is the same.
			facts.Pool = rolledPool(test.pool.Annotations[karpv1.RolloutAnnotationKey], got.State, orderOf(t, test.pool), settingsOf(test.pool)...)
			if again := plan.JudgeRollout(facts); got.Reason != karpv1.RolloutProgressing && (again.State != got.State || again.Reason != got.Reason || again.Message != got.Message) {
				t.Errorf("judged again: %+v, was %+v", again, got)
			}
		})
	}
}

func orderOf(t *testing.T, pool *karpv1.NodePool) karpv1.RolloutOrder {
	t.Helper()
	order, err := pool.RolloutOrder()
	if err != nil {
		t.Fatal(err)
	}
	return order
}

func settingsOf(pool *karpv1.NodePool) (more []string) {
	for _, key := range []string{karpv1.RolloutQueryAnnotationKey, karpv1.RolloutGateAnnotationKey} {
		if value, some := pool.Annotations[key]; some {
			more = append(more, key, value)
		}
	}
	return more
}

// TestRolloutLimitsDrift checks how many of four drifted nodes go at once.
func TestRolloutLimitsDrift(t *testing.T) {
	t.Parallel()
	coming := func(n *plan.Node) {
		n.Drifted, n.Created, n.Launched, n.Initialized, n.Registered, n.Ready = false, now, false, false, false, false
	}
	for _, test := range []struct {
		why    string
		pool   *karpv1.NodePool
		target map[string]string
		change func([]*plan.Node)
		going  int
		says   string
	}{
		{why: "a pool without a rollout replaces all", pool: nodePool("p"), going: 4},
		{why: "the first step allows one", pool: rolledPool("1,50%,100%", underWay(), karpv1.RolloutOrder{}), going: 1, says: "is at step 1 of 3 (1), which allows 1 new nodes, and 1 are new or on their way"},
		{why: "half of the nodes, cumulatively", pool: rolledPool("1,50%,100%", underWay(atStep(1)), karpv1.RolloutOrder{}), going: 2, says: "step 2 of 3"},
		{why: "the last step allows the rest", pool: rolledPool("1,50%,100%", underWay(atStep(2)), karpv1.RolloutOrder{}), going: 4},
		{why: "budgets hold beside it", pool: rolledPool("1,50%,100%", underWay(atStep(2)), karpv1.RolloutOrder{}), change: func(nodes []*plan.Node) { nodes[3].Ready = false }, going: 1, says: "budgets allow 2 of 4"},
		{why: "a node that was launched for pods counts", pool: rolledPool("1,50%,100%", underWay(), karpv1.RolloutOrder{}), change: func(nodes []*plan.Node) { coming(nodes[3]) }, going: 0, says: "step 1"},
		{why: "a node whose replacement is not there yet counts", pool: rolledPool("1,50%,100%", underWay(), karpv1.RolloutOrder{}), change: func(nodes []*plan.Node) {
			nodes[3].Disrupted, nodes[3].Deleting, nodes[3].Replacement = true, true, "r"
		}, going: 0, says: "step 1"},
		{why: "a node and its replacement count once", pool: rolledPool("2,100%", underWay(), karpv1.RolloutOrder{}), change: func(nodes []*plan.Node) {
			nodes[3].Disrupted, nodes[3].Deleting, nodes[3].Replacement = true, true, "r"
			coming(nodes[2])
			nodes[2].Replacement = "r"
		}, going: 1, says: "step 1"},
		{why: "a stopped rollout moves nothing", pool: rolledPool("1,100%", underWay(atStep(1), func(s *karpv1.RolloutState) { s.Stopped = "node n is ill" }), karpv1.RolloutOrder{}), says: "the rollout of NodePool p is stopped at step 2 of 2 (100%): node n is ill"},
		{why: "a person's order holds before any worker has looked at it", pool: rolledPool("100%", underWay(), karpv1.RolloutOrder{What: karpv1.RolloutStop, By: "alice", Reason: "latency"}), says: "by alice: latency"},
		{why: "steps that cannot be read keep all", pool: rolledPool("all", underWay(), karpv1.RolloutOrder{}), says: "is held: annotation tenon.sh/rollout"},
		{why: "a rollout that has not begun keeps all", pool: rolledPool("1,100%", karpv1.RolloutState{}, karpv1.RolloutOrder{}), says: "has not begun anew yet"},
		{why: "so does one that was for something else", pool: rolledPool("1,100%", underWay(atStep(2)), karpv1.RolloutOrder{}), target: map[string]string{"p": "newer"}, says: "has not begun anew yet"},
		{why: "a node that drifted after the last look waits: it may drift to something else", pool: rolledPool("1,100%", underWay(atStep(2)), karpv1.RolloutOrder{}), change: func(nodes []*plan.Node) {
			for _, n := range nodes[1:] {
				n.DriftedAt = now
			}
		}, going: 1, says: "has not seen yet that it has drifted"},
	} {
		t.Run(test.why, func(t *testing.T) {
			t.Parallel()
			w := world{pools: []plan.Pool{{NodePool: test.pool, Types: smallCatalogue()}}}
			test.pool.Spec.Disruption.Budgets, test.pool.Spec.Disruption.ConsolidateAfter = []karpv1.Budget{{Nodes: "50%"}}, karpv1.NillableDuration{}
			if !strings.Contains(test.why, "budgets") {
				test.pool.Spec.Disruption.Budgets[0].Nodes = "100%"
			}
			for i := range 4 {
				w.nodes = append(w.nodes, existing(fmt.Sprintf("n%d", i), "m6i.large", func(n *plan.Node) {
					n.Pool, n.Drifted, n.DriftedAt, n.Created = "p", true, began.Add(time.Second), began.Add(-time.Hour)
				}))
			}
			if test.change != nil {
				test.change(w.nodes)
			}
			in := w.input()
			in.Targets = test.target
			found := plan.Disrupt(in)
			going := 0
			for _, command := range found.Commands {
				if command.Reason == karpv1.DisruptionReasonDrifted {
					going += len(command.Nodes)
				}
			}
			told := test.says == "" || slices.ContainsFunc(found.Verdicts, func(v plan.Verdict) bool {
				return v.Reason == karpv1.DisruptionReasonDrifted && strings.Contains(v.Message, test.says)
			})
			if going != test.going || !told {
				t.Errorf("%d nodes go, want %d; verdicts %+v, want %q", going, test.going, found.Verdicts, test.says)
			}
		})
	}
}

// TestRolloutPlayed plays rollouts with random failures. Never are there more new nodes than the step allows, by drift, and a
// stopped rollout moves nothing.
func TestRolloutPlayed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		steps := rapid.SampledFrom([]string{"1,100%", "1,10%,100%", "20%,50%", "2,3,60%,100%", "1"}).Draw(t, "steps")
		pool := rolledPool(steps, karpv1.RolloutState{}, karpv1.RolloutOrder{})
		pool.Spec.Disruption.ConsolidateAfter = karpv1.NillableDuration{}
		pool.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: rapid.SampledFrom([]string{"1", "30%", "100%"}).Draw(t, "budget")}}
		w := world{pools: []plan.Pool{{NodePool: pool, Types: smallCatalogue()}}}
		for i := range rapid.IntRange(1, 12).Draw(t, "nodes") {
			w.nodes = append(w.nodes, existing(fmt.Sprintf("n%d", i), "m6i.large", func(n *plan.Node) {
				n.Pool, n.Drifted, n.DriftedAt, n.Created = "p", true, now, now.Add(-time.Hour)
			}))
		}
		clock, born := now, 0
		for round := range 40 {
			clock = clock.Add(rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 11 * time.Minute}).Draw(t, "time"))
			facts := plan.RolloutFacts{Pool: pool, Target: "new", Now: clock}
			for _, n := range w.nodes {
				facts.Nodes = append(facts.Nodes, plan.RolloutNode{Node: n, LaunchedAt: n.Created})
			}
			judged := plan.JudgeRollout(facts)
			text, _ := json.Marshal(judged.State)
			pool.Annotations[karpv1.RolloutStateAnnotationKey] = string(text)
			rollout, err := pool.Rollout()
			if err != nil {
				t.Fatal(err)
			}
			in := w.input()
			in.Snapshot.Time = clock
			found := plan.Disrupt(in)
			going := map[string]bool{}
			for _, command := range found.Commands {
				for _, key := range command.Nodes {
					going[key] = command.Reason == karpv1.DisruptionReasonDrifted
				}
			}
			drifting := 0
			for _, by := range going {
				if by {
					drifting++
				}
			}
			if drifting > 0 && judged.Reason == karpv1.RolloutStopped {
				t.Fatalf("round %d: %d nodes go although the rollout is stopped: %s", round, drifting, judged.Message)
			}
			// What goes is replaced by a node of the target, sooner or later ready, or never.
			has := 0
			for i, n := range w.nodes {
				if going[n.Key()] && n.Drifted {
					born++
					w.nodes[i] = existing(fmt.Sprintf("b%d", born), "m6i.large", func(n *plan.Node) {
						n.Pool, n.Created, n.InitializedAt, n.Initialized = "p", clock, clock, rapid.Bool().Draw(t, "serves")
					})
				}
				if !w.nodes[i].Drifted {
					has++
				}
			}
			if want := rollout.Want(judged.State.Step, len(w.nodes)); drifting > 0 && has > want {
				t.Fatalf("round %d: %d of %d nodes are new at %s", round, has, len(w.nodes), rollout.Describe(judged.State.Step))
			}
			for i, n := range w.nodes {
				if !n.Initialized && rapid.Bool().Draw(t, "wakes") {
					w.nodes[i] = existing(n.Claim, "m6i.large", func(was *plan.Node) { was.Pool, was.Created, was.InitializedAt = "p", n.Created, clock })
				}
			}
			if judged.Reason == karpv1.RolloutStopped && rapid.Bool().Draw(t, "resumed") {
				text, _ := json.Marshal(karpv1.RolloutOrder{What: karpv1.RolloutResume, At: clock.Add(time.Second)})
				pool.Annotations[karpv1.RolloutOrderAnnotationKey] = string(text)
			}
		}
	})
}
