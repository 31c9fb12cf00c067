package amifamily

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	"k8s.io/utils/ptr"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

func TestBottlerocketMergesSettings(t *testing.T) {
	t.Parallel()
	n := testNode()
	n.Kubelet = &awsv1.KubeletConfiguration{ClusterDNS: []string{"10.0.0.1", "10.0.0.2"}, KubeReserved: map[string]string{"cpu": "100m"}}
	n.Custom = `
[settings]
motd = "hello"
[settings.kubernetes]
cluster-name = "green"
a-setting-of-tomorrow = 3
kube-reserved = {memory = "1Gi"}
node-labels = {own = "yes", team = "b"}
node-taints = {own = ["yes:NoSchedule"]}
`
	text, err := bottlerocketUserData(n)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := toml.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"settings": map[string]any{
		"motd": "hello",
		"kubernetes": map[string]any{
			"cluster-name": "blue", "api-server": "https://api.blue", "cluster-certificate": "Q0E=", "max-pods": int64(29),
			"cluster-dns-ip":        []any{"10.0.0.1", "10.0.0.2"}, // a class may have several, which Karpenter leaves out
			"a-setting-of-tomorrow": int64(3),                      // Bottlerocket knows whether there is one; Karpenter leaves it out
			"kube-reserved":         map[string]any{"cpu": "100m"}, // the class's replace the user's
			"node-labels": map[string]any{
				"own": "yes", "team": "a", "karpenter.sh/nodepool": "default", "karpenter.sh/do-not-sync-taints": "true", "topology.k8s.aws/zone-id": "use1-az1",
			},
			"node-taints": map[string]any{"karpenter.sh/unregistered": []any{":NoExecute"}, "gpu": []any{"yes:NoSchedule"}},
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if again, _ := bottlerocketUserData(n); again != text {
		t.Error("the same user data differ, which makes a second launch template")
	}
}

func TestBottlerocketRefusesUserData(t *testing.T) {
	t.Parallel()
	for custom, want := range map[string]string{
		"#!/bin/sh\necho":                            "not TOML",
		"settings = 3":                               "settings is not a table",
		"[settings]\nkubernetes = 3":                 "kubernetes is not a table",
		"[setting.kubernetes]\nmax-pods = 3":         "user data has setting",
		"[settings.kubernetes]\nnode-labels = 'a=b'": "node-labels is not a table",
	} {
		n := testNode()
		n.Custom = custom
		if _, err := bottlerocketUserData(n); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error that says %q", custom, err, want)
		}
	}
}

func TestBottlerocketUnsupported(t *testing.T) {
	t.Parallel()
	class := &awsv1.EC2NodeClass{}
	class.Status.AMIs = []awsv1.AMI{{Name: "bottlerocket-aws-k8s-1.34-x86_64-v1.21.1-431fe75a"}}
	if errs := bottlerocketUnsupported(class); len(errs) > 0 {
		t.Errorf("refuses a class that asks for nothing: %v", errs)
	}
	class.Spec.Kubelet = &awsv1.KubeletConfiguration{PodsPerCore: ptr.To[int32](10)}
	class.Spec.InstanceStorePolicy = ptr.To(awsv1.InstanceStorePolicyRAID0)
	var fields []string
	for _, err := range bottlerocketUnsupported(class) {
		fields = append(fields, err.Field)
	}
	if diff := cmp.Diff([]string{"spec.kubelet.podsPerCore", "spec.instanceStorePolicy"}, fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestReleaseOf(t *testing.T) {
	t.Parallel()
	for image, tc := range map[string]struct {
		want release
		ok   bool
	}{
		"bottlerocket-aws-k8s-1.34-x86_64-v1.46.0-431fe75a":         {release{1, 46}, true},
		"bottlerocket-aws-k8s-1.34-nvidia-aarch64-v2.3.4":           {release{2, 3}, true},
		"our-image-of-november":                                     {},
		"bottlerocket-aws-k8s-1.34-x86_64-v1.99999999999999999999.": {},
	} {
		if got, ok := releaseOf(image); ok != tc.ok || ok && got != tc.want {
			t.Errorf("%s: %v, %t; want %v, %t", image, got, ok, tc.want, tc.ok)
		}
	}
	if !(release{1, 9}).before(release{1, 10}) || (release{2, 0}).before(release{1, 46}) {
		t.Error("releases are not compared as numbers")
	}
}
