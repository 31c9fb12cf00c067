package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

func TestAwaitNode(t *testing.T) {
	t.Parallel()
	server := newAPIServer().start(t)
	claim := testClaim("c", "aws:///c")
	server.put("nodeclaims", claim)
	m := runMirror(t, server, Options{})
	joined := func(node *corev1.Node, _ *karpv1.NodeClaim) bool { return node != nil }

	type result struct {
		node  *corev1.Node
		claim *karpv1.NodeClaim
		err   error
	}
	await := func(ok func(*corev1.Node, *karpv1.NodeClaim) bool) chan result {
		results := make(chan result, 1)
		ctx := within(t)
		go func() {
			node, claim, err := m.AwaitNode(ctx, "aws:///c", ok)
			results <- result{node, claim, err}
		}()
		return results
	}

	waiting := await(joined)
	server.put("nodes", testNode("n", "aws:///c"))
	if got := <-waiting; got.err != nil || got.node.Name != "n" || got.claim.Name != "c" {
		t.Errorf("the node joins: got %+v", got)
	}
	waiting = await(func(*corev1.Node, *karpv1.NodeClaim) bool { return false })
	deleting := claim.DeepCopy()
	now := metav1.Now()
	deleting.DeletionTimestamp, deleting.Finalizers = &now, []string{"karpenter.sh/termination"}
	server.put("nodeclaims", deleting)
	if got := <-waiting; !errors.Is(got.err, ErrClaimDeleted) {
		t.Errorf("the claim is deleted: got %v, want ErrClaimDeleted", got.err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Await(canceled, func() (bool, error) { return false, nil }, Event{Kind: PodsChanged, Name: "n"}); !errors.Is(err, context.Canceled) {
		t.Errorf("the context ends: got %v, want %v", err, context.Canceled)
	}
}

func TestAwaitWakesOnlyWhoWaitsForIt(t *testing.T) {
	t.Parallel()
	const waiters = 300
	server := newAPIServer().start(t)
	m := runMirror(t, server, Options{})
	var asked atomic.Int64
	var started atomic.Int64
	done := make(chan int, waiters)
	ctx := within(t)
	for i := range waiters {
		go func() {
			first := true
			_, _, err := m.AwaitNode(ctx, fmt.Sprintf("aws:///%d", i), func(node *corev1.Node, _ *karpv1.NodeClaim) bool {
				asked.Add(1)
				if first {
					first = false
					started.Add(1)
				}
				return node != nil
			})
			if err == nil {
				done <- i
			}
		}()
	}
	eventually(t, "all wait", func() bool { return started.Load() == waiters })
	server.put("nodes", testNode("n", "aws:///7"))
	if i := <-done; i != 7 {
		t.Errorf("waiter %d was served, want 7", i)
	}
	if got := asked.Load(); got != waiters+1 {
		t.Errorf("%d predicates were asked for one change, want only the one it is for", got-waiters)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	server := newAPIServer().start(t)
	server.put("nodes", testNode("n", ""))
	server.put("pods", testPod("daemon", "n", ownedBy("DaemonSet", "agent")))
	server.put("pods", testPod("web", "n", ownedBy("ReplicaSet", "web")))
	m := runMirror(t, server, Options{})
	kinds := []EventKind{PodsPending, PodsChanged, NodeEmptied, ClaimChanged, NodeChanged}

	for _, step := range []struct {
		reason string
		do     func()
		want   []Event
	}{
		{reason: "a pod without a node", do: func() { server.put("pods", testPod("p", "")) }, want: []Event{{PodsPending, ""}}},
		{reason: "the scheduler finds no node for it", do: func() { server.put("pods", testPod("p", "", unschedulable)) }, want: []Event{{PodsPending, ""}}},
		{reason: "a daemon's pod waits for its own node", do: func() {
			server.put("pods", testPod("d", "", unschedulable, ownedBy("DaemonSet", "agent")))
			server.remove("pods", testPod("daemon", "n"))
		}, want: []Event{{PodsChanged, "n"}}},
		{reason: "the last pod that would have to move begins to end", do: func() {
			server.put("pods", testPod("web", "n", ownedBy("ReplicaSet", "web"), func(pod *corev1.Pod) {
				now := metav1.Now()
				pod.DeletionTimestamp = &now
			}))
		}, want: []Event{{NodeEmptied, "n"}, {PodsChanged, "n"}}},
		{reason: "a claim comes", do: func() { server.put("nodeclaims", testClaim("c", "")) }, want: []Event{{ClaimChanged, "c"}}},
		{reason: "a node goes", do: func() { server.remove("nodes", testNode("n", "")) }, want: []Event{{NodeChanged, "n"}}},
	} {
		subscription := m.Subscribe(kinds...)
		step.do()
		got := map[Event]bool{}
		ctx := within(t)
		for complete := false; !complete; {
			select {
			case <-subscription.C:
			case <-ctx.Done():
				t.Fatalf("%s: got %v, want %v", step.reason, got, step.want)
			}
			for _, event := range subscription.Take() {
				got[event] = true
			}
			complete = true
			for _, event := range step.want {
				complete = complete && got[event]
			}
		}
		want := map[Event]bool{}
		for _, event := range step.want {
			want[event] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.reason, diff)
		}
		subscription.Close()
	}
	// The mirror itself subscribes to what is paused.
	for _, kind := range kinds {
		if left := len(m.events.byKind[kind]); left != 0 {
			t.Errorf("closed subscriptions left %d entries for events of kind %v behind", left, kind)
		}
	}
	if left := len(m.events.byEvent); left != 0 {
		t.Errorf("closed subscriptions left %d entries behind", left)
	}
}

func TestLastPodEvent(t *testing.T) {
	t.Parallel()
	bound := time.Unix(1_700_000_000, 0)
	server := newAPIServer().start(t)
	server.put("nodes", testNode("busy", ""))
	server.put("nodes", testNode("idle", ""))
	server.put("pods", testPod("old", "busy", boundAt(bound)))
	server.put("pods", testPod("daemon", "busy", boundAt(bound.Add(time.Hour)), ownedBy("DaemonSet", "agent")))
	before := time.Now()
	m := runMirror(t, server, Options{})
	last := func(name string) time.Time {
		for _, node := range m.Snapshot().Nodes {
			if node.Name == name {
				return node.LastPodEvent
			}
		}
		return time.Time{}
	}
	if got := last("busy"); !got.Equal(bound) {
		t.Errorf("last event of a node with an old pod is %s, want when it was bound, %s; daemons do not count", got, bound)
	}
	if got := last("idle"); got.Before(before) {
		t.Errorf("last event of a node without pods is %s: what left before the mirror began is unknown, so not before %s", got, before)
	}
	later := bound.Add(2 * time.Hour)
	server.put("pods", testPod("new", "busy", boundAt(later)))
	awaitShape(t, m, "a second pod is bound", "claim= node=busy provider=: daemon new old", "claim= node=idle provider=:")
	if got := last("busy"); !got.Equal(later) {
		t.Errorf("last event after a pod came is %s, want %s", got, later)
	}
	server.remove("pods", testPod("old", "busy"))
	awaitShape(t, m, "a pod leaves", "claim= node=busy provider=: daemon new", "claim= node=idle provider=:")
	if got := last("busy"); got.Before(before) {
		t.Errorf("last event after a pod left is %s, want when that was seen", got)
	}
}

func TestPromisesEndWithTheirPods(t *testing.T) {
	t.Parallel()
	server := newAPIServer().start(t)
	server.put("nodes", testNode("n", "aws:///c"))
	server.put("nodeclaims", testClaim("c", "aws:///c"))
	server.put("pods", testPod("p", "", unschedulable))
	m := runMirror(t, server, Options{})
	awaitShape(t, m, "a pod waits", "claim=c node=n provider=aws:///c:", "pending p")
	until := time.Now().Add(time.Hour)
	m.Promise("c", append(m.Snapshot().Nodes[0].Promised, "uid-p", "uid-unknown"), until)
	node := m.Snapshot().Nodes[0]
	if len(node.Promised) != 1 || !node.NominatedUntil.Equal(until) {
		t.Errorf("promised %v until %s, want only the pod that waits, until %s", node.Promised, node.NominatedUntil, until)
	}
	server.put("pods", testPod("p", "n"))
	awaitShape(t, m, "the pod is bound", "claim=c node=n provider=aws:///c: p")
	if node := m.Snapshot().Nodes[0]; len(node.Promised) != 0 || !node.NominatedUntil.IsZero() {
		t.Errorf("a kept promise still holds: %v until %s", node.Promised, node.NominatedUntil)
	}
}
