package amifamily

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// TestAL2Script runs the script with bash, with a function in the place of bootstrap.sh that prints its arguments.
func TestAL2Script(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		change func(*Node)
		want   []string // beside the arguments that every node has
	}{
		"the DNS of the service range": {change: func(*Node) {}, want: []string{"--dns-cluster-ip=10.100.0.10"}},
		"a service range that is not known": {
			change: func(n *Node) { n.Cluster.ServiceCIDR = "" },
		},
		"DNS of the class's own, and two of them": {
			change: func(n *Node) { n.Kubelet.ClusterDNS = []string{"10.0.0.1", "10.0.0.2"} }, want: []string{"--dns-cluster-ip=10.0.0.1,10.0.0.2"},
		},
		"an IPv6 cluster": {
			change: func(n *Node) { n.Cluster.ServiceCIDR = "fd30:1c53:5f8a::/108" },
			want:   []string{"--ip-family=ipv6", "--dns-cluster-ip=fd30:1c53:5f8a::a"},
		},
		"an instance store": {
			change: func(n *Node) { n.RAID0 = true }, want: []string{"--dns-cluster-ip=10.100.0.10", "--local-disks=raid0"},
		},
	} {
		n := testNode()
		n.Kubelet = &awsv1.KubeletConfiguration{PodsPerCore: ptr.To[int32](10)}
		tc.change(n)
		text, err := al2UserData(n)
		if err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
		parts, err := splitUserData(text, alwaysScript)
		if err != nil || len(parts) != 1 {
			t.Fatalf("%s: %d parts, %v", reason, len(parts), err)
		}
		_, call, _ := strings.Cut(parts[0].body, "\n/etc/eks")
		out, err := exec.Command("bash", "--norc", "-c", "function /etc/eks/bootstrap.sh { printf '%s\\0' \"$@\"; }\n/etc/eks"+call).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", reason, err, out)
		}
		words := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		if words[0] != "blue" || len(words)%2 != 1 {
			t.Fatalf("%s: arguments %q", reason, words)
		}
		var got []string
		for i := 1; i < len(words); i += 2 {
			switch words[i] {
			case "--apiserver-endpoint", "--b64-cluster-ca", "--use-max-pods", "--kubelet-extra-args":
			default:
				got = append(got, words[i]+"="+words[i+1])
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: arguments (-want +got):\n%s", reason, diff)
		}
	}
}

// TestAL2KeepsTheUsersParts checks that user data that are no archive are a script: images of AL2 read no NodeConfig.
func TestAL2KeepsTheUsersParts(t *testing.T) {
	t.Parallel()
	n := testNode()
	n.Custom = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n"
	text, err := al2UserData(n)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := splitUserData(text, alwaysScript)
	if err != nil || len(parts) != 2 {
		t.Fatalf("%d parts, %v", len(parts), err)
	}
	if got := parts[0].header.Get("Content-Type"); got != shellScriptPart || parts[0].body != n.Custom {
		t.Errorf("part of type %s: %s", got, parts[0].body)
	}
	n.Custom = "MIME-Version: 1.0\nContent-Type: text/plain\n\nhello"
	if _, err := al2UserData(n); err == nil {
		t.Error("took an archive that is none")
	}
}

func TestShellQuote(t *testing.T) {
	t.Parallel()
	const word = `it's "here" $HOME \`
	out, err := exec.Command("bash", "--norc", "-c", "printf %s "+shellQuote(word)).Output()
	if err != nil || string(out) != word {
		t.Errorf("bash reads %q, %v", out, err)
	}
}
