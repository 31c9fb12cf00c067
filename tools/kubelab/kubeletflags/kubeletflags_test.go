// Package kubeletflags checks the flags that Tenon gives to kubelets with the kubelet's own parser.
package kubeletflags

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
)

var (
	// extraArgs finds the kubelet's flags among the arguments of the bootstrap scripts of AL2 and of Windows.
	extraArgs = regexp.MustCompile(`(?:--kubelet-extra-args|-KubeletExtraArgs) '([^']*)'`)
	// oneFlag is a flag as both scripts hand it to the kubelet: a list is in double quotes.
	oneFlag = regexp.MustCompile(`^(--[a-z-]+=)(?:"([^"]*)"|([^"\s]+))(?:\s+|$)`)
)

// TestKubeletTakesOurFlags parses the flags that Tenon gives to nodes of AL2 and Windows as the kubelet does, and checks
// that every setting arrives. The user data are those that a test of cloud/aws keeps.
func TestKubeletTakesOurFlags(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../cloud/aws/testdata/families/userdata/*")
	if err != nil {
		t.Fatal(err)
	}
	judged := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := extraArgs.FindSubmatch(text)
		if found == nil {
			continue
		}
		judged++
		var arguments []string
		for rest := string(found[1]); rest != ""; {
			flag := oneFlag.FindStringSubmatch(rest)
			if flag == nil {
				t.Fatalf("%s: no flag at %q", file, rest)
			}
			arguments, rest = append(arguments, flag[1]+flag[2]+flag[3]), rest[len(flag[0]):]
		}
		config, err := options.NewKubeletConfiguration()
		if err != nil {
			t.Fatal(err)
		}
		flags, set := options.NewKubeletFlags(), pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
		flags.AddFlags(set)
		options.AddKubeletConfigFlags(set, config)
		if err := set.Parse(arguments); err != nil {
			t.Errorf("%s: the kubelet does not start: %v", file, err)
			continue
		}
		if flags.NodeLabels["karpenter.sh/do-not-sync-taints"] != "true" || flags.NodeLabels["team"] != "search" || len(config.RegisterWithTaints) != 4 {
			t.Errorf("%s: labels %v, taints %v", file, flags.NodeLabels, config.RegisterWithTaints)
		}
		if !strings.Contains(file, "every-kubelet-setting") {
			continue
		}
		for what, arrived := range map[string]bool{
			"maxPods": config.MaxPods == 42, "systemReserved": config.SystemReserved["pid"] == "100", "kubeReserved": config.KubeReserved["memory"] == "300Mi",
			"evictionHard": config.EvictionHard["memory.available"] == "5%", "evictionSoft": config.EvictionSoft["imagefs.available"] == "20%",
			"evictionSoftGracePeriod":   config.EvictionSoftGracePeriod["imagefs.available"] == "1m30s",
			"evictionMaxPodGracePeriod": config.EvictionMaxPodGracePeriod == 60, "imageGCHighThresholdPercent": config.ImageGCHighThresholdPercent == 85,
			"imageGCLowThresholdPercent": config.ImageGCLowThresholdPercent == 80, "cpuCFSQuota": !config.CPUCFSQuota,
		} {
			if !arrived {
				t.Errorf("%s: %s does not arrive", file, what)
			}
		}
	}
	if judged == 0 {
		t.Error("no user data with flags of the kubelet")
	}
}
