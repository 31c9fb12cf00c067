// Package nodeadm checks the user data that Tenon writes with nodeadm, which configures the machines of EKS's images at
// boot.
//
// The user data are those in cloud/aws/testdata/userdata, which a test there compares with the code that writes them.
// nodeadm is unchanged, and reads and merges them as it does on a machine. It ignores fields that it does not know, so a
// misspelt field would have no effect; therefore each NodeConfig is also decoded strictly, into the types that nodeadm and
// the kubelet publish.
package nodeadm

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/awslabs/amazon-eks-ami/nodeadm/api/v1alpha1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// program is nodeadm as make builds it.
const program = "../../bin/nodeadm"

func run(t *testing.T, verb, file string) (stdout []byte, stderr string, ok bool) {
	t.Helper()
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("nodeadm is not built (make bin/nodeadm): %v", err)
	}
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, "config", verb, "--config-source", "file://"+path)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.Bytes(), errs.String(), err == nil
}

// userData returns the files of user data that Tenon writes, by name.
func userData(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../cloud/aws/testdata/userdata/*.mime")
	if err != nil || len(files) == 0 {
		t.Fatalf("no user data, %v", err)
	}
	byName := map[string]string{}
	for _, file := range files {
		byName[strings.TrimSuffix(filepath.Base(file), ".mime")] = file
	}
	return byName
}

// decode reads a NodeConfig strictly, and the kubelet's configuration in it. Like nodeadm and the kubelet, it is
// case-sensitive.
func decode(document []byte) (v1alpha1.NodeConfig, kubeletv1beta1.KubeletConfiguration, error) {
	var config v1alpha1.NodeConfig
	var kubelet kubeletv1beta1.KubeletConfiguration
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return config, kubelet, err
	}
	if err := strictly(text, &config); err != nil {
		return config, kubelet, err
	}
	inline, err := json.Marshal(config.Spec.Kubelet.Config)
	if err != nil {
		return config, kubelet, err
	}
	return config, kubelet, strictly(inline, &kubelet)
}

func strictly(text []byte, into any) error {
	strict, err := kjson.UnmarshalStrict(text, into)
	return errors.Join(append([]error{err}, strict...)...)
}

// nodeConfigs returns the parts of user data that nodeadm reads.
func nodeConfigs(t *testing.T, file string) [][]byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	message, err := mail.ReadMessage(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	_, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	var documents [][]byte
	reader := multipart.NewReader(message.Body, params["boundary"])
	for {
		part, err := reader.NextPart()
		if err == io.EOF {
			return documents
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		if part.Header.Get("Content-Type") == "application/node.eks.aws" {
			documents = append(documents, body)
		}
	}
}

func TestNodeadmAcceptsUserData(t *testing.T) {
	t.Parallel()
	for name, file := range userData(t) {
		if _, stderr, ok := run(t, "check", file); !ok || !strings.Contains(stderr, "Configuration is valid") {
			t.Errorf("%s: nodeadm config check: %s", name, stderr)
		}
		documents := nodeConfigs(t, file)
		if len(documents) == 0 {
			t.Errorf("%s has no NodeConfig", name)
		}
		for i, document := range documents {
			if _, _, err := decode(document); err != nil {
				t.Errorf("%s: NodeConfig %d, strictly: %v", name, i, err)
			}
		}
	}
}

// TestOursHasTheLastWord checks the result of nodeadm merging all parts: Tenon's settings win.
func TestOursHasTheLastWord(t *testing.T) {
	t.Parallel()
	for name, file := range userData(t) {
		dumped, stderr, ok := run(t, "dump", file)
		if !ok {
			t.Fatalf("%s: nodeadm config dump: %s", name, stderr)
		}
		config, kubelet, err := decode(dumped)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		cluster := config.Spec.Cluster
		if cluster.Name != "blue" || cluster.APIServerEndpoint == "" || string(cluster.CertificateAuthority) != "CA" || cluster.CIDR == "" {
			t.Errorf("%s: cluster %+v", name, cluster)
		}
		if kubelet.MaxPods != 29 {
			t.Errorf("%s: %d pods at most, want the 29 that Tenon counts on", name, kubelet.MaxPods)
		}
		unregistered := corev1.Taint{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute}
		if len(kubelet.RegisterWithTaints) == 0 || kubelet.RegisterWithTaints[0] != unregistered {
			t.Errorf("%s: taints %v", name, kubelet.RegisterWithTaints)
		}
		flags := config.Spec.Kubelet.Flags
		if n := len(flags); n == 0 || !strings.HasPrefix(flags[n-1], "--node-labels=") || !strings.Contains(flags[n-1], "karpenter.sh/do-not-sync-taints=true") {
			t.Errorf("%s: flags %v", name, flags)
		}
	}
}

// TestEverySettingArrives checks that every kubelet setting of a node class reaches the kubelet through nodeadm.
func TestEverySettingArrives(t *testing.T) {
	t.Parallel()
	dumped, stderr, ok := run(t, "dump", userData(t)["own-mime"])
	if !ok {
		t.Fatal(stderr)
	}
	config, kubelet, err := decode(dumped)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(config.Spec.Instance.LocalStorage.Strategy); got != "RAID0" {
		t.Errorf("local storage %q, want the class's RAID0 over the user's Mount", got)
	}
	if got := config.Spec.Cluster.CIDR; got != "fd30:1c53:5f8a::/108" {
		t.Errorf("service CIDR %s", got)
	}
	want := map[string]any{
		"clusterDNS": []string{"10.100.0.10"}, "podsPerCore": int32(20), "evictionMaxPodGracePeriod": int32(60),
		"systemReserved":          map[string]string{"cpu": "100m", "memory": "100Mi", "ephemeral-storage": "1Gi", "pid": "100"},
		"kubeReserved":            map[string]string{"cpu": "200m", "memory": "300Mi", "ephemeral-storage": "2Gi", "pid": "200"},
		"evictionHard":            map[string]string{"memory.available": "5%", "nodefs.available": "10%", "nodefs.inodesFree": "5%", "pid.available": "3%"},
		"evictionSoft":            map[string]string{"memory.available": "10%"},
		"evictionSoftGracePeriod": map[string]string{"memory.available": "1m30s"},
		"imageGCHigh":             int32(85), "imageGCLow": int32(80), "cpuCFSQuota": true,
		"shutdownGracePeriod": "30s", // from the user's own NodeConfig
	}
	got := map[string]any{
		"clusterDNS": kubelet.ClusterDNS, "podsPerCore": kubelet.PodsPerCore, "evictionMaxPodGracePeriod": kubelet.EvictionMaxPodGracePeriod,
		"systemReserved": kubelet.SystemReserved, "kubeReserved": kubelet.KubeReserved, "evictionHard": kubelet.EvictionHard,
		"evictionSoft": kubelet.EvictionSoft, "evictionSoftGracePeriod": kubelet.EvictionSoftGracePeriod,
		"imageGCHigh": *kubelet.ImageGCHighThresholdPercent, "imageGCLow": *kubelet.ImageGCLowThresholdPercent, "cpuCFSQuota": *kubelet.CPUCFSQuota,
		"shutdownGracePeriod": kubelet.ShutdownGracePeriod.Duration.String(),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAFileHasEveryField checks that one of the files sets every field of a NodeConfig. cloud/ec2sim reads the same files
// with types of its own, so its tests fail if nodeadm gets a new field.
func TestAFileHasEveryField(t *testing.T) {
	t.Parallel()
	dumped, stderr, ok := run(t, "dump", userData(t)["own-nodeconfig"])
	if !ok {
		t.Fatal(stderr)
	}
	config, _, err := decode(dumped)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range unset("spec", reflect.ValueOf(config.Spec)) {
		t.Errorf("%s is in no file", name)
	}
}

// unset lists the fields of a structure, and of those in it, that are not set.
func unset(path string, value reflect.Value) []string {
	var names []string
	for i := range value.NumField() {
		field, name := value.Field(i), path+"."+value.Type().Field(i).Name
		switch {
		case field.Kind() == reflect.Struct:
			names = append(names, unset(name, field)...)
		case field.IsZero():
			names = append(names, name)
		}
	}
	return names
}

const valid = `apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: blue, apiServerEndpoint: "https://x", certificateAuthority: Q0E=, cidr: 10.0.0.0/16}
  kubelet:
    config: {maxPods: 29}
`

// TestWhatIsRefused checks which mistakes nodeadm and strict decoding refuse; cloud/ec2sim refuses the same ones
// (userdata.go).
func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		old, new        string
		nodeadm, strict bool // refuses
	}{
		"nothing wrong":                    {"", "", false, false},
		"no service CIDR":                  {", cidr: 10.0.0.0/16", "", true, false},
		"an authority that is not base64":  {"Q0E=", `"#"`, true, true},
		"a name that is no text":           {"name: blue", "name: [blue]", true, true},
		"another version":                  {"v1alpha1", "v1", true, false},
		"a field that NodeConfig lacks":    {"cidr:", "colour: red, cidr:", false, true},
		"a field that the kubelet lacks":   {"maxPods", "maxPodz", false, true},
		"a field in the wrong case":        {"cidr:", "Cidr: x, cidr:", false, true},
		"a number of pods that is a text":  {"29", `"29"`, false, true},
		"a second document, of one field":  {"29}\n", "29}\n---\nspec: {colour: red}\n", false, false},
		"a field of the kubelet's v1alpha": {"maxPods", "dynamicKubeletConfig: true, maxPods", false, true},
	} {
		text := strings.Replace(valid, tc.old, tc.new, 1)
		file := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, stderr, ok := run(t, "check", file); ok == tc.nodeadm {
			t.Errorf("%s: nodeadm takes it: %t; %s", name, ok, stderr)
		}
		if _, _, err := decode([]byte(text)); (err != nil) != tc.strict {
			t.Errorf("%s: strictly: %v", name, err)
		}
	}
}
