package examples_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// workloadExample is what an example with pods promises.
type workloadExample struct {
	pods int
	// holds checks the Nodes of the pods, one for each pod.
	holds func(t *testing.T, nodes []corev1.Node)
}

// workloadExamples returns the examples with pods by the names of their files.
func workloadExamples() map[string]workloadExample {
	return map[string]workloadExample{
		"inflate":              {3, all(corev1.LabelOSStable, "linux")},
		"disruption-budget":    {10, all(corev1.LabelOSStable, "linux")},
		"arm64":                {1, all(corev1.LabelArchStable, "arm64")},
		"prefer-arm":           {1, all(corev1.LabelArchStable, "arm64")},
		"spot":                 {1, all(karpv1.CapacityTypeLabelKey, karpv1.CapacityTypeSpot)},
		"gpu-nvidia":           {1, all(awsv1.LabelInstanceGPUManufacturer, "nvidia")},
		"gpu-amd":              {1, all(awsv1.LabelInstanceGPUManufacturer, "amd")},
		"neuron":               {1, all(awsv1.LabelInstanceAcceleratorManufacturer, "aws")},
		"spread-hostname":      {10, spread(map[string]int{corev1.LabelHostname: 2})},
		"spread-zone":          {6, spread(map[string]int{corev1.LabelTopologyZone: 1})},
		"spread-hostname-zone": {50, spread(map[string]int{corev1.LabelHostname: 2, corev1.LabelTopologyZone: 5})},
	}
}

// all checks that all Nodes have a label.
func all(key, value string) func(*testing.T, []corev1.Node) {
	return func(t *testing.T, nodes []corev1.Node) {
		t.Helper()
		for _, node := range nodes {
			if node.Labels[key] != value {
				t.Errorf("a pod runs on Node %s with %s=%q, want %q", node.Name, key, node.Labels[key], value)
			}
		}
	}
}

// spread checks that no value of a label has more pods than another that has any, by more than a skew.
func spread(skews map[string]int) func(*testing.T, []corev1.Node) {
	return func(t *testing.T, nodes []corev1.Node) {
		t.Helper()
		for key, skew := range skews {
			pods := map[string]int{}
			for _, node := range nodes {
				pods[node.Labels[key]]++
			}
			least, most := len(nodes), 0
			for _, n := range pods {
				least, most = min(least, n), max(most, n)
			}
			if len(pods) < 2 || most-least > skew {
				t.Errorf("pods by %s: %v, want a skew of at most %d", key, pods, skew)
			}
		}
	}
}
