package program

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/cloud/aws"
	"github.com/tenon-sh/tenon/cloud/kwok"
	"github.com/tenon-sh/tenon/worker"
)

// The values of --provider.
const (
	ProviderAWS  = "aws"
	ProviderKwok = "kwok"
)

// CheckProvider returns an error about a value of --provider that is none.
func CheckProvider(name string) error {
	if all := []string{ProviderAWS, ProviderKwok}; !slices.Contains(all, name) {
		return fmt.Errorf("--provider %q: must be one of %v", name, all)
	}
	return nil
}

// providerFlags are the settings of all providers, and which one a worker has.
type providerFlags struct {
	name string
	aws  awsFlags
	kwok kwokFlags
}

func (p *providerFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&p.name, "provider", ProviderAWS, "what runs instances: aws, or kwok, which makes Nodes for kwok itself")
	p.aws.add(flags)
	p.kwok.add(flags)
}

// validate returns an error about the first invalid flag.
func (p *providerFlags) validate() error {
	if err := CheckProvider(p.name); err != nil {
		return err
	}
	if p.name != ProviderKwok && p.kwok.catalogue != "" {
		return fmt.Errorf("--kwok-catalogue: is for --provider %s only", ProviderKwok)
	}
	return p.aws.validate()
}

// awsFlags are the settings of the AWS provider. They have the names of Karpenter's own options.
type awsFlags struct {
	endpoint, caBundle string
	serviceCIDR        string
	memoryOverhead     float64
	reservedENIs       int
	disableDryRun      bool
	isolatedVPC        bool
	zonalShift         bool
	interruptionQueue  string
}

func (a *awsFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&a.endpoint, "cluster-endpoint", "", "API server nodes join (default: what EKS says)")
	flags.StringVar(&a.caBundle, "cluster-ca-bundle", "", "the API server's CA, base64 of PEM (default: what EKS says)")
	flags.StringVar(&a.serviceCIDR, "cluster-service-cidr", "", "range of the cluster's service addresses (default: what EKS says)")
	flags.Float64Var(&a.memoryOverhead, "vm-memory-overhead-percent", aws.DefaultVMMemoryOverhead, "share of an instance's memory that is not the node's, 0 to 1")
	flags.IntVar(&a.reservedENIs, "reserved-enis", 0, "network interfaces of each instance whose addresses pods do not get")
	flags.BoolVar(&a.disableDryRun, "disable-dry-run", false, "do not test an EC2NodeClass's permissions with dry runs")
	flags.BoolVar(&a.zonalShift, "enable-zonal-shift", false, "while ARC shifts the cluster's traffic away from an availability zone, launch nothing there and disrupt no node there")
	flags.BoolVar(&a.isolatedVPC, "isolated-vpc", false, "call neither IAM nor Pricing, which a VPC without internet access does not reach: prices come from a table, and an EC2NodeClass has to name an instanceProfile")
	flags.StringVar(&a.interruptionQueue, "interruption-queue", "", "name or URL of the SQS queue that EventBridge puts interruptions of instances into (default: none)")
}

// validate returns an error about the first invalid flag.
func (a *awsFlags) validate() error {
	switch {
	case a.memoryOverhead < 0 || a.memoryOverhead >= 1:
		return fmt.Errorf("--vm-memory-overhead-percent %v: must be from 0 to below 1", a.memoryOverhead)
	case a.reservedENIs < 0:
		return fmt.Errorf("--reserved-enis %d: must not be negative", a.reservedENIs)
	case a.serviceCIDR != "" && !isPrefix(a.serviceCIDR):
		return fmt.Errorf("--cluster-service-cidr %q: must be a range of addresses such as 10.100.0.0/16", a.serviceCIDR)
	case a.interruptionQueue != "" && !aws.ValidQueue(a.interruptionQueue):
		return fmt.Errorf("--interruption-queue %q: must be the name of an SQS queue (letters, digits, hyphens and underscores) or its URL", a.interruptionQueue)
	}
	return nil
}

// connect makes the AWS provider of a worker. load are further options of the SDK's configuration.
func (a *awsFlags) connect(ctx context.Context, to *worker.Connections, cluster string, load []func(*config.LoadOptions) error, log *zap.Logger) error {
	options := aws.Options{
		Cluster: cluster, ClusterEndpoint: a.endpoint, ClusterCA: a.caBundle, ServiceCIDR: a.serviceCIDR,
		ServerVersion: serverVersion(to.Kubernetes), VMMemoryOverhead: &a.memoryOverhead,
		ReservedENIs: a.reservedENIs, DisableDryRun: a.disableDryRun, IsolatedVPC: a.isolatedVPC, ZonalShift: a.zonalShift, Load: load, Registry: prometheus.DefaultRegisterer, Log: log,
	}
	provider, err := aws.New(ctx, options)
	if err != nil {
		return fmt.Errorf("AWS: %w", err)
	}
	to.Cloud, to.Interruptions = provider, provider.Interruptions(a.interruptionQueue)
	to.LearnFrom = provider.LearnFrom
	return nil
}

// serverVersion asks the API server for its minor version.
func serverVersion(kubernetes *rest.Config) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		client, err := discovery.NewDiscoveryClientForConfig(kubernetes)
		if err != nil {
			return "", err
		}
		info, err := client.ServerVersion()
		if err != nil {
			return "", err
		}
		// EKS writes the minor version with a plus sign: 34+.
		return info.Major + "." + strings.TrimSuffix(info.Minor, "+"), nil
	}
}

// kwokFlags are the settings of the kwok provider.
type kwokFlags struct{ catalogue string }

func (k *kwokFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&k.catalogue, "kwok-catalogue", "", "JSON file of instance types for --provider kwok, in the form of Karpenter's kwok provider (default: a built-in one)")
}

// connect makes the kwok provider of a worker.
func (k *kwokFlags) connect(to *worker.Connections, cluster string) error {
	var catalogue []byte
	if k.catalogue != "" {
		var err error
		if catalogue, err = os.ReadFile(k.catalogue); err != nil {
			return fmt.Errorf("--kwok-catalogue: %w", err)
		}
	}
	unlimited := rest.CopyConfig(to.Kubernetes)
	unlimited.QPS = -1
	direct, err := client.New(unlimited, client.Options{Scheme: worker.Scheme()})
	if err != nil {
		return fmt.Errorf("client for the Nodes of kwok: %w", err)
	}
	to.Cloud, err = kwok.New(kwok.Options{Cluster: cluster, Kube: direct, Catalogue: catalogue})
	return err
}

func isPrefix(text string) bool {
	_, err := netip.ParsePrefix(text)
	return err == nil
}
