package lab

import (
	"cmp"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/tenon-sh/tenon/cloud/kwok"
	"github.com/tenon-sh/tenon/deploy"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	schedulerConfig = "scheduler.yaml"
	kwokConfig      = "kwok.yaml"
)

//go:embed scheduler.yaml
var schedulerTemplate string

//go:embed kwok.yaml
var kwokTemplate string

// SimulatedNodeLabel is the label, with the value "true", of the Nodes that the simulated cloud created. kwok manages
// only these.
const SimulatedNodeLabel = "tenon.sh/simulated-node"

// files writes the files derived from the options, the keys and the ports.
type files struct {
	site
	opts Options
}

// writePolicies writes the worker's IAM policies for the simulator.
func (f files) writePolicies() error {
	policies, err := deploy.WorkerPolicies(deploy.PolicyValues{
		Partition: "aws", Region: simulatedRegion, AccountID: simulatedAccount, Cluster: f.state.Cluster,
	})
	if err != nil {
		return err
	}
	dir := filepath.Join(f.layout.policies(), workerAccessKey)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the directory of IAM policies: %w", err)
	}
	for name, data := range policies {
		if err := writeAtomically(filepath.Join(dir, name+".json"), data); err != nil {
			return fmt.Errorf("writing IAM policy %s: %w", name, err)
		}
	}
	return nil
}

// write writes all files except the environment, which writeEnv writes once the lab runs.
func (f files) write() error {
	tokens, err := readTokens(f.layout)
	if err != nil {
		return err
	}
	for _, u := range users() {
		if err := f.writeKubeconfig(u, tokens[u]); err != nil {
			return err
		}
	}
	if err := f.writePolicies(); err != nil {
		return err
	}
	selector := SimulatedNodeLabel + "=true"
	if f.opts.Provider == ProviderKwok {
		selector = kwok.NodeLabel + "=" + kwok.NodeValue
	}
	values := map[string]any{
		"SchedulerKubeconfig": f.layout.kubeconfig(userScheduler),
		"KwokAddress":         f.state.address(portKwok),
		"NodeSelector":        selector,
		"NodeLeaseSeconds":    int(f.opts.NodeLease.Seconds()),
		"SchedulerQPS":        cmp.Or(f.opts.SchedulerQPS, 1000),
		"SchedulerBurst":      cmp.Or(f.opts.SchedulerQPS, 2000),
		"Large":               f.opts.Large,
	}
	for file, text := range map[string]string{schedulerConfig: schedulerTemplate, kwokConfig: kwokTemplate} {
		// The configurations contain templates of their own, hence the other delimiters.
		parsed, err := template.New(file).Delims("<<", ">>").Option("missingkey=error").Parse(text)
		if err != nil {
			return fmt.Errorf("reading the template of %s: %w", file, err)
		}
		var b strings.Builder
		if err := parsed.Execute(&b, values); err != nil {
			return fmt.Errorf("filling in %s: %w", file, err)
		}
		if err := writeAtomically(f.layout.config(file), []byte(b.String())); err != nil {
			return fmt.Errorf("writing %s: %w", file, err)
		}
	}
	return nil
}

func (f files) writeKubeconfig(u user, token string) error {
	authority, err := os.ReadFile(f.layout.pki(caCert))
	if err != nil {
		return fmt.Errorf("reading the lab's certificate authority: %w", err)
	}
	cluster := f.state.Cluster
	config := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{cluster: {Server: f.APIServerURL(), CertificateAuthorityData: authority}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{string(u): {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{cluster: {Cluster: cluster, AuthInfo: string(u)}},
		CurrentContext: cluster,
	}
	data, err := clientcmd.Write(config)
	if err != nil {
		return fmt.Errorf("encoding the kubeconfig of %s: %w", u, err)
	}
	if err := writeAtomically(f.layout.kubeconfig(u), data); err != nil {
		return fmt.Errorf("writing the kubeconfig of %s: %w", u, err)
	}
	return nil
}

// writeEnv writes Env as a file that a shell can source.
func (f files) writeEnv() error {
	var b strings.Builder
	env := f.Env()
	names := make([]string, 0, len(env))
	for name := range env {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "export %s='%s'\n", name, strings.ReplaceAll(env[name], "'", `'\''`))
	}
	return os.WriteFile(f.layout.envFile(), []byte(b.String()), 0o600)
}
