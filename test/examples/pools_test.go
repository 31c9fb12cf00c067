package examples_test

import (
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// poolExample is what an example with a NodePool promises.
type poolExample struct {
	promise string
	// play runs pods and checks the promise.
	play func(a *applier, name string)
}

// one runs one pod on a NodePool of the example's name, and checks the machine that comes up for it.
func one(promise string, check func(a *applier, m machine)) poolExample {
	return poolExample{promise: promise, play: func(a *applier, name string) {
		a.run(name, 1, 1, "cpu: 1")
		m := a.machine(name)
		check(a, m)
		if a.T.Failed() {
			a.T.Logf("promised: %s; got a %s: %v", promise, m.instance.InstanceType, m.node.Labels)
		}
	}}
}

// poolExamples returns the examples with NodePools by the names of their files.
func poolExamples() map[string]poolExample {
	return map[string]poolExample{
		"general-purpose": one("on demand, x86, of the families c, m or r", func(a *applier, m machine) {
			labelled(a, m, corev1.LabelArchStable, "amd64")
			labelled(a, m, awsv1.LabelInstanceCategory, "c", "m", "r")
			if m.instance.InstanceLifecycle != "" {
				a.T.Errorf("the instance is %s, want on demand", m.instance.InstanceLifecycle)
			}
		}),
		"100-cpu-limit": {promise: "a second node of more than half the limit does not come", play: func(a *applier, name string) {
			a.run(name, 2, 1, "cpu: 60")
			labelled(a, a.machine(name), awsv1.LabelInstanceCategory, "c", "m", "r")
		}},
		"large-instances": one("at least four vCPUs and 8 GiB", func(a *applier, m machine) {
			atLeast(a, m, awsv1.LabelInstanceCPU, 4)
			atLeast(a, m, awsv1.LabelInstanceMemory, 8192)
		}),
		"max-node-lifetime": one("a week, and a day to drain", func(a *applier, m machine) {
			if got := m.claim.Spec.ExpireAfter.Duration; got == nil || *got != 168*time.Hour {
				a.T.Errorf("the claim expires after %v", got)
			}
			if got := m.claim.Spec.TerminationGracePeriod; got == nil || got.Duration != 24*time.Hour {
				a.T.Errorf("the claim's terminationGracePeriod is %v", got)
			}
		}),
		"spot": one("spot", isSpot),
		"min-values-family": one("a choice of five families", func(a *applier, m machine) {
			isSpot(a, m)
			if got := len(families(m.claim)); got < 5 {
				a.T.Errorf("EC2 could choose among %d families", got)
			}
		}),
		"min-values-multiple-keys": one("a choice of two categories and five families", func(a *applier, m machine) {
			isSpot(a, m)
			categories := map[string]bool{}
			for family := range families(m.claim) {
				categories[family[:1]] = true
			}
			if len(categories) < 2 || len(families(m.claim)) < 5 {
				a.T.Errorf("EC2 could choose among the categories %v and %d families", categories, len(families(m.claim)))
			}
		}),
		"multiple-arch": {promise: "a node of each architecture", play: func(a *applier, name string) {
			for _, arch := range []string{"amd64", "arm64"} {
				a.run(name+"-"+arch, 1, 1, "cpu: 1")
				labelled(a, a.machine(name+"-"+arch), corev1.LabelArchStable, arch)
			}
		}},
		"multiple-ebs": one("three volumes", func(a *applier, m machine) {
			if diff := cmp.Diff(map[string]int32{"/dev/xvda": 20, "/dev/xvdb": 100, "/dev/xvdc": 2000}, a.volumes(m.instance)); diff != "" {
				a.T.Errorf("volumes in GiB (-want +got):\n%s", diff)
			}
		}),
		"instance-store-ephemeral-storage": one("local disks as ephemeral storage", func(a *applier, m machine) {
			atLeast(a, m, awsv1.LabelInstanceLocalNVME, 301)
			if got := m.node.Status.Capacity.StorageEphemeral().Value(); got < 301e9 {
				a.T.Errorf("the Node has %d bytes of ephemeral storage", got)
			}
		}),
		"al2023-custom-userdata": one("the user's parts, and what joins the node", func(a *applier, m machine) {
			contains(a, a.userData("al2023-custom-userdata"), "imageGCHighThresholdPercent: 80", "/var/log/prepared", "apiServerEndpoint: ")
		}),
		"al2-custom-ami": one("the user's own image", func(a *applier, m machine) {
			contains(a, a.userData("al2-custom-ami"), "/etc/eks/bootstrap.sh")
		}),
		"al2-custom-userdata": one("the user's script before the bootstrap script", func(a *applier, m machine) {
			contains(a, a.userData("al2-custom-userdata"), "/var/log/prepared", "/etc/eks/bootstrap.sh")
		}),
		"al2-kubelet-log-query": one("a change of the kubelet's configuration before the bootstrap script", func(a *applier, m machine) {
			contains(a, a.userData("al2-kubelet-log-query"), "NodeLogQuery", "/etc/eks/bootstrap.sh")
		}),
		"bottlerocket": one("a system volume and one for data", func(a *applier, m machine) {
			if diff := cmp.Diff(map[string]int32{"/dev/xvda": 4, "/dev/xvdb": 50}, a.volumes(m.instance)); diff != "" {
				a.T.Errorf("volumes in GiB (-want +got):\n%s", diff)
			}
			contains(a, a.userData("bottlerocket"), "[settings.kubernetes]", "api-server")
		}),
		"br-custom-userdata": one("the user's settings merged with those that join the node", func(a *applier, m machine) {
			contains(a, a.userData("br-custom-userdata"), "[settings.kubernetes]", "api-server", "kube-api-qps = 30", "managed by Tenon")
		}),
		"custom-family": one("the user data as they are", func(a *applier, m machine) {
			if got := a.userData("custom-family"); !strings.HasPrefix(got, "apiVersion: node.eks.aws/v1alpha1") {
				a.T.Errorf("user data %q", got)
			}
		}),
		"custom-family-with-alias": one("the user data as they are, on an image of AWS", func(a *applier, m machine) {
			if got := a.userData("custom-family-with-alias"); !strings.HasPrefix(got, "apiVersion: node.eks.aws/v1alpha1") {
				a.T.Errorf("user data %q", got)
			}
		}),
		"windows-2019": one("Windows Server 2019", windows("10.0.17763")),
		"windows-2022": one("Windows Server 2022", windows("10.0.20348")),
		"windows-2025": one("Windows Server 2025", windows("10.0.26100")),
		"windows-custom-userdata": one("the user's PowerShell before the bootstrap script", func(a *applier, m machine) {
			windows("10.0.20348")(a, m)
			contains(a, a.userData("windows-custom-userdata"), "prepared.txt", "EKSBootstrapScriptFile")
		}),
	}
}

// labelled checks that the value of a Node's label is one of some.
func labelled(a *applier, m machine, key string, values ...string) {
	a.T.Helper()
	for _, value := range values {
		if m.node.Labels[key] == value {
			return
		}
	}
	a.T.Errorf("the Node's label %s is %q, want one of %q", key, m.node.Labels[key], values)
}

// atLeast checks that the number in a Node's label is not too low.
func atLeast(a *applier, m machine, key string, least int) {
	a.T.Helper()
	if got, err := strconv.Atoi(m.node.Labels[key]); err != nil || got < least {
		a.T.Errorf("the Node's label %s is %q, want at least %d", key, m.node.Labels[key], least)
	}
}

func isSpot(a *applier, m machine) {
	a.T.Helper()
	if m.instance.InstanceLifecycle != "spot" || m.node.Labels[karpv1.CapacityTypeLabelKey] != karpv1.CapacityTypeSpot {
		a.T.Errorf("the instance is %q and the Node says %q, want spot", m.instance.InstanceLifecycle, m.node.Labels[karpv1.CapacityTypeLabelKey])
	}
}

func windows(build string) func(*applier, machine) {
	return func(a *applier, m machine) {
		a.T.Helper()
		labelled(a, m, corev1.LabelOSStable, "windows")
		labelled(a, m, corev1.LabelWindowsBuild, build)
		if got := aws.ToString(m.instance.PlatformDetails); got != "Windows" {
			a.T.Errorf("EC2 says the platform is %q", got)
		}
	}
}

// families returns the instance families that a claim can be launched as.
func families(claim karpv1.NodeClaim) map[string]bool {
	all := map[string]bool{}
	for _, r := range claim.Spec.Requirements {
		if r.Key == corev1.LabelInstanceTypeStable {
			for _, value := range r.Values {
				family, _, _ := strings.Cut(value, ".")
				all[family] = true
			}
		}
	}
	return all
}

func contains(a *applier, text string, parts ...string) {
	a.T.Helper()
	from := 0
	for _, part := range parts {
		at := strings.Index(text[from:], part)
		if at < 0 {
			a.T.Errorf("the user data have no %q after what precedes it:\n%s", part, text)
			return
		}
		from += at
	}
}
