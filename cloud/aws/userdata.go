package aws

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/mail"
	"net/textproto"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/tenon-sh/tenon/cloud"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// boundary separates the parts of the user data. It is fixed, so that equal user data are equal bytes.
const boundary = "//"

// Content types of user data parts.
const (
	nodeConfigPart  = "application/node.eks.aws"
	shellScriptPart = `text/x-shellscript; charset="us-ascii"`
)

// unsupportedFamily is the reason for AMI families whose user data this package does not write.
const unsupportedFamily = "UnsupportedAMIFamily"

func unsupportedFamilyMessage(family string) string {
	return fmt.Sprintf("spec.amiFamily: Tenon writes user data for AL2023 and Custom, not for %s; use al2023@latest, or Custom with your own user data", family)
}

// bootstrap is all that a node needs to know to join the cluster.
type bootstrap struct {
	cluster clusterFacts
	// kubelet are the class's settings under the names of the kubelet's own configuration.
	kubelet map[string]any
	maxPods int64
	labels  map[string]string
	taints  []corev1.Taint
	raid0   bool
	// custom is the user's own user data.
	custom string
}

// al2023 returns the user data of an Amazon Linux 2023 node: the user's parts, then a NodeConfig for nodeadm. nodeadm
// merges all NodeConfigs in their order, so what the node needs to join has the last word.
func (b *bootstrap) al2023() (string, error) {
	config, err := b.nodeConfig()
	if err != nil {
		return "", err
	}
	parts, err := splitUserData(b.custom)
	if err != nil {
		return "", err
	}
	return joinUserData(append(parts, newPart(nodeConfigPart, config)))
}

// nodeConfig renders the NodeConfig (https://awslabs.github.io/amazon-eks-ami/nodeadm/).
func (b *bootstrap) nodeConfig() (string, error) {
	kubelet := make(map[string]any, len(b.kubelet)+2)
	for key, value := range b.kubelet {
		kubelet[key] = value
	}
	kubelet["maxPods"] = b.maxPods
	kubelet["registerWithTaints"] = withUnregistered(b.taints)
	spec := map[string]any{
		"cluster": map[string]any{
			"name":                 b.cluster.name,
			"apiServerEndpoint":    b.cluster.endpoint,
			"certificateAuthority": b.cluster.authority,
			"cidr":                 b.cluster.serviceCIDR,
		},
		"kubelet": map[string]any{
			"config": kubelet,
			"flags":  []string{"--node-labels=" + nodeLabels(registeredAs(b.labels))},
		},
	}
	if b.raid0 {
		spec["instance"] = map[string]any{"localStorage": map[string]any{"strategy": "RAID0"}}
	}
	out, err := yaml.Marshal(map[string]any{"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec})
	if err != nil {
		return "", fmt.Errorf("render NodeConfig: %w", err)
	}
	return string(out), nil
}

// withUnregistered prepends the taint that keeps pods off until registration has brought the node up to date.
func withUnregistered(taints []corev1.Taint) []corev1.Taint {
	out := []corev1.Taint{karpv1.UnregisteredNoExecuteTaint()}
	for _, taint := range taints {
		if !taint.MatchTaint(&out[0]) {
			out = append(out, taint)
		}
	}
	return out
}

// registeredAs adds the label that says that the kubelet sets all taints of the node. Registration then leaves the
// taints alone. Otherwise, if it is late, it would restore a startup taint that its owner has removed by then
// (https://github.com/kubernetes-sigs/karpenter/issues/1772).
func registeredAs(labels map[string]string) map[string]string {
	all := maps.Clone(labels)
	if all == nil {
		all = map[string]string{}
	}
	all[karpv1.NodeDoNotSyncTaintsLabelKey] = "true"
	return all
}

// nodeLabels formats labels for the kubelet's --node-labels, sorted. A kubelet may not give itself labels of
// Kubernetes' own domains; registration adds those.
func nodeLabels(labels map[string]string) string {
	pairs := make([]string, 0, len(labels))
	for key, value := range labels {
		domain, _, ok := strings.Cut(key, "/")
		if ok && (inDomain(domain, "kubernetes.io") || inDomain(domain, "k8s.io")) {
			continue
		}
		pairs = append(pairs, key+"="+value)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

func inDomain(name, domain string) bool { return name == domain || strings.HasSuffix(name, "."+domain) }

// part is one part of multipart user data.
type part struct {
	header textproto.MIMEHeader
	body   string
}

func newPart(contentType, body string) part {
	return part{textproto.MIMEHeader{"Content-Type": {contentType}}, body}
}

// splitUserData splits the user's user data into parts. It is a MIME archive, a bare NodeConfig, or a shell script.
func splitUserData(custom string) ([]part, error) {
	trimmed := strings.TrimSpace(custom)
	switch {
	case trimmed == "":
		return nil, nil
	case strings.HasPrefix(trimmed, "MIME-Version:"), strings.HasPrefix(trimmed, "Content-Type:"):
		return splitMIME(trimmed)
	case isNodeConfig(trimmed):
		return []part{newPart(nodeConfigPart, custom)}, nil
	default:
		return []part{newPart(shellScriptPart, custom)}, nil
	}
}

func isNodeConfig(text string) bool {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	return yaml.Unmarshal([]byte(text), &head) == nil && head.Kind == "NodeConfig" && strings.HasPrefix(head.APIVersion, "node.eks.aws/")
}

func splitMIME(text string) ([]part, error) {
	message, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("user data is not a MIME archive: %w", err)
	}
	media, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil {
		return nil, fmt.Errorf("user data's content type: %w", err)
	}
	if !strings.HasPrefix(media, "multipart/") {
		return nil, fmt.Errorf("user data's content type is %s, not multipart", media)
	}
	var parts []part
	reader := multipart.NewReader(message.Body, params["boundary"])
	for {
		next, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) { // wrapped where the archive's last boundary is not a closing one
			return parts, nil
		}
		if err != nil {
			return nil, fmt.Errorf("user data's parts: %w", err)
		}
		body, err := io.ReadAll(next)
		if err != nil {
			return nil, fmt.Errorf("user data's parts: %w", err)
		}
		parts = append(parts, part{next.Header, string(body)})
	}
}

func joinUserData(parts []part) (string, error) {
	var out bytes.Buffer
	writer := multipart.NewWriter(&out)
	if err := writer.SetBoundary(boundary); err != nil {
		return "", err
	}
	fmt.Fprintf(&out, "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=%q\r\n\r\n", boundary)
	for _, p := range parts {
		section, err := writer.CreatePart(p.header)
		if err != nil {
			return "", err
		}
		if _, err := io.WriteString(section, p.body); err != nil {
			return "", err
		}
	}
	if err := writer.Close(); err != nil {
		return "", err
	}
	return out.String(), nil
}

// userData renders the user data of a class's nodes as its AMI family requires.
func userData(cluster clusterFacts, class *awsv1.EC2NodeClass, labels map[string]string, taints []corev1.Taint, pods int64) (string, error) {
	custom := aws.ToString(class.Spec.UserData)
	text := custom
	switch family := class.AMIFamily(); family {
	case awsv1.AMIFamilyCustom:
	case awsv1.AMIFamilyAL2023:
		kubelet, err := kubeletSettings(class.Spec.Kubelet)
		if err != nil {
			return "", err
		}
		boot := bootstrap{
			cluster: cluster, kubelet: kubelet, maxPods: pods, labels: labels, taints: taints, custom: custom,
			raid0: class.Spec.InstanceStorePolicy != nil && *class.Spec.InstanceStorePolicy == awsv1.InstanceStorePolicyRAID0,
		}
		if text, err = boot.al2023(); err != nil {
			return "", invalid("PrepareLaunch", err)
		}
	default:
		return "", notReady("PrepareLaunch", unsupportedFamily, unsupportedFamilyMessage(family))
	}
	if err := awsv1.ValidateUserDataSize(text); err != nil {
		return "", &cloud.Error{Kind: cloud.Invalid, Reason: "UserDataSizeLimitExceeded", Operation: "PrepareLaunch", Err: err}
	}
	return text, nil
}

// kubeletSettings returns a class's kubelet settings under the names of the kubelet's own configuration, which
// EC2NodeClass uses as well.
func kubeletSettings(settings *awsv1.KubeletConfiguration) (map[string]any, error) {
	out := make(map[string]any)
	if settings == nil {
		return out, nil
	}
	encoded, err := json.Marshal(settings)
	if err != nil {
		return nil, fmt.Errorf("kubelet settings: %w", err)
	}
	if err := json.Unmarshal(encoded, &out); err != nil {
		return nil, fmt.Errorf("kubelet settings: %w", err)
	}
	return out, nil
}
