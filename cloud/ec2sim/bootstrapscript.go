package ec2sim

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
)

// bootstrapOptions are the options of AL2's bootstrap.sh, each of which takes a value (github.com/awslabs/amazon-eks-ami,
// templates/al2/runtime/bootstrap.sh). It takes anything else for the name of the cluster, and uses the first only, so that
// a misspelt option, or one with an equal sign, has no effect. The simulator refuses those.
var bootstrapOptions = map[string]bool{
	"--apiserver-endpoint": true, "--aws-api-retry-attempts": true, "--b64-cluster-ca": true, "--cluster-id": true, "--container-runtime": true,
	"--containerd-config-file": true, "--dns-cluster-ip": true, "--docker-config-json": true, "--enable-docker-bridge": true,
	"--enable-local-outpost": true, "--ip-family": true, "--kubelet-extra-args": true, "--local-disks": true, "--mount-bpf-fs": true,
	"--pause-container-account": true, "--pause-container-version": true, "--service-ipv6-cidr": true, "--use-max-pods": true,
}

// applyScripts applies the calls of bootstrap.sh in shell scripts. Images of AL2 read no NodeConfig.
func (k *kubeletSetup) applyScripts(text string) error {
	k.program = "bootstrap.sh"
	parts, err := splitUserData(text)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if p.kind != "text/x-shellscript" {
			continue
		}
		lines := bufio.NewScanner(strings.NewReader(strings.ReplaceAll(p.body, "\\\n", " ")))
		for lines.Scan() {
			if words := shellWords(lines.Text()); len(words) > 0 && words[0] == "/etc/eks/bootstrap.sh" {
				if err := k.applyBootstrap(words[1:]); err != nil {
					return fmt.Errorf("bootstrap.sh: %w", err)
				}
			}
		}
		if err := lines.Err(); err != nil {
			return fmt.Errorf("user data: %w", err)
		}
	}
	return nil
}

// applyBootstrap applies the arguments of one call.
func (k *kubeletSetup) applyBootstrap(words []string) error {
	dns := false
	for len(words) > 0 {
		option := words[0]
		words = words[1:]
		switch {
		case !bootstrapOptions[option] && (strings.HasPrefix(option, "-") || k.clusterName != ""):
			return fmt.Errorf("argument %q, of which it would use nothing", option)
		case !bootstrapOptions[option]:
			k.clusterName = option
			continue
		case len(words) == 0:
			return fmt.Errorf("option %s without a value", option)
		}
		value := words[0]
		words = words[1:]
		switch option {
		case "--apiserver-endpoint":
			k.endpoint = value
		case "--b64-cluster-ca":
			k.caGiven = value != ""
		case "--dns-cluster-ip", "--service-ipv6-cidr":
			dns = true
		case "--ip-family":
			k.ipv6 = value == "ipv6"
		case "--local-disks":
			k.raid0 = value == "raid0"
		case "--kubelet-extra-args":
			for _, flag := range shellWords(value) {
				if err := k.applyFlag(flag); err != nil {
					return err
				}
			}
		}
	}
	if k.ipv6 && !dns {
		return errors.New("one of --service-ipv6-cidr or --dns-cluster-ip must be provided when --ip-family is ipv6")
	}
	return nil
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
