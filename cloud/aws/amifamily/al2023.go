package amifamily

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// al2023 is Amazon Linux 2023.
var al2023 = Family{
	Name: awsv1.AMIFamilyAL2023, OS: string(corev1.Linux), Volumes: []Volume{{"/dev/xvda", 20}}, PodDevice: "/dev/xvda",
	PodsByENI: true, ReservesByENI: true, PodsPerCore: true,
	images: al2023Images, userData: al2023UserData,
}

func al2023Images(version, kubernetes string) []Image {
	var out []Image
	for _, build := range []struct {
		arch, kind string
		runs       []corev1.NodeSelectorRequirement
	}{
		{"x86_64", "standard", plainOnly}, {"arm64", "standard", plainOnly},
		{"x86_64", "nvidia", gpuOnly}, {"arm64", "nvidia", gpuOnly}, {"x86_64", "neuron", neuronOnly},
	} {
		name := "recommended"
		if version != awsv1.AliasVersionLatest {
			name = fmt.Sprintf("amazon-eks-node-al2023-%s-%s-%s-%s", build.arch, build.kind, kubernetes, version)
		}
		out = append(out, Image{fmt.Sprintf("/aws/service/eks/optimized-ami/%s/amazon-linux-2023/%s/%s/%s/image_id",
			kubernetes, build.arch, build.kind, name), runs(build.runs)})
	}
	return out
}

// al2023UserData returns the user's parts, then a NodeConfig for nodeadm. nodeadm merges all NodeConfigs in their order, so
// what the node needs to join has the last word.
func al2023UserData(n *Node) (string, error) {
	config, err := nodeConfig(n)
	if err != nil {
		return "", err
	}
	parts, err := splitUserData(n.Custom, nodeConfigOrScript)
	if err != nil {
		return "", err
	}
	return joinUserData(append(parts, newPart(nodeConfigPart, config)))
}

// nodeConfig renders the NodeConfig (https://awslabs.github.io/amazon-eks-ami/nodeadm/).
func nodeConfig(n *Node) (string, error) {
	kubelet, err := kubeletSettings(n.Kubelet)
	if err != nil {
		return "", err
	}
	kubelet["maxPods"] = n.MaxPods
	kubelet["registerWithTaints"] = n.taints()
	spec := map[string]any{
		"cluster": map[string]any{
			"name":                 n.Cluster.Name,
			"apiServerEndpoint":    n.Cluster.Endpoint,
			"certificateAuthority": n.Cluster.Authority,
			"cidr":                 n.Cluster.ServiceCIDR,
		},
		"kubelet": map[string]any{
			"config": kubelet,
			"flags":  []string{"--node-labels=" + joined(n.labels(), "=")},
		},
	}
	if n.RAID0 {
		spec["instance"] = map[string]any{"localStorage": map[string]any{"strategy": "RAID0"}}
	}
	out, err := yaml.Marshal(map[string]any{"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec})
	if err != nil {
		return "", fmt.Errorf("render NodeConfig: %w", err)
	}
	return string(out), nil
}

// kubeletSettings returns a class's kubelet settings under the names of the kubelet's own configuration, which
// EC2NodeClass uses as well.
func kubeletSettings(settings *awsv1.KubeletConfiguration) (map[string]any, error) {
	out := make(map[string]any)
	if settings == nil {
		return out, nil
	}
	encoded, err := json.Marshal(settings)
	if err != nil {
		return nil, fmt.Errorf("kubelet settings: %w", err)
	}
	if err := json.Unmarshal(encoded, &out); err != nil {
		return nil, fmt.Errorf("kubelet settings: %w", err)
	}
	return out, nil
}

// nodeConfigOrScript returns the type of user data that are no MIME archive.
func nodeConfigOrScript(text string) string {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if yaml.Unmarshal([]byte(text), &head) == nil && head.Kind == "NodeConfig" && strings.HasPrefix(head.APIVersion, "node.eks.aws/") {
		return nodeConfigPart
	}
	return shellScriptPart
}
