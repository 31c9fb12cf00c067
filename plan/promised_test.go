package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan"
)

// TestPromises plans again for pods that wait for nodes they were promised, after other pods have come in between. A
// node has 1930m.
func TestPromises(t *testing.T) {
	t.Parallel()
	softlyApart := func(pod *corev1.Pod) {
		pod.Labels = map[string]string{"app": "soft"}
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: corev1.LabelHostname, MaxSkew: 1,
			WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{MatchLabels: pod.Labels}}}
	}
	nominated := func(at time.Duration) func(*plan.Pod) {
		return func(pod *plan.Pod) { pod.NominatedNode, pod.NominatedAt = "n1", now.Add(-at) }
	}
	for _, test := range []struct {
		reason string
		// nodes are the pods that are bound there. promised are those still to come.
		nodes    map[string][]*corev1.Pod
		promised map[string][]*corev1.Pod
		change   func(*plan.Pod)
		// want is the places of the pods.
		want   string
		claims int
	}{
		{
			reason:   "what pods only prefer was given up before, and is no reason to move",
			nodes:    map[string][]*corev1.Pod{"n1": nil, "n2": nil},
			promised: map[string][]*corev1.Pod{"n1": {newPod("a", "500m", "1Gi", softlyApart), newPod("b", "500m", "1Gi", softlyApart)}},
			want:     "a n1, b n1",
		},
		{
			reason:   "small pods make room for a large one that was planned with them",
			nodes:    map[string][]*corev1.Pod{"n1": manyPods(3, "other", "100m", "100Mi"), "n2": nil},
			promised: map[string][]*corev1.Pod{"n1": append(manyPods(3, "small", "100m", "100Mi"), newPod("large", "1500m", "2Gi"))},
			want:     "large n1, small-0000 n1, small-0001 n2, small-0002 n2",
		},
		{
			reason:   "others fill a large one's room: it takes that of small ones, which find another",
			nodes:    map[string][]*corev1.Pod{"n1": manyPods(10, "other", "100m", "100Mi"), "n2": nil},
			promised: map[string][]*corev1.Pod{"n1": {newPod("large", "1500m", "2Gi")}, "n2": manyPods(8, "small", "100m", "100Mi")},
			want:     "large n2, small-0000 n1, small-0001 n1, small-0002 n1, small-0003 n1, small-0004 n2, small-0005 n2, small-0006 n2, small-0007 n2",
		},
		{
			reason:   "the kube-scheduler knows which of two it has decided about, which nobody else sees yet",
			nodes:    map[string][]*corev1.Pod{"n1": manyPods(3, "other", "100m", "100Mi")},
			promised: map[string][]*corev1.Pod{"n1": {newPod("large", "1500m", "2Gi"), newPod("larger", "1600m", "2Gi")}},
			change:   nominated(30 * time.Second),
			want:     "large n1, larger n1",
		},
		{
			reason:   "it is not waited for longer than that takes",
			nodes:    map[string][]*corev1.Pod{"n1": manyPods(3, "other", "100m", "100Mi")},
			promised: map[string][]*corev1.Pod{"n1": {newPod("large", "1500m", "2Gi"), newPod("larger", "1600m", "2Gi")}},
			change:   nominated(3 * time.Minute),
			want:     "larger n1",
			claims:   1,
		},
		{
			reason:   "others are bound in the room: it will not be bound there",
			nodes:    map[string][]*corev1.Pod{"n1": manyPods(10, "other", "100m", "100Mi")},
			promised: map[string][]*corev1.Pod{"n1": {newPod("large", "1500m", "2Gi")}},
			change:   nominated(time.Second),
			claims:   1,
		},
	} {
		w := world{pools: []plan.Pool{{NodePool: nodePool("p", onDemand()), Types: smallCatalogue()}}, bound: map[string][]*corev1.Pod{}}
		for _, name := range []string{"n1", "n2"} {
			if _, there := test.nodes[name]; !there {
				continue
			}
			w.pods, w.bound["claim-"+name] = append(w.pods, test.promised[name]...), test.nodes[name]
			w.nodes = append(w.nodes, existing(name, "m6i.large", func(n *plan.Node) {
				for _, pod := range test.promised[name] {
					n.Promised = append(n.Promised, pod.UID)
				}
			}))
		}
		in := w.input()
		if test.change != nil {
			for i, pod := range in.Snapshot.Pending {
				changed := *pod
				test.change(&changed)
				in.Snapshot.Pending[i] = &changed
			}
		}
		p := plan.Pack(in)
		var got []string
		for _, placement := range p.Placements {
			got = append(got, placement.Pod.Name+strings.Replace(placement.Node, "claim-", " ", 1))
		}
		slices.Sort(got)
		if text := strings.Join(got, ", "); text != test.want || len(p.Claims) != test.claims {
			t.Errorf("%s: %d claims and %s\nwant %d and %s", test.reason, len(p.Claims), text, test.claims, test.want)
		}
	}
}

// TestPromisesThatASpreadForbids has a pod bound in a zone that was not planned for it.
func TestPromisesThatASpreadForbids(t *testing.T) {
	t.Parallel()
	spread := func(pod *corev1.Pod) {
		pod.Labels = map[string]string{"app": "spread"}
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: corev1.LabelTopologyZone, MaxSkew: 1,
			WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: pod.Labels}}}
	}
	zone := func(name string, promised ...types.UID) func(*plan.Node) {
		return func(n *plan.Node) {
			n.Labels[corev1.LabelTopologyZone] = name // the map is the node's own
			n.Zone, n.Promised = name, promised
		}
	}
	w := world{pools: []plan.Pool{{NodePool: nodePool("p", onDemand()), Types: smallCatalogue()}},
		pods:  []*corev1.Pod{newPod("late", "500m", "1Gi", spread)},
		bound: map[string][]*corev1.Pod{"claim-a": {newPod("first", "500m", "1Gi", spread)}},
		nodes: []*plan.Node{existing("a", "m6i.large", zone("us-east-1a", "uid-late")), existing("b", "m6i.large", zone("us-east-1b"))}}
	p := plan.Pack(w.input())
	if len(p.Claims) > 0 || len(p.Placements) != 1 || p.Placements[0].Node != "claim-b" {
		t.Errorf("%d claims, placements %v: want the pod where its rule allows it", len(p.Claims), p.Placements)
	}
}
