package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/plan"
)

// A pod that the kube-scheduler has not reached yet is planned for together with a sibling for which it has found no
// node.
func TestSiblingsAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	class, labels := &plan.Class{Requests: plan.Resources{CPU: 1}}, &plan.Labels{Namespace: "default"}
	nodes := []*plan.Node{{Name: "full", Pods: []*plan.Pod{{Class: class, Priority: -1}}}, {Name: "free", Allocatable: plan.Resources{CPU: 1}}}
	pod := func(change ...func(*plan.Pod)) *plan.Pod {
		p := &plan.Pod{UID: "p", Namespace: "default", OwnerKind: "ReplicaSet", OwnerName: "web", Class: class, Labels: labels}
		for _, c := range change {
			c(p)
		}
		return p
	}
	judged := func(p *plan.Pod) { p.UID, p.Unschedulable = "judged", true }
	mounting := func(claim string) *plan.Mounts {
		return (&world{}).interner().Pod(newPod("p", "1", "1Gi", mounts(claim))).Mounts
	}
	set := func(name string) func(*plan.Pod) {
		return func(p *plan.Pod) {
			p.OwnerKind, p.Name, p.Labels = "StatefulSet", name, &plan.Labels{Namespace: "default"}
			p.Mounts = mounting("data-" + name)
		}
	}
	unseen := func(p *plan.Pod) { p.Unseen, p.Created = true, now.Add(-10*time.Second) }
	claimed := func(p *plan.Pod) { p.Mounts = mounting("data") }
	for _, test := range []struct {
		reason string
		pod    *plan.Pod
		other  *plan.Pod
		want   bool
	}{
		{reason: "nothing is known of either", pod: pod(), other: pod(func(p *plan.Pod) { p.UID = "q" }), want: false},
		{reason: "what goes for one goes for all", pod: pod(), other: pod(judged), want: true},
		{reason: "of another owner", pod: pod(), other: pod(judged, func(p *plan.Pod) { p.OwnerName = "api" }), want: false},
		{reason: "of another namespace", pod: pod(), other: pod(judged, func(p *plan.Pod) { p.Namespace = "other" }), want: false},
		{reason: "that asks for something else", pod: pod(),
			other: pod(judged, func(p *plan.Pod) { p.Class = &plan.Class{Requests: plan.Resources{CPU: 2}} }), want: false},
		{reason: "that others see differently", pod: pod(), other: pod(judged, func(p *plan.Pod) { p.Labels = &plan.Labels{Namespace: "default"} }), want: false},
		{reason: "of another priority", pod: pod(), other: pod(judged, func(p *plan.Pod) { p.Priority = -1 }), want: false},
		{reason: "for which room is made by preemption", pod: pod(), other: pod(judged, func(p *plan.Pod) { p.NominatedNode = "full" }), want: false},
		{reason: "that is expected on a node which is there", pod: pod(), other: pod(judged, func(p *plan.Pod) { p.NominatedNode = "free" }), want: true},
		{reason: "pods without owner are nobody's siblings", pod: pod(func(p *plan.Pod) { p.OwnerKind, p.OwnerName = "", "" }),
			other: pod(judged, func(p *plan.Pod) { p.OwnerKind, p.OwnerName = "", "" }), want: false},
		{reason: "a gated pod waits for something else", pod: pod(func(p *plan.Pod) { p.Gated = true }), other: pod(judged), want: false},
		{reason: "a bound pod waits for nothing", pod: pod(func(p *plan.Pod) { p.Node = "n" }), other: pod(judged), want: false},
		{reason: "the pods of a StatefulSet have labels and volumes of their own", pod: pod(set("web-0")), other: pod(set("web-1"), judged), want: true},
		{reason: "the kube-scheduler is far behind", pod: pod(unseen), other: pod(judged, func(p *plan.Pod) { p.OwnerName = "api" }), want: true},
		{reason: "the kube-scheduler has found no node for nobody", pod: pod(unseen), other: pod(func(p *plan.Pod) { p.UID = "q" }), want: false},
		{reason: "the kube-scheduler will come to it", pod: pod(unseen, func(p *plan.Pod) { p.Created = now.Add(-9 * time.Second) }),
			other: pod(judged, func(p *plan.Pod) { p.OwnerName = "api" }), want: false},
		{reason: "gated pods are not looked at", pod: pod(unseen, func(p *plan.Pod) { p.Gated = true }),
			other: pod(judged, func(p *plan.Pod) { p.OwnerName = "api" }), want: false},
		{reason: "pods of a Deployment that mount a claim share it", pod: pod(claimed), other: pod(claimed, judged), want: false},
	} {
		pods, _ := (&plan.Snapshot{Time: now, Pending: []*plan.Pod{test.other, test.pod}, Nodes: nodes}).WaitingForNode()
		if got := slices.Contains(pods, test.pod); got != test.want {
			t.Errorf("%s: waits for a node %t, want %t", test.reason, got, test.want)
		}
	}
}
