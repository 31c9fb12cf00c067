package starter

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan"
)

// waitingPods returns pods for which the kube-scheduler found no node.
func waitingPods(uids ...types.UID) []*plan.Pod {
	var pods []*plan.Pod
	for _, uid := range uids {
		pods = append(pods, &plan.Pod{UID: uid, Unschedulable: true, Class: &plan.Class{}})
	}
	return pods
}

func TestPendingPodsAreAnnounced(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	type look struct {
		reason string
		after  time.Duration
		pods   []*plan.Pod
		nodes  []*plan.Node
		news   bool
		signal bool
		wait   time.Duration
	}
	promised := func(initialized bool, uids ...types.UID) []*plan.Node {
		return []*plan.Node{{Name: "n", Initialized: initialized, InitializedAt: start.Add(time.Minute), Promised: uids}}
	}
	leaving := promised(false, "a")
	leaving[0].Deleting = true
	preempting := waitingPods("a")
	preempting[0].NominatedNode, preempting[0].Priority = "full", 1
	full := &plan.Node{Name: "full", Initialized: true, Pods: []*plan.Pod{{Class: &plan.Class{}}}}
	preempting[0].Class = &plan.Class{Requests: plan.Resources{CPU: 1}}
	siblings, judgedSiblings := waitingPods("a", "b"), waitingPods("a", "b")
	class := &plan.Class{}
	for _, pod := range append(siblings, judgedSiblings...) {
		pod.OwnerKind, pod.OwnerName, pod.Class = "ReplicaSet", "web", class
	}
	siblings[1].Unschedulable = false
	tests := map[string][]look{
		"a burst": {
			{reason: "the first pod is announced at once", pods: waitingPods("a"), signal: true, wait: retryFirst},
			{reason: "a second one within the second waits", after: 300 * time.Millisecond, pods: waitingPods("a", "b"), wait: 700 * time.Millisecond},
			{reason: "and is announced then", after: time.Second, pods: waitingPods("a", "b"), signal: true, wait: retryFirst},
		},
		"a pod that fits nowhere": {
			{reason: "it is announced", pods: waitingPods("a"), signal: true, wait: retryFirst},
			{reason: "again after ten seconds", after: retryFirst, pods: waitingPods("a"), signal: true, wait: 2 * retryFirst},
			{reason: "and ever less often", after: 2 * retryFirst, pods: waitingPods("a"), wait: retryFirst},
			{reason: "unless something has changed", after: 2 * retryFirst, pods: waitingPods("a"), news: true, signal: true, wait: retryFirst},
		},
		"a pod that is being served": {
			{reason: "its machine is starting, so nobody needs to know", pods: waitingPods("a"), nodes: promised(false, "a"), wait: retryFirst},
			{reason: "the kube-scheduler gets a while once it is there", after: time.Minute, pods: waitingPods("a"), nodes: promised(true, "a"), wait: retryFirst},
			{reason: "then it is planned again", after: time.Minute + retryFirst, pods: waitingPods("a"), nodes: promised(true, "a"), signal: true, wait: retryFirst},
		},
		"a pod whose machine is taken away again": {
			{reason: "its machine is starting", pods: waitingPods("a"), nodes: promised(false, "a"), wait: retryFirst},
			{reason: "and will never have started", after: time.Second, pods: waitingPods("a"), nodes: leaving, signal: true, wait: retryFirst},
		},
		"a pod that others make room for": {
			{reason: "nobody needs to know yet", pods: preempting, nodes: []*plan.Node{full}, wait: retryFirst},
			{reason: "and then somebody does, although nothing about the pod has changed", after: time.Minute, pods: preempting, signal: true, wait: retryFirst},
		},
		"siblings": {
			{reason: "what is found for one goes for the other", pods: siblings, signal: true, wait: retryFirst},
			{reason: "so that it is no news when it is found", after: 2 * time.Second, pods: judgedSiblings, wait: retryFirst - 2*time.Second},
		},
		"nothing": {
			{reason: "an idle cluster signals nothing and looks at nothing"},
			{reason: "pods that are not unschedulable are none of ours", pods: []*plan.Pod{{UID: "x", Class: &plan.Class{}}}},
		},
	}
	for name, looks := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pending{}
			for _, l := range looks {
				signal, wait := p.due(&plan.Snapshot{Time: start.Add(l.after), Pending: l.pods, Nodes: l.nodes}, l.news)
				if signal != l.signal || wait != l.wait {
					t.Errorf("%s: signal %t after %s, want %t after %s", l.reason, signal, wait, l.signal, l.wait)
				}
			}
		})
	}
}

// TestAPodThatFitsNowhereCostsLittle simulates six hours in which a pod waits and nothing else happens. A signal costs
// two actions of Temporal, with the plan that follows.
func TestAPodThatFitsNowhereCostsLittle(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var p pending
	var hours [6]int
	for at, news := time.Duration(0), true; at < 6*time.Hour; news = false {
		signal, wait := p.due(&plan.Snapshot{Time: start.Add(at), Pending: waitingPods("a")}, news)
		if signal {
			hours[int(at/time.Hour)]++
		}
		if wait <= 0 || wait > maxRetry {
			t.Fatalf("after %s the next look is in %s", at, wait)
		}
		at += wait
	}
	if hours[0] > 35 || hours[5] > 12 {
		t.Errorf("signals by the hour: %v, want at most 35 in the first and 12 in the last", hours)
	}
}
