package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/tenon-sh/tenon/plan"
)

// A plan leaves only pods that could not have been placed.

// A lone waiting pod gets a place exactly if there is one: on an existing node, or on one that could be launched.
func TestOnePodIsPlacedWhereItCan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, drawing{replicas: 1, relations: relations(), preferences: preferences(), settled: true, anyChoice: true})
		w.pods = w.pods[:1]
		for key, pods := range w.bound {
			w.bound[key] = slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return w.waiting()[string(pod.UID)] != nil })
		}
		t.Log(w)
		p := plan.Pack(w.input())
		check(t, w, p)
		s, _ := w.standing(func(int) int { return 0 })
		where := w.placeFor(s, w.pods[0])
		if len(p.Unplaced) > 0 && where != "" {
			t.Fatalf("the pod is left (%v) and could go to %s", p.Unplaced[0].Reasons, where)
		}
	})
}

// In worlds small enough to try everything, all pods are placed if that is possible.
func TestTinyWorldsArePlannedWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, drawing{replicas: 3, relations: relations(), preferences: preferences(), settled: true, unlimited: true, anyChoice: true, tiny: true})
		if len(w.waiting()) > 5 {
			return
		}
		t.Log(w)
		p := plan.Pack(w.input())
		check(t, w, p)
		if len(p.Unplaced) == 0 {
			return
		}
		if way := w.allPlaceable(); way != "" {
			t.Fatalf("pod %s is left (%v), and there is a place for all: %s", p.Unplaced[0].Pod.Key(), p.Unplaced[0].Reasons, way)
		}
	})
}

// More choice never leaves more pods without a node: a type, an offering, a higher limit, or an empty node of a kind
// that already exists.
func TestMoreCapacityLeavesNoMorePods(t *testing.T) {
	t.Parallel()
	selfish := []func(*corev1.Pod){
		spreads(zone, 1), spreads(zone, 2), spreads(hostname, 1), spreads(zone, 1, minDomains(3)), avoids(hostname, ""), avoids(zone, ""),
	}
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, drawing{replicas: 10, relations: selfish, preferences: preferences(), settled: true, unlimited: true, anyChoice: true})
		t.Log(w)
		before := len(plan.Pack(w.input()).Unplaced)
		switch rapid.IntRange(0, 2).Draw(t, "more") {
		case 0: // types
			for i := range w.pools {
				w.pools[i].Types = smallCatalogue()
			}
		case 1: // a pool
			w.pools = append(w.pools, plan.Pool{NodePool: nodePool("wide"), Types: smallCatalogue()})
		case 2: // a node in a zone that already is a domain
			w.nodes = append(w.nodes, existing("extra", "m6i.16xlarge", inZone("b"))) // every pool sells there
		}
		if after := len(plan.Pack(w.input()).Unplaced); after > before {
			t.Fatalf("with more to choose from, %d pods are left instead of %d", after, before)
		}
	})
}

// Preferences keep no pod from a node.
func TestPreferencesLeaveNoMorePods(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, drawing{replicas: 10, preferences: preferences(), unlimited: true, anyChoice: true})
		w.nodes, w.bound = nil, nil // the first pods take the existing room
		t.Log(w)
		respected := len(plan.Pack(w.input()).Unplaced)
		w.policy = plan.PreferencesIgnore
		if ignored := len(plan.Pack(w.input()).Unplaced); respected > ignored {
			t.Fatalf("with preferences %d pods are left, without them %d", respected, ignored)
		}
	})
}

// All shapes that planners are measured with, a fifth of each, are placed.
func TestDiversePodsAreAllPlaced(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	letters := []string{"a", "b", "c", "d", "e", "f", "g"}
	one := func() string { return letters[r.IntN(len(letters))] }
	w := world{pools: []plan.Pool{{NodePool: nodePool("p"), Types: smallCatalogue()}}}
	of := func(name string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"my-label": name}}
	}
	spread := func(key string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: of(one())}}
		}
	}
	near := func(pod *corev1.Pod) {
		pod.Labels = map[string]string{"my-affinity": one()}
		podAffinityOf(pod).RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{{
			TopologyKey: zone, LabelSelector: &metav1.LabelSelector{MatchLabels: pod.Labels}}}
	}
	apart := func(pod *corev1.Pod) {
		pod.Labels = map[string]string{"app": "nginx"}
		avoids(hostname, "")(pod)
	}
	shapes := []func(*corev1.Pod){func(*corev1.Pod) {}, spread(zone), spread(hostname), near, apart}
	for i := range 400 {
		pod := newPod(fmt.Sprintf("pod-%03d", i), []string{"100m", "250m", "500m", "1", "1500m"}[r.IntN(5)], []string{"100Mi", "256Mi", "512Mi", "1Gi", "2Gi", "4Gi"}[r.IntN(6)],
			labeled("my-label", one()))
		shapes[i%len(shapes)](pod)
		w.pods = append(w.pods, pod)
	}
	for _, u := range plan.Pack(w.input()).Unplaced {
		t.Errorf("%s is left: %v", u.Pod.Key(), u.Reasons)
	}
}
