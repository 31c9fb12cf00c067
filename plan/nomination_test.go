package plan_test

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/plan"
)

// A nomination alone does not say whether the kube-scheduler preempts for the pod, or was told what a plan expects.
// What is on the node does.
func TestNominatedPods(t *testing.T) {
	t.Parallel()
	class := func(cpu int64, gpus int64) *plan.Class {
		c := &plan.Class{Requests: plan.Resources{CPU: cpu, Memory: 1 << 30, Pods: 1}}
		if gpus > 0 {
			c.Requests.Extended = []plan.Amount{{Name: "nvidia.com/gpu", Value: gpus}}
		}
		return c
	}
	there := func(cpu int64, priority int32, change ...func(*plan.Pod)) *plan.Pod {
		pod := &plan.Pod{UID: "there", Node: "n", Class: class(cpu, 0), Priority: priority}
		for _, c := range change {
			c(pod)
		}
		return pod
	}
	going := func(pod *plan.Pod) { pod.Deletion = now.Add(time.Minute) }
	over := func(pod *plan.Pod) { pod.Terminal = true }
	node := func(change func(*plan.Node), pods ...*plan.Pod) []*plan.Node {
		n := &plan.Node{Name: "n", Registered: true, Initialized: true, Pods: pods, Allocatable: plan.Resources{CPU: 4000, Memory: 16 << 30, Pods: 10}}
		if change != nil {
			change(n)
		}
		return []*plan.Node{n}
	}
	for _, test := range []struct {
		reason string
		to     string
		gpus   int64
		nodes  []*plan.Node
		waits  bool
		others bool
	}{
		{reason: "a pod without nomination waits for a node", nodes: node(nil, there(4000, 0)), waits: true},
		{reason: "victims are on their way out: the node will take the pod", to: "n", nodes: node(nil, there(4000, 0, going)), others: true},
		{reason: "victims are about to be told", to: "n", nodes: node(nil, there(4000, 0)), others: true},
		{reason: "nobody there has a lower priority, so nobody is preempted: the place was taken by another", to: "n", nodes: node(nil, there(4000, 10)), waits: true},
		{reason: "the pod fits as things are, so its place has to be kept", to: "n", nodes: node(nil, there(1000, 0)), waits: true},
		{reason: "pods that have ended take no room", to: "n", nodes: node(nil, there(4000, 0, over)), waits: true},
		{reason: "devices are room too", to: "n", gpus: 1, nodes: node(nil, there(1000, 0)), others: true},
		{reason: "the node died, and the nomination outlived it", to: "n", waits: true},
		{reason: "the node it names never came", to: "m", nodes: node(nil, there(4000, 0)), waits: true},
		{reason: "a node that is being deleted takes nobody", to: "n", nodes: node(func(n *plan.Node) { n.Deleting = true }, there(4000, 0)), waits: true},
		{reason: "nor does one that is disrupted", to: "n", nodes: node(func(n *plan.Node) { n.Disrupted = true }, there(4000, 0)), waits: true},
		{reason: "nor one whose machine ends", to: "n", nodes: node(func(n *plan.Node) { n.Terminating = true }, there(4000, 0)), waits: true},
		{reason: "nor one that is cordoned", to: "n", nodes: node(func(n *plan.Node) { n.Cordoned = true }, there(4000, 0)), waits: true},
	} {
		pod := &plan.Pod{UID: "p", Name: "p", Class: class(2000, test.gpus), Priority: 5, Unschedulable: true, NominatedNode: test.to}
		pods, others := (&plan.Snapshot{Time: now, Pending: []*plan.Pod{pod}, Nodes: test.nodes}).WaitingForNode()
		if (len(pods) == 1) != test.waits || others != test.others {
			t.Errorf("%s: waits for a node %t, may do so later %t, want %t and %t", test.reason, len(pods) == 1, others, test.waits, test.others)
		}
	}
}

// A pod whose nominated node has died gets another. A pod for which room is being made gets none.
func TestNominatedPodsArePlanned(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		to     string
		claims int
	}{
		{reason: "nobody else would help it", to: "gone", claims: 1},
		{reason: "it is expected where there is no room, and nobody to make any", to: "full", claims: 1},
	} {
		w := world{pods: manyPods(1, "a", "2", "1Gi")}
		w.pods[0].Status.NominatedNodeName = test.to
		w.nodes = []*plan.Node{{Name: "full", Registered: true, Initialized: true, Allocatable: plan.Resources{CPU: 1000, Memory: 16 << 30, Pods: 10}}}
		w.pools = []plan.Pool{{NodePool: nodePool("p"), Types: smallCatalogue()}}
		if p := plan.Pack(w.input()); len(p.Claims) != test.claims {
			t.Errorf("%d claims for a pod nominated to %s, want %d: %s", len(p.Claims), test.to, test.claims, test.reason)
		}
	}
}

// A process that has lost its promises keeps those that the kube-scheduler was told of.
func TestNominationsAreKept(t *testing.T) {
	t.Parallel()
	w := world{pods: manyPods(2, "a", "900m", "1Gi")}
	w.pools = []plan.Pool{{NodePool: nodePool("p"), Types: smallCatalogue()}}
	for _, name := range []string{"n1", "n2", "n3"} {
		w.nodes = append(w.nodes, &plan.Node{Name: name, Registered: true, Initialized: true, Ready: true, Allocatable: plan.Resources{CPU: 1000, Memory: 16 << 30, Pods: 10}})
	}
	w.pods[0].Status.NominatedNodeName = "n3"
	p := plan.Pack(w.input())
	at := map[string]string{}
	for _, placement := range p.Placements {
		at[placement.Pod.Name] = placement.Node
	}
	if len(p.Claims) > 0 || at[w.pods[0].Name] != "n3" || at[w.pods[1].Name] != "n1" {
		t.Errorf("%d claims and pods at %v, want the first at n3, where it is expected, and the second at n1", len(p.Claims), at)
	}
}
