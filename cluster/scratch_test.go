package cluster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// world is the content of an API server whose changes the mirror under test receives one by one.
type world struct {
	version int
	pods    map[string]*corev1.Pod
	nodes   map[string]*corev1.Node
	claims  map[string]*karpv1.NodeClaim
	// stores are the objects about storage and the namespaces, by resource and name.
	stores map[string]map[string]runtime.Object
}

func (w *world) next() string {
	w.version++
	return fmt.Sprint(w.version)
}

// replace gives the mirror the complete lists that a newly started one would get.
func (w *world) replace(t *rapid.T, m *Mirror) {
	var pods, nodes, claims []any
	for _, pod := range w.pods {
		pods = append(pods, pod.DeepCopy())
	}
	for _, node := range w.nodes {
		nodes = append(nodes, node.DeepCopy())
	}
	for _, claim := range w.claims {
		claims = append(claims, claim.DeepCopy())
	}
	version := w.next()
	for resource, store := range w.stores {
		var list []any
		for _, o := range store {
			list = append(list, o.DeepCopyObject())
		}
		if err := storeOf(m, resource).Replace(list, version); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{m.pods.feed.Replace(pods, version), m.nodes.feed.Replace(nodes, version), m.claims.feed.Replace(claims, version)} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestIncrementalSnapshotsEqualThoseFromScratch applies random changes one by one, takes snapshots in between, and
// compares the end with a mirror that lists everything once. What a mirror remembers beyond the API (pod events of pods
// that are gone, promises) is left out.
func TestIncrementalSnapshotsEqualThoseFromScratch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		clock := clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))
		m := feedable(t, clock)
		w := &world{pods: map[string]*corev1.Pod{}, nodes: map[string]*corev1.Node{}, claims: map[string]*karpv1.NodeClaim{}, stores: newStores()}
		w.replace(r, m)
		must := func(err error) {
			if err != nil {
				r.Fatal(err)
			}
		}
		names := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		providers := rapid.SampledFrom([]string{"", "aws:///1", "aws:///2", "aws:///3"})
		var kept []*plan.Snapshot
		var frozen [][]string
		r.Repeat(map[string]func(*rapid.T){
			"put pod": func(r *rapid.T) {
				pod := drawPod(r, names)
				if old := w.pods[pod.Name]; old != nil && rapid.Bool().Draw(r, "same pod") {
					pod.UID = old.UID
				}
				pod.ResourceVersion = w.next()
				w.pods[pod.Name] = pod
				must(m.pods.feed.Update(pod.DeepCopy()))
			},
			"delete pod": func(r *rapid.T) {
				if pod := w.pods[names.Draw(r, "pod")]; pod != nil {
					delete(w.pods, pod.Name)
					must(m.pods.feed.Delete(pod.DeepCopy()))
				}
			},
			"put node": func(r *rapid.T) {
				node := testNode(names.Draw(r, "node"), providers.Draw(r, "provider"))
				node.ResourceVersion = w.next()
				node.Spec.Unschedulable = rapid.Bool().Draw(r, "cordoned")
				w.nodes[node.Name] = node
				must(m.nodes.feed.Update(node.DeepCopy()))
			},
			"delete node": func(r *rapid.T) {
				if node := w.nodes[names.Draw(r, "node")]; node != nil {
					delete(w.nodes, node.Name)
					must(m.nodes.feed.Delete(node.DeepCopy()))
				}
			},
			"put claim": func(r *rapid.T) {
				claim := testClaim(names.Draw(r, "claim"), providers.Draw(r, "provider"))
				claim.ResourceVersion = w.next()
				if rapid.Bool().Draw(r, "registered") {
					claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeRegistered, Status: metav1.ConditionTrue, LastTransitionTime: metav1.Unix(1_700_000_000, 0)})
				}
				w.claims[claim.Name] = claim
				if rapid.Bool().Draw(r, "assumed first") {
					m.Assume(claim)
				}
				must(m.claims.feed.Update(claim.DeepCopy()))
				m.claims.feed.UpdateResourceVersion(claim.ResourceVersion)
			},
			"delete claim": func(r *rapid.T) {
				if claim := w.claims[names.Draw(r, "claim")]; claim != nil {
					delete(w.claims, claim.Name)
					must(m.claims.feed.Delete(claim.DeepCopy()))
					m.claims.feed.UpdateResourceVersion(w.next())
				}
			},
			"put storage": func(r *rapid.T) {
				resource := rapid.SampledFrom(storeNames).Draw(r, "resource")
				object := drawStored(r, resource, names)
				w.stores[resource][object.(metav1.Object).GetName()] = object
				must(storeOf(m, resource).Update(object.DeepCopyObject()))
			},
			"delete storage": func(r *rapid.T) {
				resource, name := rapid.SampledFrom(storeNames).Draw(r, "resource"), names.Draw(r, "object")
				if object := w.stores[resource][name]; object != nil {
					delete(w.stores[resource], name)
					must(storeOf(m, resource).Delete(object.DeepCopyObject()))
				}
			},
			"relist after a gap": func(r *rapid.T) {
				for range rapid.IntRange(0, 3).Draw(r, "missed") {
					delete(w.pods, names.Draw(r, "pod"))
					delete(w.nodes, names.Draw(r, "node"))
					delete(w.claims, names.Draw(r, "claim"))
					delete(w.stores[rapid.SampledFrom(storeNames).Draw(r, "resource")], names.Draw(r, "object"))
					pod := drawPod(r, names)
					w.pods[pod.Name] = pod
				}
				w.replace(r, m)
			},
			"snapshot": func(*rapid.T) {
				clock.Step(time.Second)
				s := m.Snapshot()
				kept, frozen = append(kept, s), append(frozen, contents(s))
			},
		})

		scratch := feedable(t, clock)
		scratch.interner = m.interner
		w.replace(r, scratch)
		if diff := cmp.Diff(scratch.Snapshot(), m.Snapshot(),
			cmpopts.IgnoreFields(plan.Node{}, "LastPodEvent"), cmpopts.EquateEmpty(),
			cmp.AllowUnexported(plan.Class{}, plan.Labels{})); diff != "" {
			r.Fatalf("incremental differs from scratch (-scratch +incremental):\n%s", diff)
		}
		if diff := cmp.Diff(scratch.waiting.mounted, m.waiting.mounted); diff != "" {
			r.Fatalf("claims of waiting pods (-scratch +incremental):\n%s", diff)
		}
		for i, s := range kept {
			if !slices.Equal(frozen[i], contents(s)) {
				r.Fatalf("snapshot %d has changed after it was taken", i)
			}
		}
		if got, want := len(m.boundPods.byNode), len(scratch.boundPods.byNode); got > want+len(w.nodes) {
			r.Fatalf("the mirror remembers pods of %d nodes, where there are %d", got, want)
		}
	})
}

func drawPod(r *rapid.T, names *rapid.Generator[string]) *corev1.Pod {
	pod := testPod(names.Draw(r, "pod"), rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(r, "bound to"))
	pod.UID = types.UID(fmt.Sprintf("%s-%d", pod.Name, rapid.IntRange(0, 2).Draw(r, "incarnation")))
	pod.Labels = map[string]string{"app": rapid.SampledFrom([]string{"web", "db"}).Draw(r, "app")}
	if rapid.Bool().Draw(r, "mounts") {
		pod.Spec.Volumes = []corev1.Volume{claimVolume(names.Draw(r, "volume claim"))}
	}
	switch rapid.SampledFrom([]string{"new", "unschedulable", "terminating", "daemon"}).Draw(r, "state") {
	case "unschedulable":
		if pod.Spec.NodeName == "" {
			unschedulable(pod)
		}
	case "terminating":
		at := metav1.Unix(1_700_000_500, 0)
		pod.DeletionTimestamp = &at
	case "daemon":
		ownedBy("DaemonSet", "agent")(pod)
	}
	return pod
}
