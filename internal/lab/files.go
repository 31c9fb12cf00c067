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

// SimulatedNodeLabel is the label, with the value "true", of the Nodes that the simulated cloud created. kwok plays
// these and no others.
const SimulatedNodeLabel = "tenon.sh/simulated-node"

const (
	// workerAccessKey is what the worker signs its calls of AWS with: the simulator holds it to its IAM policies. Everybody
	// else has all rights.
	workerAccessKey = "worker"
	// simulatedAccount and simulatedRegion are those of the simulator.
	simulatedAccount = "123456789012"
	simulatedRegion  = "us-east-1"
)

// writePolicies writes the worker's IAM policies for the simulator.
func (l *Lab) writePolicies() error {
	policies, err := deploy.WorkerPolicies(deploy.PolicyValues{
		Partition: "aws", Region: simulatedRegion, AccountID: simulatedAccount, Cluster: l.state.Cluster,
	})
	if err != nil {
		return err
	}
	dir := filepath.Join(l.layout.policies(), workerAccessKey)
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

// writeFiles writes everything that is derived from the options, the keys and the ports.
func (l *Lab) writeFiles() error {
	tokens, err := readTokens(l.layout)
	if err != nil {
		return err
	}
	for _, u := range users() {
		if err := l.writeKubeconfig(u, tokens[u]); err != nil {
			return err
		}
	}
	if err := l.writePolicies(); err != nil {
		return err
	}
	values := map[string]any{
		"SchedulerKubeconfig": l.layout.kubeconfig(userScheduler),
		"KwokAddress":         l.state.address(portKwok),
		"NodeLabel":           SimulatedNodeLabel,
		"NodeLeaseSeconds":    int(l.opts.NodeLease.Seconds()),
		"SchedulerQPS":        cmp.Or(l.opts.SchedulerQPS, 1000),
		"SchedulerBurst":      cmp.Or(l.opts.SchedulerQPS, 2000),
		"Large":               l.opts.Large,
	}
	for file, text := range map[string]string{schedulerConfig: schedulerTemplate, kwokConfig: kwokTemplate} {
		// The configurations hold templates of their own, so ours has other delimiters.
		parsed, err := template.New(file).Delims("<<", ">>").Option("missingkey=error").Parse(text)
		if err != nil {
			return fmt.Errorf("reading the template of %s: %w", file, err)
		}
		var b strings.Builder
		if err := parsed.Execute(&b, values); err != nil {
			return fmt.Errorf("filling in %s: %w", file, err)
		}
		if err := writeAtomically(l.layout.config(file), []byte(b.String())); err != nil {
			return fmt.Errorf("writing %s: %w", file, err)
		}
	}
	return nil
}

func (l *Lab) writeKubeconfig(u user, token string) error {
	authority, err := os.ReadFile(l.layout.pki(caCert))
	if err != nil {
		return fmt.Errorf("reading the lab's certificate authority: %w", err)
	}
	cluster := l.state.Cluster
	config := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{cluster: {Server: l.APIServerURL(), CertificateAuthorityData: authority}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{string(u): {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{cluster: {Cluster: cluster, AuthInfo: string(u)}},
		CurrentContext: cluster,
	}
	data, err := clientcmd.Write(config)
	if err != nil {
		return fmt.Errorf("encoding the kubeconfig of %s: %w", u, err)
	}
	if err := writeAtomically(l.layout.kubeconfig(u), data); err != nil {
		return fmt.Errorf("writing the kubeconfig of %s: %w", u, err)
	}
	return nil
}

// Env returns the environment with which kubectl, temporal, tenon and the AWS tools reach this lab.
func (l *Lab) Env() map[string]string {
	return map[string]string{
		"KUBECONFIG":            l.Kubeconfig(),
		"TEMPORAL_ADDRESS":      l.TemporalAddress(),
		"TEMPORAL_NAMESPACE":    "default",
		"TENON_CLUSTER":         l.state.Cluster,
		"TENON_UI_URL":          l.UIURL(),
		"TENON_EC2SIM_URL":      l.EC2SimURL(),
		"AWS_ENDPOINT_URL":      l.EC2SimURL(),
		"AWS_REGION":            simulatedRegion,
		"AWS_DEFAULT_REGION":    simulatedRegion, // the AWS CLI before version 2 knows this name only
		"AWS_ACCESS_KEY_ID":     "test",
		"AWS_SECRET_ACCESS_KEY": "test",
	}
}

// WorkerEnv is Env for a worker: it has the rights in AWS that deploy/iam gives it, and no profile of the person at this
// machine reaches its SDK.
func (l *Lab) WorkerEnv() map[string]string {
	env := l.Env()
	env["AWS_ACCESS_KEY_ID"] = workerAccessKey
	env["AWS_CONFIG_FILE"], env["AWS_SHARED_CREDENTIALS_FILE"] = os.DevNull, os.DevNull
	env["AWS_EC2_METADATA_DISABLED"] = "true"
	return env
}

// envFile renders Env for a shell.
func (l *Lab) envFile() []byte {
	var b strings.Builder
	env := l.Env()
	names := make([]string, 0, len(env))
	for name := range env {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "export %s='%s'\n", name, strings.ReplaceAll(env[name], "'", `'\''`))
	}
	return []byte(b.String())
}
