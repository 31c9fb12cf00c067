package plan_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan"
)

// A DaemonSet bound to a zone takes its share there and nowhere else, and every launch option holds its pods in every
// zone that is listed with it.
func TestDaemonSetsOfOneZone(t *testing.T) {
	t.Parallel()
	bound := func(cpu string, options ...func(*corev1.Pod)) *corev1.Pod { return newPod("d", cpu, "1Gi", options...) }
	tests := []struct {
		name, reason string
		daemons      []*corev1.Pod
		pod          func(*corev1.Pod)
		first        string
		zones        []string
	}{
		{name: "one zone", reason: "in the others the pod fits on the smaller machine", daemons: []*corev1.Pod{bound("500m", selects(zone, "us-east-1a"))},
			pod: selects(corev1.LabelArchStable, "arm64"), first: "m6g.large", zones: []string{"us-east-1b", "us-east-1c"}},
		{name: "the zone of the pod", reason: "there it needs the next size", daemons: []*corev1.Pod{bound("500m", selects(zone, "us-east-1a"))},
			pod: wants(corev1.LabelArchStable, "arm64", zone, "us-east-1a"), first: "m6g.xlarge", zones: []string{"us-east-1a"}},
		{name: "by the zone's id", reason: "it is the same zone", daemons: []*corev1.Pod{bound("500m", selects("topology.k8s.aws/zone-id", "use1-az1"))},
			pod: selects(corev1.LabelArchStable, "arm64"), first: "m6g.large", zones: []string{"us-east-1b", "us-east-1c"}},
		{name: "one for each zone", reason: "they take the same everywhere, so that zones differ in nothing", pod: selects(corev1.LabelArchStable, "arm64"), first: "m6g.xlarge", zones: threeZones,
			daemons: []*corev1.Pod{bound("500m", selects(zone, "us-east-1a")), bound("500m", selects(zone, "us-east-1b")), bound("500m", selects(zone, "us-east-1c"))}},
		{name: "all zones but one", reason: "only in the last one there is room enough", daemons: []*corev1.Pod{bound("500m", needs(in(zone, "us-east-1a", "us-east-1b")))},
			pod: selects(corev1.LabelArchStable, "arm64"), first: "m6g.large", zones: []string{"us-east-1c"}},
		{name: "in alternatives", reason: "a term for one zone and one for an architecture that is not asked for",
			daemons: []*corev1.Pod{bound("500m", needs(in(zone, "us-east-1a"), expr(corev1.LabelArchStable, corev1.NodeSelectorOpIn, "amd64")))},
			pod:     selects(corev1.LabelArchStable, "arm64"), first: "m6g.large", zones: []string{"us-east-1b", "us-east-1c"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := world{pods: manyPods(1, "a", "1700m", "1Gi", test.pod)}
			for i, daemon := range test.daemons {
				w.addDaemonSet(string(rune('d'+i)), daemon.Spec)
			}
			w.pools = []plan.Pool{{NodePool: nodePool("p", onDemand()), Types: smallCatalogue()}}
			p := plan.Pack(w.input())
			check(t, &w, p)
			if len(p.Claims) != 1 {
				t.Fatalf("%d claims, left %v", len(p.Claims), p.Unplaced)
			}
			types := slices.Clone(p.Claims[0].InstanceTypes)
			if types[0] != test.first || !slices.Equal(p.Claims[0].Zones, test.zones) {
				t.Errorf("%s in %v, want %s in %v: %s", types[0], p.Claims[0].Zones, test.first, test.zones, test.reason)
			}
			slices.Sort(types)
			if len(slices.Compact(types)) != len(p.Claims[0].InstanceTypes) {
				t.Errorf("a type is listed twice: %v", p.Claims[0].InstanceTypes)
			}
		})
	}
}
