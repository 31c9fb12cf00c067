package ec2sim

import (
	"bufio"
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
	byNodeadm      bool // there is a NodeConfig
	clusterName    string
	endpoint       string
	caGiven        bool
	cidr           string
	labels         map[string]string
	taints         []corev1.Taint
	maxPods        int
	podsPerCore    int
	kubeReserved   map[string]string
	systemReserved map[string]string
	evictionHard   map[string]string
	raid0          bool // instance store holds the pods' ephemeral storage
}

// parseUserData parses user data as an AL2023 machine does: MIME parts or a bare document. It merges NodeConfigs in
// order, and takes the kubelet arguments from a call of bootstrap.sh in a shell script.
func parseUserData(text string) (*kubeletSetup, error) {
	setup := &kubeletSetup{
		labels: map[string]string{}, kubeReserved: map[string]string{}, systemReserved: map[string]string{}, evictionHard: map[string]string{},
	}
	parts, err := splitUserData(text)
	if err != nil {
		return nil, err
	}
	var merged mergedNodeConfig
	for _, p := range parts {
		switch p.kind {
		case "application/node.eks.aws":
			err = merged.add(p.body)
		case "text/x-shellscript":
			err = setup.applyScript(p.body)
		}
		if err != nil {
			return nil, err
		}
	}
	return setup, merged.apply(setup)
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
	case "--max-pods":
		n, err := strconv.Atoi(value)
		if err != nil {
			return fmt.Errorf("--max-pods: %w", err)
		}
		k.maxPods = n
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

// applyScript applies a call of AL2's /etc/eks/bootstrap.sh, if the script has one.
func (k *kubeletSetup) applyScript(body string) error {
	lines := bufio.NewScanner(strings.NewReader(strings.ReplaceAll(body, "\\\n", " ")))
	for lines.Scan() {
		words := shellWords(lines.Text())
		if len(words) < 2 || !strings.HasSuffix(words[0], "/etc/eks/bootstrap.sh") {
			continue
		}
		k.clusterName = strings.Trim(words[1], `'"`)
		for n := 2; n+1 < len(words); n += 2 {
			switch words[n] {
			case "--apiserver-endpoint":
				k.endpoint = words[n+1]
			case "--b64-cluster-ca":
				k.caGiven = true
			case "--kubelet-extra-args":
				for flag := range strings.FieldsSeq(words[n+1]) {
					if err := k.applyFlag(flag); err != nil {
						return err
					}
				}
			case "--use-max-pods", "--container-runtime", "--dns-cluster-ip", "--ip-family":
			default:
				n-- // a flag without a value
			}
		}
	}
	return lines.Err()
}

// shellWords splits a line at blanks outside quotes and removes the quotes.
func shellWords(line string) []string {
	var words []string
	var word strings.Builder
	quote := rune(0)
	open := false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, open = r, true
		case quote == 0 && (r == ' ' || r == '\t'):
			if open {
				words = append(words, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if open {
		words = append(words, word.String())
	}
	return words
}
