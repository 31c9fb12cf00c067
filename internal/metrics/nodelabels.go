package metrics

import (
	"slices"
	"strings"
)

// nodeLabels are the labels of Nodes that are labels of metrics as well: those that Karpenter calls well-known. The label of the
// metric is what follows the slash.
var nodeLabels = []string{
	"karpenter.sh/nodepool", "karpenter.sh/capacity-type",
	"topology.kubernetes.io/zone", "topology.kubernetes.io/region", "topology.k8s.aws/zone-id",
	"kubernetes.io/arch", "kubernetes.io/os", "node.kubernetes.io/instance-type", "node.kubernetes.io/windows-build",
	"karpenter.k8s.aws/capacity-reservation-id", "karpenter.k8s.aws/capacity-reservation-interruptible", "karpenter.k8s.aws/capacity-reservation-type",
	"karpenter.k8s.aws/instance-accelerator-count", "karpenter.k8s.aws/instance-accelerator-manufacturer", "karpenter.k8s.aws/instance-accelerator-name",
	"karpenter.k8s.aws/instance-capability-flex", "karpenter.k8s.aws/instance-category", "karpenter.k8s.aws/instance-cpu",
	"karpenter.k8s.aws/instance-cpu-manufacturer", "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz",
	"karpenter.k8s.aws/instance-ebs-bandwidth", "karpenter.k8s.aws/instance-encryption-in-transit-supported",
	"karpenter.k8s.aws/instance-family", "karpenter.k8s.aws/instance-generation",
	"karpenter.k8s.aws/instance-gpu-count", "karpenter.k8s.aws/instance-gpu-manufacturer", "karpenter.k8s.aws/instance-gpu-memory", "karpenter.k8s.aws/instance-gpu-name",
	"karpenter.k8s.aws/instance-hypervisor", "karpenter.k8s.aws/instance-local-nvme", "karpenter.k8s.aws/instance-memory",
	"karpenter.k8s.aws/instance-network-bandwidth", "karpenter.k8s.aws/instance-size", "karpenter.k8s.aws/instance-tenancy",
	"karpenter.k8s.aws/placement-group-id", "karpenter.k8s.aws/placement-group-partition",
}

// NodeLabels returns the labels of Nodes that are labels of metrics too, by their key, with the name of the metric's label.
func NodeLabels() map[string]string {
	names := make(map[string]string, len(nodeLabels))
	for _, key := range nodeLabels {
		_, name, _ := strings.Cut(key, "/")
		names[key] = LabelName(name)
	}
	return names
}

// nodeLabelNames are the labels of the metrics of Nodes.
func nodeLabelNames() []string {
	names := []string{"node_name", "phase", "managed"}
	for _, name := range NodeLabels() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// LabelName writes a name of Kubernetes' as Karpenter writes labels and values of metrics: in lower case, with underscores.
func LabelName(name string) string { return strings.ReplaceAll(strings.ToLower(name), "-", "_") }

// SnakeCase writes a word of Kubernetes' as Karpenter's metrics do: SpotInterrupted as spot_interrupted.
func SnakeCase(word string) string {
	var label strings.Builder
	for i, letter := range word {
		if i > 0 && letter >= 'A' && letter <= 'Z' {
			label.WriteByte('_')
		}
		label.WriteRune(letter)
	}
	return strings.ToLower(label.String())
}
