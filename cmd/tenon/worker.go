package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"runtime/debug"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/go-logr/zapr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	sdk "go.temporal.io/sdk/worker"
	"go.uber.org/zap"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	kubeconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tenon-sh/tenon/cloud/aws"
	"github.com/tenon-sh/tenon/internal/failpoint"
	"github.com/tenon-sh/tenon/internal/temporal"
	"github.com/tenon-sh/tenon/worker"
)

// workerGCPercent is the worker's GOGC: half of Go's default, since a worker shares its machine with its workload, and
// its garbage is small compared to its live heap.
const workerGCPercent = 50

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

func newWorkerCommand() *cobra.Command {
	settings := worker.DefaultConfig()
	var cloud awsFlags
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run a worker: the process that is deployed into a cluster",
		Long: `Runs a worker of one Kubernetes cluster until it is told to stop. Any number of replicas may run; one of
them, the holder of a Lease, also watches the cluster for all.

Every flag has an environment variable: TENON_CLUSTER for --cluster. Temporal is found through its own standard
configuration (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TEMPORAL_TLS_..., or a configuration file), AWS
through AWS's, and Kubernetes through KUBECONFIG or the pod's service account.`,
		Example: `  tenon worker --cluster my-eks-cluster
  TEMPORAL_ADDRESS=temporal:7233 TENON_CLUSTER=my-eks-cluster tenon worker`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnvironment(cmd.Flags()); err != nil {
				return err
			}
			if settings.BuildID == "" {
				build, err := buildID(version)
				if err != nil {
					return err
				}
				settings.BuildID = build
			}
			if err := settings.Validate(); err != nil {
				return err
			}
			if err := cloud.validate(); err != nil {
				return err
			}
			return runWorker(cmd.Context(), settings, cloud)
		},
	}
	settings.Flags(cmd.Flags())
	cloud.add(cmd.Flags())
	return cmd
}

func runWorker(ctx context.Context, settings worker.Config, cloud awsFlags) error {
	log, err := newLogger(settings.LogLevel)
	if err != nil {
		return err
	}
	defer func() { _ = log.Sync() }()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(workerGCPercent)
	}
	settings.LimitMemory(log)
	// The SDK would otherwise hash this program, a quarter of a second of a processor at every start, for a name that
	// versioned workers do not use.
	sdk.SetBinaryChecksum(settings.BuildID)
	klog.SetLogger(zapr.NewLogger(log))
	logf.SetLogger(zapr.NewLogger(log))
	log.Info("configuration", zap.String("version", currentVersion().Version), zap.Any("worker", settings), zap.Any("aws", fmt.Sprintf("%+v", cloud)))
	kubernetes, err := kubeconfig.GetConfig()
	if err != nil {
		return fmt.Errorf("find the Kubernetes API server (set KUBECONFIG, or run in a pod): %w", err)
	}
	server, err := temporal.Connect(prometheus.DefaultRegisterer, log)
	if err != nil {
		return err
	}
	defer server.Client.Close()
	options := aws.Options{
		Cluster: settings.Cluster, ClusterEndpoint: cloud.endpoint, ClusterCA: cloud.caBundle, ServiceCIDR: cloud.serviceCIDR,
		ServerVersion: serverVersion(kubernetes), VMMemoryOverhead: &cloud.memoryOverhead,
		ReservedENIs: cloud.reservedENIs, DisableDryRun: cloud.disableDryRun, IsolatedVPC: cloud.isolatedVPC, ZonalShift: cloud.zonalShift, Log: log,
	}
	connections := worker.Connections{Kubernetes: kubernetes, Temporal: server.Client, Server: server}
	if err := installFailpoints(&connections, &options, log); err != nil {
		return err
	}
	provider, err := aws.New(ctx, options)
	if err != nil {
		return fmt.Errorf("AWS: %w", err)
	}
	connections.Cloud, connections.Interruptions = provider, provider.Interruptions(cloud.interruptionQueue)
	connections.LearnFrom = provider.LearnFrom
	return worker.Run(ctx, settings, connections, log)
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

func isPrefix(text string) bool {
	_, err := netip.ParsePrefix(text)
	return err == nil
}

// installFailpoints makes the worker kill itself where a test asks for it through the environment.
func installFailpoints(to *worker.Connections, options *aws.Options, log *zap.Logger) error {
	points, err := failpoint.FromEnvironment()
	if err != nil || points == nil {
		return err
	}
	log.Warn("this worker is under test: it kills itself at failpoints, or waits for a shorter time", zap.String("points", os.Getenv(failpoint.PointsVariable)))
	to.Kubernetes.Wrap(points.Kubernetes)
	to.Interceptors = append(to.Interceptors, points.Interceptor())
	options.Load = append(options.Load, config.WithHTTPClient(points.AWS(http.NewBuildableClient())))
	return nil
}

// newLogger logs JSON lines to standard error.
func newLogger(level string) (*zap.Logger, error) {
	parsed, err := zap.ParseAtomicLevel(level)
	if err != nil {
		return nil, fmt.Errorf("--log-level %q: must be debug, info, warn or error", level)
	}
	logging := zap.NewProductionConfig()
	logging.Level = parsed
	logging.Sampling = nil
	return logging.Build()
}
