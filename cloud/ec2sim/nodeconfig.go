package ec2sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// nodeConfig is nodeadm's NodeConfig with all of its fields (github.com/awslabs/amazon-eks-ami, nodeadm/api/v1alpha1,
// February 2026; tools/nodeadm checks that a user data file of cloud/aws sets all of them, and a test here that the
// simulator parses it). Fields that do not affect the Node are parsed but not used: containerd, the environment, the
// network, feature gates, mountPath, disabledMounts and maxPodsExpression.
type nodeConfig struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       struct {
		Cluster struct {
			Name                 string `json:"name"`
			APIServerEndpoint    string `json:"apiServerEndpoint"`
			CertificateAuthority []byte `json:"certificateAuthority"`
			CIDR                 string `json:"cidr"`
			EnableOutpost        *bool  `json:"enableOutpost"`
			ID                   string `json:"id"`
		} `json:"cluster"`
		Containerd struct {
			Config          string         `json:"config"`
			BaseRuntimeSpec map[string]any `json:"baseRuntimeSpec"`
		} `json:"containerd"`
		Instance struct {
			LocalStorage struct {
				Strategy       string   `json:"strategy"`
				MountPath      string   `json:"mountPath"`
				DisabledMounts []string `json:"disabledMounts"`
			} `json:"localStorage"`
			Environment map[string]map[string]string `json:"environment"`
			Network     struct {
				Nameservers []string `json:"nameservers"`
				Domains     []string `json:"domains"`
			} `json:"network"`
		} `json:"instance"`
		Kubelet struct {
			Config            map[string]any `json:"config"`
			Flags             []string       `json:"flags"`
			MaxPodsExpression string         `json:"maxPodsExpression"`
		} `json:"kubelet"`
		FeatureGates map[string]bool `json:"featureGates"`
	} `json:"spec"`
}

// decodeStrictly refuses unknown and duplicate fields. nodeadm and the kubelet refuse values of a wrong type, but ignore
// unknown fields (nodeadm's decoder is not strict, and the kubelet retries without strictness and warns), so that a
// setting silently has no effect. The simulator exists to reveal such mistakes, so it is stricter. Like them, it is
// case-sensitive.
func decodeStrictly(document []byte, into any) error {
	strict, err := kjson.UnmarshalStrict(document, into)
	return errors.Join(append([]error{err}, strict...)...)
}

// mergedNodeConfig is the merge of a machine's NodeConfigs. nodeadm merges them in order: texts and lists of a later one
// replace those of an earlier one, the kubelet's configuration is merged field by field, and its flags are appended
// (nodeadm/internal/api/merge.go).
type mergedNodeConfig struct {
	last    nodeConfig
	count   int
	kubelet map[string]any
	flags   []string
}

// add merges the NodeConfig of one part. If a part has several documents, nodeadm reads the first.
func (m *mergedNodeConfig) add(body string) error {
	document, err := yaml.YAMLToJSONStrict([]byte(body))
	if err != nil {
		return fmt.Errorf("nodeadm: NodeConfig: %w", err)
	}
	var head struct{ APIVersion, Kind string }
	if err := json.Unmarshal(document, &head); err != nil {
		return fmt.Errorf("nodeadm: NodeConfig: %w", err)
	}
	switch {
	case head.Kind != "NodeConfig":
		return fmt.Errorf("nodeadm: document of kind %q in place of a NodeConfig", head.Kind)
	case head.APIVersion != "node.eks.aws/v1alpha1":
		return fmt.Errorf("nodeadm: NodeConfig of version %q, which it does not have", head.APIVersion)
	}
	// Decoding into existing values keeps those that the document does not set.
	m.last.Spec.Kubelet.Config, m.last.Spec.Kubelet.Flags = nil, nil
	if err := decodeStrictly(document, &m.last); err != nil {
		return fmt.Errorf("nodeadm: NodeConfig: %w", err)
	}
	m.count++
	m.kubelet = mergeDocuments(m.kubelet, m.last.Spec.Kubelet.Config)
	m.flags = append(m.flags, m.last.Spec.Kubelet.Flags...)
	return nil
}

// mergeDocuments merges over into under, field by field. An empty value replaces nothing (mergo, WithOverride).
func mergeDocuments(under, over map[string]any) map[string]any {
	out := maps.Clone(under)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range over {
		if inner, ok := value.(map[string]any); ok {
			below, _ := out[key].(map[string]any)
			out[key] = mergeDocuments(below, inner)
			continue
		}
		if _, there := out[key]; there && (value == nil || reflect.ValueOf(value).IsZero()) {
			continue
		}
		out[key] = value
	}
	return out
}

// applyNodeConfigs applies the NodeConfigs of an AL2023 machine: those of MIME parts, or a bare one, merged in order.
func (k *kubeletSetup) applyNodeConfigs(text string) error {
	k.program = "nodeadm"
	parts, err := splitUserData(text)
	if err != nil {
		return err
	}
	var merged mergedNodeConfig
	for _, p := range parts {
		if p.kind == "application/node.eks.aws" {
			if err := merged.add(p.body); err != nil {
				return err
			}
		}
	}
	return merged.apply(k)
}

// apply sets the kubelet's settings in k. Its flags take precedence over its configuration file.
func (m *mergedNodeConfig) apply(k *kubeletSetup) error {
	if m.count == 0 {
		return nil
	}
	document, err := json.Marshal(m.kubelet)
	if err != nil {
		return fmt.Errorf("kubelet: configuration: %w", err)
	}
	var config kubeletv1beta1.KubeletConfiguration
	if err := decodeStrictly(document, &config); err != nil {
		return fmt.Errorf("kubelet: configuration: %w", err)
	}
	cluster := m.last.Spec.Cluster
	k.clusterName, k.endpoint, k.cidr, k.ipv6 = cluster.Name, cluster.APIServerEndpoint, cluster.CIDR, isIPv6(cluster.CIDR)
	k.caGiven = len(cluster.CertificateAuthority) > 0
	k.raid0 = m.last.Spec.Instance.LocalStorage.Strategy == "RAID0"
	k.maxPods, k.podsPerCore, k.taints = int(config.MaxPods), int(config.PodsPerCore), config.RegisterWithTaints
	maps.Copy(k.kubeReserved, config.KubeReserved)
	maps.Copy(k.systemReserved, config.SystemReserved)
	maps.Copy(k.evictionHard, config.EvictionHard)
	for _, flag := range m.flags {
		if err := k.applyFlag(flag); err != nil {
			return err
		}
	}
	return nil
}
