package amifamily

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

func TestWindowsScript(t *testing.T) {
	t.Parallel()
	n := testNode()
	n.Custom = "Write-Host \"it's mine\"\n"
	text, err := windowsUserData(n)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(text, "\n")
	if lines[0] != "<powershell>" || lines[1] != "Write-Host \"it's mine\"" || lines[len(lines)-1] != "</powershell>" {
		t.Errorf("the user's commands are not the first within the tags:\n%s", text)
	}
	n.Custom, n.Cluster.ServiceCIDR = "", ""
	if text, err = windowsUserData(n); err != nil || strings.Contains(text, "-DNSClusterIP") || strings.Count(text, "\n") != 3 {
		t.Errorf("a service range that is not known, and no commands of the user's: %v\n%s", err, text)
	}
	if got := powershellQuote(`it's $env:here`); got != `'it''s $env:here'` {
		t.Errorf("quoted as %s", got)
	}
}

func TestWindowsUnsupported(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		spec awsv1.EC2NodeClassSpec
		want string
	}{
		"nothing special":                 {},
		"commands":                        {spec: awsv1.EC2NodeClassSpec{UserData: ptr.To("Write-Host 'PowerShell'")}},
		"tags of the user's own":          {spec: awsv1.EC2NodeClassSpec{UserData: ptr.To("<PowerShell>\nWrite-Host\n</PowerShell>")}, want: "spec.userData"},
		"an instance store":               {spec: awsv1.EC2NodeClassSpec{InstanceStorePolicy: ptr.To(awsv1.InstanceStorePolicyRAID0)}, want: "spec.instanceStorePolicy"},
		"two addresses of the DNS":        {spec: awsv1.EC2NodeClassSpec{Kubelet: &awsv1.KubeletConfiguration{ClusterDNS: []string{"10.0.0.1", "10.0.0.2"}}}, want: "spec.kubelet.clusterDNS"},
		"one address, and other settings": {spec: awsv1.EC2NodeClassSpec{Kubelet: &awsv1.KubeletConfiguration{ClusterDNS: []string{"10.0.0.1"}, PodsPerCore: ptr.To[int32](3)}}},
	} {
		var fields []string
		for _, err := range windowsUnsupported(&awsv1.EC2NodeClass{Spec: tc.spec}) {
			fields = append(fields, err.Field)
		}
		if got := strings.Join(fields, " "); got != tc.want {
			t.Errorf("%s: %q is refused, want %q", reason, got, tc.want)
		}
	}
}
