package amifamily

import (
	"fmt"
	"strconv"
	"strings"
)

// kubeletFlags returns a node's settings as flags of the kubelet (kubernetes.io, "kubelet"). The addresses of the DNS are not
// among them: bootstrap scripts take those as an argument of their own. Lists are in double quotes, so that a shell that
// splits the flags takes neither < nor a comma for its own.
func kubeletFlags(n *Node) []string {
	var taints []string
	for _, taint := range n.taints() {
		taints = append(taints, taint.ToString())
	}
	flags := []string{
		fmt.Sprintf("--node-labels=%q", joined(n.labels(), "=")),
		fmt.Sprintf("--register-with-taints=%q", strings.Join(taints, ",")),
		"--max-pods=" + strconv.FormatInt(n.MaxPods, 10),
	}
	number := func(name string, value *int32) {
		if value != nil {
			flags = append(flags, fmt.Sprintf("--%s=%d", name, *value))
		}
	}
	list := func(name string, pairs map[string]string, separator string) {
		if len(pairs) > 0 {
			flags = append(flags, fmt.Sprintf("--%s=%q", name, joined(pairs, separator)))
		}
	}
	k := n.kubelet()
	number("pods-per-core", k.PodsPerCore)
	list("system-reserved", k.SystemReserved, "=")
	list("kube-reserved", k.KubeReserved, "=")
	list("eviction-hard", k.EvictionHard, "<")
	list("eviction-soft", k.EvictionSoft, "<")
	periods := map[string]string{}
	for signal, period := range k.EvictionSoftGracePeriod {
		periods[signal] = period.Duration.String()
	}
	list("eviction-soft-grace-period", periods, "=")
	number("eviction-max-pod-grace-period", k.EvictionMaxPodGracePeriod)
	number("image-gc-high-threshold", k.ImageGCHighThresholdPercent)
	number("image-gc-low-threshold", k.ImageGCLowThresholdPercent)
	if k.CPUCFSQuota != nil {
		flags = append(flags, "--cpu-cfs-quota="+strconv.FormatBool(*k.CPUCFSQuota))
	}
	return flags
}
