package ec2sim

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// userData is user data, stored once for all instances that share it.
type userData struct {
	Text string // decoded
}

// kubeletSetup is the kubelet's configuration from a machine's user data.
type kubeletSetup struct {
	program        string // that makes the machine a node: nodeadm, bootstrap.sh, Bottlerocket, Start-EKSBootstrap.ps1
	clusterName    string
	endpoint       string
	caGiven        bool
	cidr           string // of services; only nodeadm needs it
	ipv6           bool   // the node's own address is an IPv6 address
	labels         map[string]string
	taints         []corev1.Taint
	maxPods        int
	podsPerCore    int
	kubeReserved   map[string]string
	systemReserved map[string]string
	evictionHard   map[string]string
	raid0          bool // instance store holds the pods' ephemeral storage
}

// parseUserData parses user data as a machine of the image's family does.
func parseUserData(family, text string) (*kubeletSetup, error) {
	setup := &kubeletSetup{
		labels: map[string]string{}, kubeReserved: map[string]string{}, systemReserved: map[string]string{}, evictionHard: map[string]string{},
	}
	switch family {
	case "AL2":
		return setup, setup.applyScripts(text)
	case "Bottlerocket":
		return setup, setup.applySettings(text)
	case "Windows2019", "Windows2022", "Windows2025":
		return setup, setup.applyPowerShell(text)
	default:
		return setup, setup.applyNodeConfigs(text)
	}
}

type userDataPart struct {
	kind string
	body string
}

func splitUserData(text string) ([]userDataPart, error) {
	if !strings.HasPrefix(text, "MIME-Version:") && !strings.HasPrefix(text, "Content-Type:") {
		return []userDataPart{{bareKind(text), text}}, nil
	}
	msg, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("user data is not a MIME message: %w", err)
	}
	kind, args, err := mime.ParseMediaType(msg.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "multipart/") {
		return nil, fmt.Errorf("user data is not MIME multipart but %q", msg.Header.Get("Content-Type"))
	}
	var parts []userDataPart
	reader := multipart.NewReader(msg.Body, args["boundary"])
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err != nil {
			return nil, fmt.Errorf("user data: %w", err)
		}
		body, err := io.ReadAll(part)
		if err != nil {
			return nil, fmt.Errorf("user data: %w", err)
		}
		kind, _, err := mime.ParseMediaType(part.Header.Get("Content-Type"))
		if err != nil {
			kind = bareKind(string(body))
		}
		parts = append(parts, userDataPart{kind, string(body)})
	}
}

// bareKind guesses the content type of a document that has none.
func bareKind(text string) string {
	switch {
	case strings.Contains(text, "node.eks.aws/"):
		return "application/node.eks.aws"
	case strings.HasPrefix(text, "#!"):
		return "text/x-shellscript"
	}
	return ""
}

// applyFlag applies one kubelet flag. It ignores flags that do not affect the Node.
func (k *kubeletSetup) applyFlag(flag string) error {
	name, value, _ := strings.Cut(strings.TrimSpace(flag), "=")
	value = strings.Trim(value, `"'`)
	switch name {
	case "--node-labels":
		for pair := range strings.SplitSeq(value, ",") {
			if key, v, _ := strings.Cut(pair, "="); key != "" {
				k.labels[key] = v
			}
		}
	case "--register-with-taints":
		for text := range strings.SplitSeq(value, ",") {
			taint, err := parseTaint(text)
			if err != nil {
				return err
			}
			k.taints = append(k.taints, taint)
		}
	case "--max-pods", "--pods-per-core":
		n, err := strconv.Atoi(value)
		if err != nil {
			return fmt.Errorf("kubelet: %s: %w", name, err)
		}
		*map[string]*int{"--max-pods": &k.maxPods, "--pods-per-core": &k.podsPerCore}[name] = n
	case "--kube-reserved":
		copyPairs(k.kubeReserved, value, "=")
	case "--system-reserved":
		copyPairs(k.systemReserved, value, "=")
	case "--eviction-hard":
		copyPairs(k.evictionHard, value, "<")
	}
	return nil
}

func copyPairs(to map[string]string, list, separator string) {
	for pair := range strings.SplitSeq(list, ",") {
		if key, value, ok := strings.Cut(pair, separator); ok {
			to[key] = value
		}
	}
}

// parseTaint parses key=value:Effect or key:Effect.
func parseTaint(text string) (corev1.Taint, error) {
	pair, effect, ok := strings.Cut(text, ":")
	key, value, _ := strings.Cut(pair, "=")
	taint := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
	switch taint.Effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		if ok && key != "" {
			return taint, nil
		}
	}
	return taint, fmt.Errorf("%q is not a taint", text)
}
