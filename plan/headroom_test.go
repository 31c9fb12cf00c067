package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// buffered makes the virtual pods of a buffer for pods of a size.
func buffered(in *plan.Interner, name string, count int, cpu, memory string, change ...func(*corev1.Pod)) []*plan.Pod {
	pod := newPod("model", cpu, memory, change...)
	model := in.VirtualPod("default", &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec})
	return model.VirtualPods(types.UID("uid-"+name), name, count)
}

// running puts pods on a node.
func running(in *plan.Interner, pods ...*corev1.Pod) func(*plan.Node) {
	return func(n *plan.Node) {
		for _, pod := range pods {
			pod.Spec.NodeName = n.Name
			n.Pods = append(n.Pods, in.Pod(pod))
		}
	}
}

// TestHeadroom checks where the room of buffers is. An m6i.large has 1.93 cores for pods, an m6i.xlarge 3.92.
func TestHeadroom(t *testing.T) {
	t.Parallel()
	in := new(plan.Interner)
	onItsWay := func(n *plan.Node) { n.Initialized, n.Ready = false, false }
	waits := func(name, cpu string) *plan.Pod { return in.Pod(newPod(name, cpu, "1Mi")) }
	for _, tc := range []struct {
		reason  string
		nodes   []*plan.Node
		pending []*plan.Pod
		buffer  []*plan.Pod
		// room counts virtual pods by node.
		room    map[string]int
		missing int
	}{
		{reason: "no buffer needs no room", nodes: []*plan.Node{existing("a", "m6i.large")}, room: map[string]int{}},
		{
			reason: "an empty node", nodes: []*plan.Node{existing("a", "m6i.large")}, buffer: buffered(in, "spare", 3, "900m", "1Mi"),
			room: map[string]int{"claim-a": 2}, missing: 1,
		},
		{
			reason: "beside what runs", nodes: []*plan.Node{existing("a", "m6i.large", running(in, newPod("r", "1", "1Mi")))}, buffer: buffered(in, "spare", 2, "900m", "1Mi"),
			room: map[string]int{"claim-a": 1}, missing: 1,
		},
		{
			reason: "on a node that is starting", nodes: []*plan.Node{existing("a", "m6i.large", onItsWay)}, buffer: buffered(in, "spare", 2, "900m", "1Mi"),
			room: map[string]int{"claim-a": 2},
		},
		{
			reason: "not on one that goes away", nodes: []*plan.Node{existing("a", "m6i.large", leaves)}, buffer: buffered(in, "spare", 1, "900m", "1Mi"),
			room: map[string]int{}, missing: 1,
		},
		{
			reason: "pods that wait come first, however small", nodes: []*plan.Node{existing("a", "m6i.large")}, buffer: buffered(in, "spare", 2, "900m", "1Mi"),
			pending: []*plan.Pod{waits("w", "200m")}, room: map[string]int{"claim-a": 1}, missing: 1,
		},
		{
			reason: "also those of the same shape", nodes: []*plan.Node{existing("a", "m6i.large")}, buffer: buffered(in, "spare", 2, "900m", "1Mi"),
			pending: []*plan.Pod{waits("w", "900m")}, room: map[string]int{"claim-a": 1}, missing: 1,
		},
		{
			reason: "even where a node was promised to the buffer", buffer: buffered(in, "spare", 2, "900m", "1Mi"), pending: []*plan.Pod{waits("w", "1500m")},
			nodes: []*plan.Node{existing("a", "m6i.large", onItsWay, func(n *plan.Node) {
				for _, pod := range buffered(in, "spare", 2, "900m", "1Mi") {
					n.Promised = append(n.Promised, pod.UID)
				}
			})},
			room: map[string]int{}, missing: 2,
		},
		{
			reason: "pods that have to leave a node come first", buffer: buffered(in, "spare", 2, "900m", "1Mi"), room: map[string]int{"claim-b": 1}, missing: 1,
			nodes: []*plan.Node{existing("a", "m6i.large", leaves, running(in, newPod("r", "1", "1Mi"))), existing("b", "m6i.large")},
		},
	} {
		found := plan.FindHeadroom(&plan.Snapshot{Time: now, Nodes: tc.nodes, Pending: slices.Concat(tc.pending, tc.buffer)})
		room := map[string]int{}
		for _, node := range found.At {
			room[node]++
		}
		if diff := cmp.Diff(tc.room, room); diff != "" || len(found.Missing) != tc.missing {
			t.Errorf("%s: %d without room, want %d; room (-want +got)\n%s", tc.reason, len(found.Missing), tc.missing, diff)
		}
	}
}

// TestEmptinessKeepsHeadroom checks which of the empty nodes stay.
func TestEmptinessKeepsHeadroom(t *testing.T) {
	t.Parallel()
	in := new(plan.Interner)
	spread := func(pod *corev1.Pod) {
		pod.Labels = map[string]string{"app": "web"}
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: pod.Labels}}}
	}
	busy := func(name, cpu string) *plan.Node {
		return existing(name, "m6i.xlarge", running(in, newPod("on-"+name, cpu, "1Mi")))
	}
	empty := func(name string) *plan.Node { return existing(name, "m6i.large") }
	for _, tc := range []struct {
		reason string
		nodes  []*plan.Node
		buffer []*plan.Pod
		goes   int
		why    string
	}{
		{reason: "without a buffer all go", nodes: []*plan.Node{empty("a"), empty("b")}, goes: 2, why: ""},
		{reason: "one is enough", nodes: []*plan.Node{empty("a"), empty("b")}, buffer: buffered(in, "spare", 2, "900m", "1Mi"), goes: 1,
			why: "it keeps room free for default/capacity-buffer-spare-"},
		{reason: "both are needed", nodes: []*plan.Node{empty("a"), empty("b")}, buffer: buffered(in, "spare", 3, "900m", "1Mi"), goes: 0,
			why: "it keeps room free for default/capacity-buffer-spare-"},
		{reason: "both, and they are not enough", nodes: []*plan.Node{empty("a"), empty("b")},
			buffer: buffered(in, "spare", 9, "900m", "1Mi"), goes: 0, why: "it keeps room free for default/capacity-buffer-spare-"},
		{reason: "there is room beside what runs elsewhere", nodes: []*plan.Node{empty("a"), busy("b", "1")},
			buffer: buffered(in, "spare", 3, "900m", "1Mi"), goes: 1, why: ""},
		{reason: "some of the room is elsewhere", nodes: []*plan.Node{empty("a"), empty("b"), busy("c", "2")},
			buffer: buffered(in, "spare", 3, "900m", "1Mi"), goes: 1, why: "it keeps room free for"},
		{reason: "a buffer too large for any of them keeps none", nodes: []*plan.Node{empty("a"), empty("b")},
			buffer: buffered(in, "spare", 1, "6", "1Mi"), goes: 2, why: ""},
		{
			reason: "a node that is starting takes nobody's place yet", nodes: []*plan.Node{empty("a"), existing("b", "m6i.large", func(n *plan.Node) { n.Initialized, n.Ready = false, false })},
			buffer: buffered(in, "spare", 1, "900m", "1Mi"), goes: 0, why: "it keeps room free for",
		},
		{reason: "room on different nodes", nodes: []*plan.Node{empty("a"), empty("b"), empty("c")},
			buffer: buffered(in, "spare", 2, "100m", "1Mi", spread), goes: 1, why: "it keeps room free for"},
	} {
		snapshot := &plan.Snapshot{Time: now, Nodes: tc.nodes, Pending: tc.buffer, NodePools: []*karpv1.NodePool{nodePool("p")}}
		found := plan.Disrupt(plan.Input{Snapshot: snapshot})
		goes := 0
		for _, command := range found.Commands {
			goes += len(command.Nodes)
		}
		if goes != tc.goes {
			t.Errorf("%s: %d go, want %d: %+v", tc.reason, goes, tc.goes, found)
		}
		if tc.why != "" && !slices.ContainsFunc(found.Verdicts, func(v plan.Verdict) bool { return strings.Contains(v.Message, tc.why) }) {
			t.Errorf("%s: no node says %q: %v", tc.reason, tc.why, found.Verdicts)
		}
	}
}

// TestEmptinessNeverTakesHeadroom checks that no virtual pod loses its room to the removal of empty nodes.
func TestEmptinessNeverTakesHeadroom(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := new(plan.Interner)
		snapshot := &plan.Snapshot{Time: now, NodePools: []*karpv1.NodePool{nodePool("p")}}
		for i := range rapid.IntRange(1, 8).Draw(t, "nodes") {
			n := existing(fmt.Sprint(i), rapid.SampledFrom([]string{"m6i.large", "m6i.xlarge", "c6i.2xlarge"}).Draw(t, "type"))
			if used := rapid.IntRange(0, 1500).Draw(t, "used"); used > 700 {
				running(in, newPod(fmt.Sprint("r", i), fmt.Sprint(used, "m"), "1Mi"))(n)
			}
			snapshot.Nodes = append(snapshot.Nodes, n)
		}
		for i := range rapid.IntRange(1, 3).Draw(t, "buffers") {
			size := resource.NewMilliQuantity(rapid.Int64Range(50, 4000).Draw(t, "size"), resource.DecimalSI)
			snapshot.Pending = append(snapshot.Pending, buffered(in, fmt.Sprint(i), rapid.IntRange(0, 12).Draw(t, "count"), size.String(), "1Mi")...)
		}
		before := plan.FindHeadroom(snapshot)
		gone := map[string]bool{}
		for _, command := range plan.Disrupt(plan.Input{Snapshot: snapshot}).Commands {
			for _, node := range command.Nodes {
				gone[node] = true
			}
		}
		rest := *snapshot
		rest.Nodes = slices.DeleteFunc(slices.Clone(snapshot.Nodes), func(n *plan.Node) bool { return gone[n.Key()] })
		if after := plan.FindHeadroom(&rest); len(after.Missing) > len(before.Missing) {
			t.Errorf("%d virtual pods have no room once %v are gone, %d had none before", len(after.Missing), gone, len(before.Missing))
		}
	})
}

// TestPodsComeBeforeHeadroom checks that no pod waits because of a buffer: none is left that would fit into the room of
// virtual pods, and a pod that gets a node without a buffer gets one with it.
func TestPodsComeBeforeHeadroom(t *testing.T) {
	t.Parallel()
	kinds := slices.DeleteFunc(smallCatalogue(), func(typ *cloud.InstanceType) bool {
		return !slices.Contains([]string{"m6i.large", "m6i.xlarge", "m6i.2xlarge"}, typ.Name)
	})
	usable := map[string]plan.Resources{}
	for _, typ := range kinds {
		usable[typ.Name] = plan.ResourcesOf(typ.Allocatable)
	}
	rapid.Check(t, func(t *rapid.T) {
		in := new(plan.Interner)
		pool := nodePool("p", onDemand(), func(pool *karpv1.NodePool) {
			pool.Spec.Limits = karpv1.Limits{
				corev1.ResourceCPU:   *resource.NewQuantity(rapid.Int64Range(0, 24).Draw(t, "limit"), resource.DecimalSI),
				karpv1.ResourceNodes: *resource.NewQuantity(rapid.Int64Range(1, 6).Draw(t, "limit of nodes"), resource.DecimalSI),
			}
		})
		w := &world{pools: []plan.Pool{{NodePool: pool, Types: kinds}}, intern: in}
		for i := range rapid.IntRange(0, 3).Draw(t, "nodes") {
			w.nodes = append(w.nodes, existing(fmt.Sprint(i), "m6i.large"))
		}
		for i := range rapid.IntRange(1, 8).Draw(t, "pods") {
			w.pods = append(w.pods, newPod(fmt.Sprint(i), rapid.SampledFrom([]string{"300m", "900m", "1500m", "3", "7"}).Draw(t, "cpu"), "1Mi"))
		}
		input := w.input()
		spare := buffered(in, "spare", rapid.IntRange(1, 8).Draw(t, "room"), rapid.SampledFrom([]string{"300m", "1500m", "3", "7"}).Draw(t, "of"), "1Mi")
		input.Snapshot.Pending = append(input.Snapshot.Pending, spare...)
		packed := plan.Pack(input)
		virtual := map[types.UID]int64{}
		for _, pod := range spare {
			virtual[pod.UID] = pod.Class.Requests.CPU
		}
		room := map[string]int64{}
		for i, claim := range packed.Claims {
			free := usable[claim.InstanceTypes[0]].CPU - plan.ResourcesOf(claim.Requests).CPU
			for _, pod := range claim.Pods {
				free += virtual[pod]
			}
			room[fmt.Sprint("claim ", i)] = free
		}
		for _, n := range w.nodes {
			room[n.Key()] = n.Allocatable.CPU
		}
		for _, placement := range packed.Placements {
			if !placement.Pod.Virtual {
				room[placement.Node] -= placement.Pod.Class.Requests.CPU
			}
		}
		for _, u := range packed.Unplaced {
			if u.Pod.Virtual {
				continue
			}
			for place, free := range room {
				if need := u.Pod.Class.Requests.CPU; need <= free {
					t.Errorf("pod %s, which needs %dm, is left, and %s has %dm for it or for virtual pods: %v", u.Pod.Name, need, place, free, u.Reasons)
				}
			}
			if len(w.pods) == 1 && len(plan.Pack(w.input()).Unplaced) == 0 {
				t.Errorf("pod %s is left, and would not be without the buffer: %v", u.Pod.Name, u.Reasons)
			}
		}
	})
}
