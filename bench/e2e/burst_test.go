package e2e

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// TestBurstPods checks that the manifest contains what keeps large pods apart, and how many nodes follow from it.
func TestBurstPods(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason string
		burst  Burst
		needed int
		has    func(corev1.PodSpec) bool
	}{
		"anti-affinity": {"a node for each, and room for twelve small ones on it", Burst{Large: 40, Small: 360}, 40,
			func(s corev1.PodSpec) bool { return s.Affinity.PodAntiAffinity != nil }},
		"host-port": {"small ones that find no room beside need nodes of their own, nineteen on each", Burst{Large: 10, Small: 140}, 12,
			func(s corev1.PodSpec) bool { return s.Containers[0].Ports[0].HostPort == 8080 }},
		"spread": {"two may share a node", Burst{Large: 38, Small: 95}, 19,
			func(s corev1.PodSpec) bool { return len(s.TopologySpreadConstraints) == 1 }},
		"size": {"four small ones fit beside a large one", Burst{Large: 40, Small: 360}, 51,
			func(s corev1.PodSpec) bool { return s.Containers[0].Resources.Requests.Cpu().MilliValue() == 1500 }},
	} {
		test.burst.Apart = name
		if needed := test.burst.needed(); needed != test.needed {
			t.Errorf("%s: %s: %d nodes, want %d", name, test.reason, needed, test.needed)
		}
		for i, manifest := range strings.Split(burstPods(test.burst), "\n---\n") {
			var d appsv1.Deployment
			if err := yaml.UnmarshalStrict([]byte(manifest), &d); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, manifest)
			}
			if i == 0 && !test.has(d.Spec.Template.Spec) {
				t.Errorf("%s: nothing keeps the large pods apart:\n%s", name, manifest)
			}
		}
	}
	if !slices.IsSorted(Aparts()) || len(Aparts()) != len(aparts) {
		t.Errorf("aparts are %v", Aparts())
	}
}
