package plan_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan"
)

// TestPodsHaveAPlaceWhereANodeServes plans for two pods of a node that is going away.
func TestPodsHaveAPlaceWhereANodeServes(t *testing.T) {
	t.Parallel()
	now := time.Now()
	pod := func(uid string, edits ...func(*plan.Pod)) *plan.Pod {
		p := &plan.Pod{UID: types.UID(uid), Namespace: "team", Name: uid, OwnerKind: "ReplicaSet", OwnerName: "web", Created: now.Add(-time.Hour),
			Class: &plan.Class{Requests: plan.Resources{CPU: 1000, Pods: 1}}, Labels: &plan.Labels{Namespace: "team"}, Node: "leaves"}
		for _, edit := range edits {
			edit(p)
		}
		return p
	}
	leaves := &plan.Node{Name: "leaves", Initialized: true, Deleting: true, Pods: []*plan.Pod{pod("a"), pod("b")}}
	other := func(cores int64, edits ...func(*plan.Node)) *plan.Node {
		n := &plan.Node{Name: "other", Initialized: true, Labels: map[string]string{corev1.LabelHostname: "other"}, Allocatable: plan.Resources{CPU: 1000 * cores, Pods: 10}}
		for _, edit := range edits {
			edit(n)
		}
		return n
	}
	for reason, test := range map[string]struct {
		nodes   []*plan.Node
		pending []*plan.Pod
		want    int
	}{
		"there is no other node":             {nodes: []*plan.Node{leaves}},
		"both fit":                           {nodes: []*plan.Node{leaves, other(2)}, want: 2},
		"one fits":                           {nodes: []*plan.Node{leaves, other(1)}, want: 1},
		"the other node does not serve yet":  {nodes: []*plan.Node{leaves, other(2, func(n *plan.Node) { n.Initialized = false })}},
		"the other node goes as well":        {nodes: []*plan.Node{leaves, other(2, func(n *plan.Node) { n.Deleting = true })}},
		"somebody waits for the room":        {nodes: []*plan.Node{leaves, other(2, func(n *plan.Node) { n.Promised = []types.UID{"p"} })}, pending: []*plan.Pod{pod("p", unscheduled)}, want: 1},
		"a pod that is new will take it":     {nodes: []*plan.Node{leaves, other(2, func(n *plan.Node) { n.Promised = []types.UID{"p"} })}, pending: []*plan.Pod{pod("p", func(p *plan.Pod) { p.Node = "" })}, want: 1},
		"a pod's successor is about to come": {nodes: []*plan.Node{{Name: "leaves", Initialized: true, Deleting: true, Pods: []*plan.Pod{pod("a"), pod("b", evictedAt(now))}}, other(1)}, want: 1},
	} {
		found := plan.Placed(&plan.Snapshot{Time: now, Nodes: test.nodes, Pending: test.pending}, plan.PreferencesRespect)
		got := 0
		for _, uid := range []types.UID{"a", "b"} {
			if found[uid] {
				got++
			}
		}
		if got != test.want {
			t.Errorf("%s: %d have a place (%v), want %d", reason, got, found, test.want)
		}
	}
}

func unscheduled(p *plan.Pod) { p.Node, p.Unschedulable = "", true }

func evictedAt(at time.Time) func(*plan.Pod) {
	return func(p *plan.Pod) { p.Deletion, p.GracePeriod = at.Add(30*time.Second), 30*time.Second }
}
