package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/go-logr/zapr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	sdk "go.temporal.io/sdk/worker"
	"go.uber.org/zap"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	kubeconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tenon-sh/tenon/internal/failpoint"
	"github.com/tenon-sh/tenon/internal/temporal"
	"github.com/tenon-sh/tenon/worker"
)

// workerGCPercent is the worker's GOGC: half of Go's default, since a worker shares its machine with its workload, and
// its garbage is small compared to its live heap.
const workerGCPercent = 50

func newWorkerCommand() *cobra.Command {
	settings := worker.DefaultConfig()
	var provider providerFlags
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
			if err := provider.validate(); err != nil {
				return err
			}
			return runWorker(cmd.Context(), settings, provider)
		},
	}
	settings.Flags(cmd.Flags())
	provider.add(cmd.Flags())
	return cmd
}

func runWorker(ctx context.Context, settings worker.Config, provider providerFlags) error {
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
	log.Info("configuration", zap.String("version", currentVersion().Version), zap.Any("worker", settings), zap.String("provider", fmt.Sprintf("%+v", provider)))
	kubernetes, err := kubeconfig.GetConfig()
	if err != nil {
		return fmt.Errorf("find the Kubernetes API server (set KUBECONFIG, or run in a pod): %w", err)
	}
	server, err := temporal.Connect(prometheus.DefaultRegisterer, log)
	if err != nil {
		return err
	}
	defer server.Client.Close()
	connections := worker.Connections{Kubernetes: kubernetes, Temporal: server.Client, Server: server, CloudName: provider.name}
	points, err := installFailpoints(&connections, log)
	if err != nil {
		return err
	}
	if provider.name == providerKwok {
		err = provider.kwok.connect(&connections, settings.Cluster)
	} else {
		err = provider.aws.connect(ctx, &connections, settings.Cluster, points, log)
	}
	if err != nil {
		return err
	}
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

// installFailpoints makes the worker kill itself where a test asks for it through the environment. It returns nil where no
// test does.
func installFailpoints(to *worker.Connections, log *zap.Logger) (*failpoint.Points, error) {
	points, err := failpoint.FromEnvironment()
	if err != nil || points == nil {
		return nil, err
	}
	log.Warn("this worker is under test: it kills itself at failpoints, or waits for a shorter time", zap.String("points", os.Getenv(failpoint.PointsVariable)))
	to.Kubernetes.Wrap(points.Kubernetes)
	to.Interceptors = append(to.Interceptors, points.Interceptor())
	return points, nil
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
