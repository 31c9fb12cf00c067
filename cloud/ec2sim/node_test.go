package ec2sim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/cloud/catalogue"
)

const nodeConfigMIME = `MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash
echo hello

--//
Content-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: tenon
    apiServerEndpoint: https://10.0.0.1
    certificateAuthority: UEVN
    cidr: 10.96.0.0/16
  kubelet:
    config:
      maxPods: 29
      clusterDNS: [10.96.0.10]
      registerWithTaints:
        - {key: karpenter.sh/unregistered, effect: NoExecute}
    flags:
      - --node-labels="karpenter.sh/nodepool=default,karpenter.sh/capacity-type=spot"

--//--
`

func testMachine(t *testing.T, typeName, userData string) *machine {
	t.Helper()
	c, err := catalogue.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	boot := time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)
	return &machine{
		instance: instance{
			ID: "i-0123456789abcdef0", Zone: "us-east-1b", PrivateIP: "192.168.64.5", Volumes: []volume{{Device: rootDevice, SizeGiB: 20}},
			BootAt: boot, ReadyAt: boot.Add(5 * time.Second),
		},
		itype: c.Type(typeName), image: &image{Family: "AL2023", Kubernetes: "1.36"}, region: "us-east-1", zoneID: "use1-az2",
		hostname: "ip-192-168-64-5.ec2.internal", userData: userData, endpoint: "https://10.0.0.1", caKnown: true, kubeletVer: "v1.36.0",
	}
}

func TestNodeOfANodeConfig(t *testing.T) {
	t.Parallel()
	node, err := testMachine(t, "m5.large", nodeConfigMIME).node()
	if err != nil {
		t.Fatal(err)
	}
	if node.Name != "ip-192-168-64-5.ec2.internal" || node.Spec.ProviderID != "aws:///us-east-1b/i-0123456789abcdef0" {
		t.Errorf("node %s has provider id %s", node.Name, node.Spec.ProviderID)
	}
	wantTaints := []corev1.Taint{
		{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoSchedule},
		{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute},
	}
	if diff := cmp.Diff(wantTaints, node.Spec.Taints); diff != "" {
		t.Errorf("taints (-want +got):\n%s", diff)
	}
	for key, want := range map[string]string{
		"karpenter.sh/nodepool": "default", "karpenter.sh/capacity-type": "spot", "kubernetes.io/arch": "amd64",
		"node.kubernetes.io/instance-type": "m5.large", "topology.kubernetes.io/zone": "us-east-1b", "topology.k8s.aws/zone-id": "use1-az2",
		"kubernetes.io/hostname": node.Name, SimulatedLabel: "true",
	} {
		if got := node.Labels[key]; got != want {
			t.Errorf("label %s is %q, want %q", key, got, want)
		}
	}
	if got := node.Annotations[ReadyAtAnnotation]; got != "2026-11-21T12:00:05Z" {
		t.Errorf("ready at %s", got)
	}
	capacity, allocatable := node.Status.Capacity, node.Status.Allocatable
	memory := capacity.Memory().Value()
	if memory > 8192*mib*97/100 || memory < 8192*mib*94/100 {
		t.Errorf("memory capacity %d is not that of a real m5.large", memory)
	}
	// Reserved are 11 MiB for each of 29 pods and 255 MiB; the eviction threshold is 100 MiB.
	if got, want := memory-allocatable.Memory().Value(), int64(11*29+255+100)*mib; got != want {
		t.Errorf("%d bytes of memory are kept back, want %d", got, want)
	}
	if got := allocatable.Cpu().MilliValue(); got != 1930 {
		t.Errorf("allocatable cpu is %dm, want 1930m", got)
	}
	if capacity.Pods().Value() != 29 {
		t.Errorf("pods: %s", capacity.Pods())
	}
	ready := node.Status.Conditions[len(node.Status.Conditions)-1]
	if ready.Type != corev1.NodeReady || ready.Status != corev1.ConditionFalse {
		t.Errorf("condition at creation: %+v", ready)
	}
}

func TestKubeletDoesNotComeUp(t *testing.T) {
	t.Parallel()
	for reason, userData := range map[string]string{
		"Name is missing":       "",
		"not this cluster":      strings.ReplaceAll(nodeConfigMIME, "https://10.0.0.1", "https://10.9.9.9"),
		"k8s.io' labels":        strings.ReplaceAll(nodeConfigMIME, "karpenter.sh/nodepool=", "node-role.kubernetes.io/worker="),
		"is not MIME":           "MIME-Version: 1.0\n\n",
		"NodeConfig":            "apiVersion: node.eks.aws/v1alpha1\nkind: [",
		"reserved memory":       strings.ReplaceAll(nodeConfigMIME, "maxPods: 29", "kubeReserved: {memory: lots}"),
		"document of kind":      "apiVersion: node.eks.aws/v1alpha1\nkind: Pod",
		"evictionHard memory":   strings.ReplaceAll(nodeConfigMIME, "maxPods: 29", "evictionHard: {memory.available: lots}"),
		"CIDR is missing":       strings.ReplaceAll(nodeConfigMIME, "cidr: 10.96.0.0/16", ""),
		`"spec.cluster.colour"`: strings.ReplaceAll(nodeConfigMIME, "cidr:", "colour: red\n    cidr:"),
		`"spec.cluster.Cidr"`:   strings.ReplaceAll(nodeConfigMIME, "cidr:", "Cidr:"),
		`"maxPodz"`:             strings.ReplaceAll(nodeConfigMIME, "maxPods", "maxPodz"),
		"cannot unmarshal str":  strings.ReplaceAll(nodeConfigMIME, "maxPods: 29", `maxPods: "29"`),
		"illegal base64":        strings.ReplaceAll(nodeConfigMIME, "UEVN", `"#"`),
		"already set":           strings.ReplaceAll(nodeConfigMIME, "cidr:", "cidr: 10.0.0.0/8\n    cidr:"),
		"version":               strings.ReplaceAll(nodeConfigMIME, "node.eks.aws/v1alpha1", "node.eks.aws/v1"),
		"Certificate authorit":  strings.ReplaceAll(nodeConfigMIME, "certificateAuthority: UEVN", ""),
	} {
		if _, err := testMachine(t, "m5.large", userData).node(); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("error is %v, want one that says %q", err, reason)
		}
	}
}

const bootstrapScript = `#!/bin/bash -xe
/etc/eks/bootstrap.sh 'tenon' --apiserver-endpoint 'https://10.0.0.1' --b64-cluster-ca 'UEVN' \
  --use-max-pods false \
  --kubelet-extra-args '--node-labels="a=b,c=d" --max-pods=20 --register-with-taints="k=v:NoSchedule" --eviction-hard="memory.available<5%"' --local-disks raid0
`

func al2Machine(t *testing.T, typeName, userData string) *machine {
	t.Helper()
	m := testMachine(t, typeName, userData)
	m.image = &image{Family: "AL2", Kubernetes: "1.32"}
	return m
}

func TestNodeOfABootstrapScript(t *testing.T) {
	t.Parallel()
	node, err := al2Machine(t, "g5.12xlarge", bootstrapScript).node()
	if err != nil {
		t.Fatal(err)
	}
	if node.Labels["a"] != "b" || node.Labels["c"] != "d" || node.Status.Capacity.Pods().Value() != 20 || len(node.Spec.Taints) != 2 {
		t.Errorf("node: %+v", node)
	}
	if gpus := node.Status.Capacity["nvidia.com/gpu"]; gpus.Value() != 4 {
		t.Errorf("GPUs: %s", gpus.String())
	}
	if got := node.Status.Capacity.StorageEphemeral().Value(); got < 3000e9 {
		t.Errorf("ephemeral storage %d, want the instance store's", got)
	}
	if got := node.Status.NodeInfo.OSImage; got != "Amazon Linux 2" {
		t.Errorf("operating system %s", got)
	}
}

func TestBootstrapScriptDoesNotRun(t *testing.T) {
	t.Parallel()
	for reason, userData := range map[string]string{
		"bootstrap.sh: Name is missing": nodeConfigMIME, // AL2 has no nodeadm
		"of which it would use nothing": strings.ReplaceAll(bootstrapScript, "--kubelet-extra-args '", "--kubelet-extra-args='"),
		"must be provided":              strings.ReplaceAll(bootstrapScript, "--use-max-pods false", "--ip-family ipv6"),
		`argument "--local-disk"`:       strings.ReplaceAll(bootstrapScript, "--local-disks", "--local-disk"),
		"without a value":               strings.ReplaceAll(bootstrapScript, "--local-disks raid0", "--local-disks"),
		"not this cluster":              strings.ReplaceAll(bootstrapScript, "https://10.0.0.1", "https://10.9.9.9"),
		"Certificate authority":         strings.ReplaceAll(bootstrapScript, "UEVN", ""),
		"is not a taint":                strings.ReplaceAll(bootstrapScript, "k=v:NoSchedule", "k=v"),
		"--max-pods":                    strings.ReplaceAll(bootstrapScript, "--max-pods=20", "--max-pods=many"),
	} {
		if _, err := al2Machine(t, "m5.large", userData).node(); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("error is %v, want one that says %q", err, reason)
		}
	}
}

const bottlerocketTOML = `
[settings]
motd = "hello"
[settings.kubernetes]
cluster-name = "tenon"
api-server = "https://10.0.0.1"
cluster-certificate = "UEVN"
cluster-dns-ip = "10.96.0.10"
max-pods = 20
kube-api-qps = 30
[settings.kubernetes.node-labels]
a = "b"
[settings.kubernetes.node-taints]
k = ["v:NoSchedule", ":NoExecute"]
[settings.bootstrap-commands.disks]
commands = [["apiclient", "ephemeral-storage", "init"], ["apiclient", "ephemeral-storage", "bind"]]
mode = "always"
essential = true
`

func bottlerocketMachine(t *testing.T, typeName, userData string) *machine {
	t.Helper()
	m := testMachine(t, typeName, userData)
	m.image = &image{Family: "Bottlerocket", Kubernetes: "1.36"}
	return m
}

func TestNodeOfBottlerocketSettings(t *testing.T) {
	t.Parallel()
	node, err := bottlerocketMachine(t, "m5d.large", bottlerocketTOML).node()
	if err != nil {
		t.Fatal(err)
	}
	if node.Labels["a"] != "b" || node.Status.Capacity.Pods().Value() != 20 || len(node.Spec.Taints) != 3 {
		t.Errorf("node: %+v", node)
	}
	if got := node.Status.Capacity.StorageEphemeral().Value(); got != 75e9 {
		t.Errorf("ephemeral storage %d, want the instance store's", got)
	}
}

func TestBottlerocketDoesNotBoot(t *testing.T) {
	t.Parallel()
	for reason, userData := range map[string]string{
		"settings.kubernetes: strict":      strings.ReplaceAll(bottlerocketTOML, "max-pods", "max-podz"),
		"settings.kubernetes: toml":        strings.ReplaceAll(bottlerocketTOML, "max-pods = 20", `max-pods = "20"`),
		"user data: toml":                  "#!/bin/sh\necho",
		"node-taints":                      strings.ReplaceAll(bottlerocketTOML, "v:NoSchedule", "v"),
		"is not a command of apiclient":    strings.ReplaceAll(bottlerocketTOML, `"apiclient", "ephemeral-storage", "bind"`, `"/bin/sh", "-c", "mount"`),
		`mode "sometimes"`:                 strings.ReplaceAll(bottlerocketTOML, "always", "sometimes"),
		"Bottlerocket: Name is missing":    strings.ReplaceAll(bottlerocketTOML, "cluster-name", "hostname-override"),
		"Bottlerocket: Apiserver endpoint": strings.ReplaceAll(bottlerocketTOML, `api-server = "https://10.0.0.1"`, ""),
		"cluster-dns-ip":                   strings.ReplaceAll(bottlerocketTOML, "10.96.0.10", "dns"),
		"Certificate authority":            strings.ReplaceAll(bottlerocketTOML, "UEVN", ""),
	} {
		if _, err := bottlerocketMachine(t, "m5.large", userData).node(); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("error is %v, want one that says %q", err, reason)
		}
	}
}

const windowsScript = `<powershell>
Write-Host 'mine'
[string]$EKSBootstrapScriptFile = "$env:ProgramFiles\Amazon\EKS\Start-EKSBootstrap.ps1"
& $EKSBootstrapScriptFile -EKSClusterName 'tenon' -APIServerEndpoint 'https://10.0.0.1' -Base64ClusterCA 'UEVN' -KubeletExtraArgs '--node-labels="a=b" --register-with-taints="k=v:NoSchedule"' -DNSClusterIP '10.96.0.10'
</powershell>`

func windowsMachine(t *testing.T, typeName, userData string) *machine {
	t.Helper()
	m := testMachine(t, typeName, userData)
	m.image = &image{Family: "Windows2022", Kubernetes: "1.36", Windows: true}
	return m
}

func TestNodeOfPowerShell(t *testing.T) {
	t.Parallel()
	node, err := windowsMachine(t, "m5.large", windowsScript).node()
	if err != nil {
		t.Fatal(err)
	}
	addresses := node.Status.Capacity["vpc.amazonaws.com/PrivateIPv4Address"]
	if node.Labels["a"] != "b" || node.Labels[corev1.LabelOSStable] != "windows" || node.Labels[corev1.LabelWindowsBuild] != "10.0.20348" ||
		node.Status.Capacity.Pods().Value() != 110 || addresses.Value() != 9 || len(node.Spec.Taints) != 2 {
		t.Errorf("node: %+v", node)
	}
}

func TestPowerShellDoesNotRun(t *testing.T) {
	t.Parallel()
	for reason, userData := range map[string]string{
		"not one script within":        strings.ReplaceAll(windowsScript, "Write-Host 'mine'", "<powershell>\nWrite-Host 'mine'\n</powershell>"),
		"does not name":                strings.ReplaceAll(windowsScript, "Start-EKSBootstrap", "Start-Bootstrap"),
		"does not call":                strings.ReplaceAll(windowsScript, "& $EKS", "# $EKS"),
		"parameter name 'ClusterName'": strings.ReplaceAll(windowsScript, "-EKSClusterName", "-ClusterName"),
		"unreadable argument":          strings.ReplaceAll(windowsScript, "'UEVN'", "'UE'VN'"),
		"Start-EKSBootstrap.ps1: Cert": strings.ReplaceAll(windowsScript, "UEVN", ""),
		"not this cluster":             strings.ReplaceAll(windowsScript, "https://10.0.0.1", "https://10.9.9.9"),
		"is not a taint":               strings.ReplaceAll(windowsScript, "k=v:NoSchedule", "k=v"),
	} {
		if _, err := windowsMachine(t, "m5.large", userData).node(); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("error is %v, want one that says %q", err, reason)
		}
	}
}

// TestVisibleMemoryCoversEstimate checks what autoscalers rely on: from 2 GiB upwards, a real node never has less than
// the advertised memory minus 7.5 %.
func TestVisibleMemoryCoversEstimate(t *testing.T) {
	t.Parallel()
	c, err := catalogue.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range c.Types() {
		nominal := it.MemoryMiB * mib
		if it.Arch == "arm64" {
			nominal -= 64 * mib
		}
		if got := visibleMemory(it); it.MemoryMiB >= 2048 && got < nominal*925/1000 {
			t.Errorf("%s shows %d of %d MiB", it.Name, got/mib, it.MemoryMiB)
		}
	}
}

func TestDefaultCPUReserve(t *testing.T) {
	t.Parallel()
	for cores, want := range map[int]string{1: "60m", 2: "70m", 4: "80m", 8: "90m", 96: "310m"} {
		if got := defaultCPUReserve(cores); got != want {
			t.Errorf("%d cores: %s, want %s", cores, got, want)
		}
	}
}

// TestTheFirstDocumentOfAPartCounts checks that only the first document of a part is used, as by nodeadm (tools/nodeadm
// shows this).
func TestTheFirstDocumentOfAPartCounts(t *testing.T) {
	t.Parallel()
	second := "\n---\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {kubelet: {config: {maxPods: 7}}}\n"
	node, err := testMachine(t, "m5.large", strings.Replace(nodeConfigMIME, "\n\n--//--", second+"\n--//--", 1)).node()
	if err != nil {
		t.Fatal(err)
	}
	if got := node.Status.Capacity.Pods().Value(); got != 29 {
		t.Errorf("%d pods, want the first document's 29", got)
	}
}

// TestUserDataThatNodeadmTakes parses the files that tools/nodeadm has shown nodeadm to accept.
func TestUserDataThatNodeadmTakes(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../aws/testdata/userdata/*.mime")
	if err != nil || len(files) == 0 {
		t.Fatalf("no user data, %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		setup, err := parseUserData("AL2023", string(text))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		own := strings.Contains(file, "own-")
		if setup.clusterName != "blue" || setup.endpoint == "" || !setup.caGiven || setup.cidr == "" || setup.maxPods != 29 ||
			len(setup.taints) == 0 || setup.labels["karpenter.sh/do-not-sync-taints"] != "true" || (setup.labels["own"] == "yes") != own {
			t.Errorf("%s is read as %+v", file, setup)
		}
	}
}

// TestUserDataOfFamilies parses the user data that cloud/aws writes for each family, as machines of the family do.
func TestUserDataOfFamilies(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../aws/testdata/families/userdata/*")
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]int{}
	for _, file := range files {
		family := ""
		for prefix, name := range map[string]string{"al2023": "AL2023", "reserved-": "AL2023", "al2-": "AL2", "al2.": "AL2", "bottlerocket": "Bottlerocket", "windows": "Windows2022"} {
			if strings.HasPrefix(filepath.Base(file), prefix) {
				family = name
			}
		}
		if family == "" {
			continue // a Custom image has whatever its user gives it
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		setup, err := parseUserData(family, string(text))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		read[family]++
		name := filepath.Base(file)
		if setup.clusterName != "blue" || setup.endpoint == "" || !setup.caGiven || setup.maxPods == 0 || len(setup.taints) != 4 ||
			setup.labels["karpenter.sh/do-not-sync-taints"] != "true" || setup.labels["team"] != "search" ||
			name != "bottlerocket-with-settings.toml" && setup.raid0 != strings.Contains(name, "instance-store") || setup.ipv6 != strings.Contains(name, "ipv6") ||
			(setup.kubeReserved["memory"] == "300Mi") != strings.Contains(name, "every-kubelet-setting") ||
			(setup.evictionHard["memory.available"] == "5%") != strings.Contains(name, "every-kubelet-setting") {
			t.Errorf("%s is read as %+v", file, setup)
		}
	}
	for _, family := range []string{"AL2023", "AL2", "Bottlerocket", "Windows2022"} {
		if read[family] == 0 {
			t.Errorf("no user data of %s", family)
		}
	}
}
