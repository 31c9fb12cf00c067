package ec2sim

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// bottlerocketSettings are the settings of a Bottlerocket machine that affect its Node, and the names of the others below
// settings.kubernetes. A machine does not boot with a setting that it does not know, or whose value has another type
// (https://github.com/bottlerocket-os/bottlerocket-settings-sdk, bottlerocket-settings-models/settings-extensions/kubernetes).
type bottlerocketSettings struct {
	ClusterName     string              `toml:"cluster-name"`
	APIServer       string              `toml:"api-server"`
	Certificate     string              `toml:"cluster-certificate"`
	DNS             any                 `toml:"cluster-dns-ip"`
	MaxPods         uint32              `toml:"max-pods"`
	Labels          map[string]string   `toml:"node-labels"`
	Taints          map[string][]string `toml:"node-taints"`
	KubeReserved    map[string]string   `toml:"kube-reserved"`
	SystemReserved  map[string]string   `toml:"system-reserved"`
	EvictionHard    map[string]string   `toml:"eviction-hard"`
	EvictionSoft    map[string]string   `toml:"eviction-soft"`
	EvictionPeriods map[string]string   `toml:"eviction-soft-grace-period"`
	EvictionMax     int32               `toml:"eviction-max-pod-grace-period"`
	GCHigh          string              `toml:"image-gc-high-threshold-percent"`
	GCLow           string              `toml:"image-gc-low-threshold-percent"`
	CPUQuota        bool                `toml:"cpu-cfs-quota-enforced"`
}

var bottlerocketOthers = strings.Fields(`allowed-unsafe-sysctls authentication-mode bootstrap-token cloud-provider cluster-domain
	container-log-max-files container-log-max-size container-log-max-workers container-log-monitor-interval cpu-manager-policy
	cpu-manager-policy-options cpu-manager-reconcile-period credential-providers device-ownership-from-security-context event-burst
	event-qps hostname-override hostname-override-source ids-per-pod image-maximum-gc-age image-minimum-gc-age kube-api-burst
	kube-api-qps kubelet-extra-config log-level max-parallel-image-pulls memory-manager-policy memory-manager-reserved-memory
	memory-swap-behavior node-ip pod-infra-container-image pod-pids-limit provider-id registry-burst registry-qps reserved-cpus
	seccomp-default server-certificate server-key server-tls-bootstrap shutdown-grace-period
	shutdown-grace-period-for-critical-pods single-process-oom-kill standalone-mode static-pods static-pods-enabled
	topology-manager-policy topology-manager-policy-options topology-manager-scope`)

// applySettings applies the settings of a Bottlerocket machine.
func (k *kubeletSetup) applySettings(text string) error {
	k.program = "Bottlerocket"
	var whole struct {
		Settings struct {
			Kubernetes map[string]any `toml:"kubernetes"`
			Bootstrap  map[string]struct {
				Commands  [][]string `toml:"commands"`
				Mode      string     `toml:"mode"`
				Essential bool       `toml:"essential"`
			} `toml:"bootstrap-commands"`
		} `toml:"settings"`
	}
	if err := toml.Unmarshal([]byte(text), &whole); err != nil {
		return fmt.Errorf("bottlerocket: user data: %w", err)
	}
	for _, other := range bottlerocketOthers {
		delete(whole.Settings.Kubernetes, other)
	}
	document, err := toml.Marshal(whole.Settings.Kubernetes)
	if err != nil {
		return fmt.Errorf("bottlerocket: user data: %w", err)
	}
	var settings bottlerocketSettings
	if err := toml.NewDecoder(strings.NewReader(string(document))).DisallowUnknownFields().Decode(&settings); err != nil {
		return fmt.Errorf("bottlerocket: settings.kubernetes: %w", err)
	}
	k.clusterName, k.endpoint, k.caGiven, k.maxPods = settings.ClusterName, settings.APIServer, settings.Certificate != "", int(settings.MaxPods)
	if dns, ok := settings.DNS.(string); ok {
		address, err := netip.ParseAddr(dns)
		if err != nil {
			return fmt.Errorf("bottlerocket: settings.kubernetes.cluster-dns-ip: %w", err)
		}
		k.ipv6 = address.Is6()
	}
	maps.Copy(k.labels, settings.Labels)
	maps.Copy(k.kubeReserved, settings.KubeReserved)
	maps.Copy(k.systemReserved, settings.SystemReserved)
	maps.Copy(k.evictionHard, settings.EvictionHard)
	for _, key := range slices.Sorted(maps.Keys(settings.Taints)) {
		for _, text := range settings.Taints[key] {
			taint, err := parseTaint(key + "=" + text)
			if err != nil {
				return fmt.Errorf("bottlerocket: settings.kubernetes.node-taints: %w", err)
			}
			k.taints = append(k.taints, taint)
		}
	}
	for name, command := range whole.Settings.Bootstrap {
		if !slices.Contains([]string{"off", "once", "always"}, command.Mode) {
			return fmt.Errorf("bottlerocket: settings.bootstrap-commands.%s: mode %q", name, command.Mode)
		}
		for n, words := range command.Commands {
			if len(words) < 2 || words[0] != "apiclient" {
				return fmt.Errorf("bottlerocket: settings.bootstrap-commands.%s: %q is not a command of apiclient", name, words)
			}
			// The disks have to be made one before directories are bound to it.
			if n > 0 && command.Mode == "always" && strings.HasPrefix(strings.Join(words, " "), "apiclient ephemeral-storage bind") {
				k.raid0 = slices.Equal(command.Commands[n-1], []string{"apiclient", "ephemeral-storage", "init"})
			}
		}
	}
	return nil
}
