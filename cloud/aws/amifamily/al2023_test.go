package amifamily

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

func testNode() *Node {
	return &Node{
		Cluster: Cluster{Name: "blue", Endpoint: "https://api.blue", Authority: "Q0E=", ServiceCIDR: "10.100.0.0/16"},
		Kubelet: &awsv1.KubeletConfiguration{PodsPerCore: ptr.To[int32](10), MaxPods: ptr.To[int32](5)},
		MaxPods: 29,
		Labels: map[string]string{
			"team": "a", "karpenter.sh/nodepool": "default", "kubernetes.io/arch": "arm64", "topology.k8s.aws/zone-id": "use1-az1",
		},
		Taints: []corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}},
	}
}

func TestNodeConfig(t *testing.T) {
	t.Parallel()
	n := testNode()
	n.RAID0 = true
	text, err := nodeConfig(n)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := yaml.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "node.eks.aws/v1alpha1",
		"kind":       "NodeConfig",
		"spec": map[string]any{
			"cluster": map[string]any{
				"name": "blue", "apiServerEndpoint": "https://api.blue", "certificateAuthority": "Q0E=", "cidr": "10.100.0.0/16",
			},
			"kubelet": map[string]any{
				"config": map[string]any{
					"maxPods": 29.0, "podsPerCore": 10.0,
					"registerWithTaints": []any{
						map[string]any{"key": "karpenter.sh/unregistered", "effect": "NoExecute"},
						map[string]any{"key": "gpu", "value": "yes", "effect": "NoSchedule"},
					},
				},
				// A kubelet may not set its own labels in Kubernetes' own domains.
				"flags": []any{"--node-labels=karpenter.sh/do-not-sync-taints=true,karpenter.sh/nodepool=default,team=a,topology.k8s.aws/zone-id=use1-az1"},
			},
			"instance": map[string]any{"localStorage": map[string]any{"strategy": "RAID0"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("NodeConfig (-want +got):\n%s", diff)
	}
}

func TestUnregisteredTaintComesOnce(t *testing.T) {
	t.Parallel()
	n := Node{Taints: (&Node{}).taints()}
	if got := n.taints(); len(got) != 1 {
		t.Errorf("taints %v; want the unregistered one alone", got)
	}
}

func TestUserDataKeepsTheUsersParts(t *testing.T) {
	t.Parallel()
	mime := "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"X\"\n\n--X\nContent-Type: text/cloud-config; charset=\"us-ascii\"\n\n#cloud-config\n--X\n" +
		"Content-Type: text/x-shellscript\nContent-Transfer-Encoding: base64\n\nZWNobwo=\n--X--\n"
	for _, tc := range []struct {
		custom string
		types  []string
		why    string
	}{
		{custom: "", why: "nothing to keep"},
		{custom: "#!/bin/sh\necho", types: []string{shellScriptPart}, why: "a script"},
		{custom: "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {}\n", types: []string{nodeConfigPart}, why: "a bare NodeConfig"},
		{custom: mime, types: []string{`text/cloud-config; charset="us-ascii"`, "text/x-shellscript"}, why: "an archive"},
		{custom: strings.TrimSuffix(mime, "--\n") + "\n", types: []string{`text/cloud-config; charset="us-ascii"`, "text/x-shellscript"},
			why: "an archive whose end is not marked, as in Karpenter's example al2023-custom-userdata"},
	} {
		n := testNode()
		n.Custom = tc.custom
		text, err := al2023UserData(n)
		if err != nil {
			t.Fatalf("%s: %v", tc.why, err)
		}
		parts, err := splitUserData(text, alwaysScript)
		if err != nil {
			t.Fatalf("%s: the result cannot be read again: %v", tc.why, err)
		}
		var types []string
		for _, p := range parts {
			types = append(types, p.header.Get("Content-Type"))
		}
		if diff := cmp.Diff(append(tc.types, nodeConfigPart), types); diff != "" {
			t.Errorf("%s: parts, ours last (-want +got):\n%s", tc.why, diff)
		}
		if again, _ := al2023UserData(n); again != text {
			t.Errorf("%s: the same user data differ, which makes a second launch template", tc.why)
		}
	}
	if !strings.Contains(mustUserData(t, mime), "Content-Transfer-Encoding: base64") {
		t.Error("a part lost its encoding")
	}
}

func mustUserData(t *testing.T, custom string) string {
	t.Helper()
	n := testNode()
	n.Custom = custom
	text, err := al2023UserData(n)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestUserDataRefusesBrokenArchives(t *testing.T) {
	t.Parallel()
	for _, custom := range []string{
		"MIME-Version: 1.0\nContent-Type: text/plain\n\nhello",
		"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"X\"\n\n--X\nno end",
	} {
		n := testNode()
		n.Custom = custom
		if _, err := al2023UserData(n); err == nil {
			t.Errorf("took %q", custom)
		}
	}
}
