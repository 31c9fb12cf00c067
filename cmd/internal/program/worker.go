package program

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/go-logr/zapr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	sdk "go.temporal.io/sdk/worker"
	"go.uber.org/zap"
	"k8s.io/klog/v2"
	kubeconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tenon-sh/tenon/internal/codec"
	"github.com/tenon-sh/tenon/internal/logs"
	"github.com/tenon-sh/tenon/internal/temporal"
	"github.com/tenon-sh/tenon/worker"
)

// workerGCPercent is the worker's GOGC: half of Go's default, since a worker shares its machine with its workload, and
// its garbage is small compared to its live heap.
const workerGCPercent = 50

// A Change alters what a worker connects with before it connects, and returns further options of the AWS SDK's configuration.
type Change func(to *worker.Connections, log *zap.Logger) (load []func(*config.LoadOptions) error, err error)

// NewWorkerCommand returns the command that runs a worker of this build. The change is nil in production.
func NewWorkerCommand(build Build, change Change) *cobra.Command {
	settings := worker.DefaultConfig()
	var provider providerFlags
	var keys codec.Options
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run a worker: the process that is deployed into a cluster",
		Long: `Runs a worker of one Kubernetes cluster until it is told to stop. Any number of replicas may run; one of
them, the holder of a Lease, also watches the cluster for all.

Every flag has an environment variable: TENON_CLUSTER for --cluster. Temporal is found through its own standard
configuration (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TEMPORAL_TLS_..., or a configuration file), AWS
through AWS's, and Kubernetes through KUBECONFIG or the pod's service account. TENON_TEMPORAL_API_KEY_FILE names a file with
the key for Temporal that may be replaced at any time.`,
		Example: `  tenon worker --cluster my-eks-cluster
  TEMPORAL_ADDRESS=temporal:7233 TENON_CLUSTER=my-eks-cluster tenon worker`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := FromEnvironment(cmd.Flags()); err != nil {
				return err
			}
			if settings.BuildID == "" {
				id, err := build.ID()
				if err != nil {
					return err
				}
				settings.BuildID = id
			}
			if err := settings.Validate(); err != nil {
				return err
			}
			if err := provider.validate(); err != nil {
				return err
			}
			return runWorker(cmd.Context(), settings, provider, keys, build, change)
		},
	}
	settings.Flags(cmd.Flags())
	provider.add(cmd.Flags())
	keys.Flags(cmd.Flags())
	return cmd
}

func runWorker(ctx context.Context, settings worker.Config, provider providerFlags, keys codec.Options, build Build, change Change) error {
	log, err := logs.New(settings.Logging(), os.Stderr)
	if err != nil {
		return err
	}
	defer func() { _ = log.Sync() }()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(workerGCPercent)
	}
	process := log.Named(logs.Worker)
	settings.LimitMemory(process)
	// The SDK would otherwise hash this program, a quarter of a second of a processor at every start, for a name that
	// versioned workers do not use.
	sdk.SetBinaryChecksum(settings.BuildID)
	klog.SetLogger(zapr.NewLogger(log.Named(logs.Kubernetes)))
	logf.SetLogger(zapr.NewLogger(log.Named(logs.Kubernetes)))
	process.Info("configuration", zap.String("version", build.Version), zap.Any("worker", settings), zap.String("provider", fmt.Sprintf("%+v", provider)), zap.Any("codec", keys))
	kubernetes, err := kubeconfig.GetConfig()
	if err != nil {
		return fmt.Errorf("find the Kubernetes API server (set KUBECONFIG, or run in a pod): %w", err)
	}
	server, err := temporal.Connect(prometheus.DefaultRegisterer, keys, log.Named(logs.Temporal))
	if err != nil {
		return err
	}
	defer server.Client.Close()
	connections := worker.Connections{Kubernetes: kubernetes, Temporal: server.Client, Server: server, Namespace: server.Namespace(), CloudName: provider.name, Commit: build.Commit}
	var load []func(*config.LoadOptions) error
	if change != nil {
		if load, err = change(&connections, log); err != nil {
			return err
		}
	}
	if provider.name == ProviderKwok {
		err = provider.kwok.connect(&connections, settings.Cluster)
	} else {
		err = provider.aws.connect(ctx, &connections, settings.Cluster, load, log.Named(logs.AWS))
	}
	if err != nil {
		return err
	}
	return worker.Run(ctx, settings, connections, log)
}
