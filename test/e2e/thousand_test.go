package e2e_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/test/world"
)

// shapes are the pods of the thousand, as many of each as there are shapes in a thousand.
var shapes = []struct{ name, requests string }{
	{"tiny", "cpu: 100m, memory: 128Mi"},
	{"web", "cpu: 500m, memory: 1Gi"},
	{"api", "cpu: 900m, memory: 3100Mi"},
	{"jvm", "cpu: 2, memory: 8Gi"},
	{"cache", "cpu: 250m, memory: 6Gi"},
	{"batch", "cpu: 3500m, memory: 4Gi"},
	{"worker", "cpu: 1, memory: 2Gi"},
	{"sidecar", "cpu: 50m, memory: 300Mi"},
}

// thousandPods takes an empty laboratory to a thousand pods of mixed shapes and back.
func thousandPods(t *testing.T, w *world.World) {
	const pods = 1000
	w.Sim(http.MethodPost, "/_sim/calls/reset", nil, nil)
	before := len(w.Writes())
	for i, shape := range shapes {
		replicas := pods / len(shapes)
		if i == 0 {
			replicas += pods % len(shapes)
		}
		w.Apply(deployment("thousand", shape.name, replicas, shape.requests))
	}
	w.AwaitRunning("thousand", pods, 8*time.Minute)

	created := lastCreated(w.Pods("thousand"))
	calls := fleetCalls(w)
	times := make([]time.Time, len(calls))
	for i, call := range calls {
		times[i] = call.At
	}
	groups := map[string]bool{}
	claims := w.Claims()
	for _, claim := range claims {
		groups[claim.Annotations["tenon.sh/launch-group"]] = true
	}
	cost := w.Cost()
	t.Logf("%d pods on %d nodes for %.3f $/hour; %d CreateFleet calls for %d launch groups; last pod created to last CreateFleet: %.1fs",
		pods, len(claims), cost.USDPerHr, len(calls), len(groups), times[len(times)-1].Sub(created).Seconds())
	if len(calls) > len(groups) {
		t.Errorf("%d CreateFleet calls for %d launch groups: %+v", len(calls), len(groups), calls)
	}

	emptyAfter(w, "2s")
	for _, shape := range shapes {
		w.Apply(deployment("thousand", shape.name, 0, shape.requests))
	}
	w.AwaitNothing(5 * time.Minute)
	writes := writesPerLife(w.Writes()[before:], len(claims))
	t.Logf("writes per node life: %v", writes)
	total := 0.0
	for _, n := range writes {
		total += n
	}
	if total > 12 {
		t.Errorf("%.2f writes per node life, want at most 12", total)
	}
}

func lastCreated(pods []corev1.Pod) time.Time {
	last := slices.MaxFunc(pods, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return last.CreationTimestamp.Time
}

// fleetCalls are the CreateFleet calls, dry runs left out.
func fleetCalls(w *world.World) []ec2sim.Call {
	w.T.Helper()
	var calls []ec2sim.Call
	w.Sim(http.MethodGet, "/_sim/calls?action=CreateFleet", nil, &calls)
	return slices.DeleteFunc(calls, func(c ec2sim.Call) bool { return c.Code == "DryRunOperation" })
}

// writesPerLife groups writes by what was written, per node. The Lease is renewed however many nodes there are.
func writesPerLife(writes []world.Write, nodes int) map[string]float64 {
	per := map[string]float64{}
	for _, write := range writes {
		if write.Resource != "leases" {
			per[write.Verb+" "+write.Resource] += 1 / float64(nodes)
		}
	}
	return per
}
