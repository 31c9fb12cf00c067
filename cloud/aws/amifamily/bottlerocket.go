package amifamily

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// bottlerocket is Bottlerocket. Its operating system is on /dev/xvda, and what pods write on /dev/xvdb. Its memory for the
// kubelet depends on maxPods (https://github.com/bottlerocket-os/bottlerocket/pull/1388).
var bottlerocket = Family{
	Name: awsv1.AMIFamilyBottlerocket, OS: string(corev1.Linux), Volumes: []Volume{{"/dev/xvda", 4}, {"/dev/xvdb", 20}}, PodDevice: "/dev/xvdb",
	PodsByENI: true,
	images:    bottlerocketImages, userData: bottlerocketUserData, unsupported: bottlerocketUnsupported,
}

// bottlerocketImages accepts versions as in the names of releases, v1.50.0, and as in SSM, 1.50.0.
func bottlerocketImages(version, kubernetes string) []Image {
	path := func(kind, arch string) string {
		return fmt.Sprintf("/aws/service/bottlerocket/aws-k8s-%s%s/%s/%s/image_id", kubernetes, kind, arch, strings.TrimPrefix(version, "v"))
	}
	return []Image{
		{path("", "x86_64"), runs(plainOnly, neuronOnly)}, {path("", "arm64"), runs(plainOnly)},
		{path("-nvidia", "x86_64"), runs(gpuOnly)}, {path("-nvidia", "arm64"), runs(gpuOnly)},
	}
}

// Releases of Bottlerocket from which on it has bootstrap commands, and knows by itself which directories the instance store
// is for.
var (
	firstBootstrapCommands = release{1, 22}
	firstDefaultBind       = release{1, 46}
)

// bottlerocketUnsupported: Bottlerocket has no setting for podsPerCore
// (https://github.com/bottlerocket-os/bottlerocket/issues/1721), and sets up an instance store by a bootstrap command.
func bottlerocketUnsupported(class *awsv1.EC2NodeClass) field.ErrorList {
	var errs field.ErrorList
	if k := class.Spec.Kubelet; k != nil && k.PodsPerCore != nil && *k.PodsPerCore > 0 {
		errs = append(errs, field.Forbidden(kubeletPath.Child("podsPerCore"), "Bottlerocket has no such setting; use maxPods"))
	}
	if class.Spec.InstanceStorePolicy == nil {
		return errs
	}
	for _, image := range class.Status.AMIs {
		if made, ok := releaseOf(image.Name); ok && made.before(firstBootstrapCommands) {
			errs = append(errs, field.Forbidden(instanceStorePath, fmt.Sprintf("image %s is older than Bottlerocket 1.22, which is the first to use instance stores", image.Name)))
		}
	}
	return errs
}

// bottlerocketUserData returns the user's settings, in TOML, with those that the node needs over them
// (https://bottlerocket.dev/en/os/latest/api/settings/kubernetes). Labels are merged, the user's taints are not kept: the
// node's claim has all that the planner counts on.
func bottlerocketUserData(n *Node) (string, error) {
	document := map[string]any{}
	if err := toml.Unmarshal([]byte(n.Custom), &document); err != nil {
		return "", fmt.Errorf("user data is not TOML: %w", err)
	}
	for key := range document {
		if key != "settings" {
			return "", fmt.Errorf("user data has %s: Bottlerocket reads only what is in settings", key)
		}
	}
	settings, err := tableIn(document, "settings")
	if err != nil {
		return "", err
	}
	kubernetes, err := tableIn(settings, "kubernetes")
	if err != nil {
		return "", err
	}
	if err := setKubernetes(kubernetes, n); err != nil {
		return "", err
	}
	if n.RAID0 {
		commands, err := tableIn(settings, "bootstrap-commands")
		if err != nil {
			return "", err
		}
		commands["000-mount-instance-storage"] = instanceStoreCommand(n.Image)
	}
	out, err := toml.Marshal(document)
	if err != nil {
		return "", fmt.Errorf("render settings: %w", err)
	}
	return string(out), nil
}

// setKubernetes sets what the node needs in settings.kubernetes.
func setKubernetes(kubernetes map[string]any, n *Node) error {
	kubernetes["cluster-name"] = n.Cluster.Name
	kubernetes["api-server"] = n.Cluster.Endpoint
	kubernetes["cluster-certificate"] = n.Cluster.Authority
	kubernetes["max-pods"] = n.MaxPods
	labels, err := tableIn(kubernetes, "node-labels")
	if err != nil {
		return err
	}
	for key, value := range n.labels() {
		labels[key] = value
	}
	taints := map[string][]string{}
	for _, taint := range n.taints() {
		taints[taint.Key] = append(taints[taint.Key], taint.Value+":"+string(taint.Effect))
	}
	kubernetes["node-taints"] = taints
	switch dns := n.clusterDNS(); len(dns) {
	case 0:
	case 1:
		kubernetes["cluster-dns-ip"] = dns[0]
	default:
		kubernetes["cluster-dns-ip"] = dns
	}
	k := n.kubelet()
	pairs := func(name string, values map[string]string) {
		if values != nil {
			kubernetes[name] = values
		}
	}
	pairs("system-reserved", k.SystemReserved)
	pairs("kube-reserved", k.KubeReserved)
	pairs("eviction-hard", k.EvictionHard)
	pairs("eviction-soft", k.EvictionSoft)
	if k.EvictionSoftGracePeriod != nil {
		periods := map[string]string{}
		for signal, period := range k.EvictionSoftGracePeriod {
			periods[signal] = period.Duration.String()
		}
		kubernetes["eviction-soft-grace-period"] = periods
	}
	if k.EvictionMaxPodGracePeriod != nil {
		kubernetes["eviction-max-pod-grace-period"] = *k.EvictionMaxPodGracePeriod
	}
	for name, percent := range map[string]*int32{
		"image-gc-high-threshold-percent": k.ImageGCHighThresholdPercent, "image-gc-low-threshold-percent": k.ImageGCLowThresholdPercent,
	} {
		if percent != nil {
			kubernetes[name] = strconv.Itoa(int(*percent)) // the settings take these as text
		}
	}
	if k.CPUCFSQuota != nil {
		kubernetes["cpu-cfs-quota-enforced"] = *k.CPUCFSQuota
	}
	return nil
}

// tableIn returns a table of a table, and makes it if there is none.
func tableIn(outer map[string]any, key string) (map[string]any, error) {
	if outer[key] == nil {
		outer[key] = map[string]any{}
	}
	inner, ok := outer[key].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("user data: %s is not a table", key)
	}
	return inner, nil
}

// instanceStoreCommand makes the instance store hold what pods write, at every boot and before the kubelet starts. Releases
// that do not know which directories that concerns, and images whose release their name does not say, are told.
func instanceStoreCommand(image string) map[string]any {
	bind := []string{"apiclient", "ephemeral-storage", "bind"}
	if made, ok := releaseOf(image); !ok || made.before(firstDefaultBind) {
		bind = append(bind, "--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods")
	}
	return map[string]any{
		"commands":  [][]string{{"apiclient", "ephemeral-storage", "init"}, bind},
		"mode":      "always",
		"essential": true,
	}
}

// release is the major and minor version of a release of Bottlerocket.
type release [2]int

func (r release) before(other release) bool { return slices.Compare(r[:], other[:]) < 0 }

// inName finds the release in the name of an image, such as bottlerocket-aws-k8s-1.34-x86_64-v1.46.0-431fe75a.
var inName = regexp.MustCompile(`-v([0-9]+)\.([0-9]+)\.`)

func releaseOf(image string) (release, bool) {
	found := inName.FindStringSubmatch(image)
	if found == nil {
		return release{}, false
	}
	major, err := strconv.Atoi(found[1])
	if err != nil {
		return release{}, false
	}
	minor, err := strconv.Atoi(found[2])
	return release{major, minor}, err == nil
}
